package legacy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// readBody serves one request whose body is read at a pace, and gives how that ended.
func readBody(t *testing.T, p pace, handle func(*body) error) (net.Conn, chan error) {
	t.Helper()
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := &body{from: r.Body, control: http.NewResponseController(w), pace: p, count: func(int) {}}
		ended <- handle(b)
	}))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	return conn, ended
}

func readAll(b *body) error {
	_, err := io.Copy(io.Discard, b)
	return err
}

func TestASenderThatStopsIsGivenUp(t *testing.T) {
	conn, ended := readBody(t, pace{50 * time.Millisecond, 10}, readAll)
	fmt.Fprint(conn, "abc")
	if err := <-ended; !errors.Is(err, errStalled) {
		t.Error(err)
	}
}

func TestASenderThatDribblesIsGivenUp(t *testing.T) {
	conn, ended := readBody(t, pace{100 * time.Millisecond, 1000}, readAll)
	go func() {
		for {
			if _, err := fmt.Fprint(conn, "x"); err != nil {
				return
			}
			time.Sleep(time.Millisecond) // the pace is what is tested
		}
	}()
	if err := <-ended; !errors.Is(err, errStalled) {
		t.Error(err)
	}
}

// The time that the gateway itself takes is not the sender's.
func TestASenderThatIsHeldIsNotGivenUp(t *testing.T) {
	resume := make(chan struct{})
	conn, ended := readBody(t, pace{100 * time.Millisecond, 1001}, func(b *body) error {
		if _, err := io.ReadFull(b, make([]byte, 500)); err != nil {
			return err
		}
		<-resume
		return readAll(b)
	})
	w := bufio.NewWriter(conn)
	fmt.Fprintf(w, "%01000d", 0)
	_ = w.Flush()
	time.AfterFunc(200*time.Millisecond, func() { close(resume) }) // longer than the window
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestSplitExtension(t *testing.T) {
	plugins := map[string]bool{"p": true, "p.json": true, "a.b": true}
	for name, want := range map[string][2]string{
		"p": {"p", ""}, "p.tar.gz": {"p", ".tar.gz"}, "p.json": {"p.json", ""}, "p.json.gz": {"p", ".json.gz"},
		"a.b": {"a.b", ""}, "a.b.gz": {"a.b.gz", ""}, "q.gz": {"q.gz", ""}, ".gz": {".gz", ""},
	} {
		plugin, extension := splitExtension(name, func(p string) bool { return plugins[p] })
		if plugin != want[0] || extension != want[1] {
			t.Errorf("%s: %q %q", name, plugin, extension)
		}
	}
}
