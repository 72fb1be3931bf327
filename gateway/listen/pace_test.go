package listen

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const patience = 20 * time.Second // of a test; far more than any deadline that it sets

// pacedServer serves with a pace, and returns a connection to it.
func pacedServer(t *testing.T, p Pace, handler http.HandlerFunc) net.Conn {
	t.Helper()
	server := httptest.NewServer(Paced(handler, p))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// readBody serves one request whose body is read at a pace, and returns how the read ended.
func readBody(t *testing.T, p Pace, handle func(io.Reader) error) (net.Conn, chan error) {
	t.Helper()
	ended := make(chan error, 1)
	conn := pacedServer(t, p, func(_ http.ResponseWriter, r *http.Request) { ended <- handle(r.Body) })
	fmt.Fprint(conn, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	return conn, ended
}

func readAll(body io.Reader) error {
	_, err := io.Copy(io.Discard, body)
	return err
}

func TestPacedStalledSenderIsDisconnected(t *testing.T) {
	conn, ended := readBody(t, Pace{50 * time.Millisecond, 10}, readAll)
	fmt.Fprint(conn, "abc")
	if err := <-ended; !errors.Is(err, ErrStalled) {
		t.Error(err)
	}
}

func TestPacedSlowSenderIsDisconnected(t *testing.T) {
	conn, ended := readBody(t, Pace{100 * time.Millisecond, 1000}, readAll)
	go func() {
		for {
			if _, err := fmt.Fprint(conn, "x"); err != nil {
				return
			}
			time.Sleep(time.Millisecond) // the pace itself is the subject of this test
		}
	}()
	if err := <-ended; !errors.Is(err, ErrStalled) {
		t.Error(err)
	}
}

// The gateway's own time does not count against the sender.
func TestPacedHeldSenderIsNotDisconnected(t *testing.T) {
	resume := make(chan struct{})
	conn, ended := readBody(t, Pace{100 * time.Millisecond, 1001}, func(body io.Reader) error {
		if _, err := io.ReadFull(body, make([]byte, 500)); err != nil {
			return err
		}
		<-resume
		return readAll(body)
	})
	w := bufio.NewWriter(conn)
	fmt.Fprintf(w, "%01000d", 0)
	_ = w.Flush()
	time.AfterFunc(200*time.Millisecond, func() { close(resume) }) // longer than the window
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A handler that answers before the end of the body: the client gets the answer immediately, and the connection is closed.
func TestPacedRefusalClosesConnectionWithSilentBody(t *testing.T) {
	var all sync.WaitGroup
	for name, head := range map[string]string{
		"part of a body":    "Content-Length: 100000\r\n\r\n{",
		"a large body":      "Content-Length: 1000000000\r\n\r\n{",
		"chunks":            "Transfer-Encoding: chunked\r\n\r\n",
		"100-continue":      "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n",
		"100, with chunks":  "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
		"no answer written": "X-Silent: 1\r\nContent-Length: 100000\r\n\r\n",
	} {
		conn := pacedServer(t, DefaultPace, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Silent") == "" {
				http.Error(w, "no", http.StatusForbidden)
			}
		})
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\n"+head)
		all.Go(func() {
			reader := bufio.NewReader(conn)
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if response.StatusCode == http.StatusContinue || !response.Close {
				t.Errorf("%s: %v", name, response)
			}
			if _, err := io.Copy(io.Discard, reader); err != nil {
				t.Errorf("%s: the connection is not closed: %v", name, err)
			}
		})
	}
	all.Wait()
}

func TestPacedConnectionIsReusedAfterWholeBody(t *testing.T) {
	conn := pacedServer(t, Pace{50 * time.Millisecond, 10}, func(w http.ResponseWriter, r *http.Request) {
		_ = readAll(r.Body)
		select {
		case <-r.Context().Done():
			t.Error("the request was cancelled")
		case <-time.After(100 * time.Millisecond): // longer than the window
		}
		fmt.Fprint(w, "ok")
	})
	reader := bufio.NewReader(conn)
	for range 2 {
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		response, err := http.ReadResponse(reader, nil)
		if err != nil || response.Close {
			t.Fatal(response, err)
		}
		_ = readAll(response.Body)
	}
}

// A stream may be quiet for longer than the window.
func TestPacedQuietStreamRemainsOpen(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(Paced(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				fmt.Fprint(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(150 * time.Millisecond) // longer than the window
			}
		}), Pace{50 * time.Millisecond, 10}))
		server.EnableHTTP2 = v2
		server.StartTLS()
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(response.Body); string(text) != "xxx" || err != nil {
			t.Errorf("HTTP/2 %v: %q %v", v2, text, err)
		}
		response.Body.Close()
		server.Close()
	}
}

// One write of a large answer, with HTTP/1.1 and HTTP/2.
func TestPacedClientThatDoesNotReadIsDisconnected(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		ended := make(chan error, 1)
		server := httptest.NewUnstartedServer(Paced(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, strings.Repeat("x", 64<<20))
			ended <- err
		}), Pace{200 * time.Millisecond, 64 << 10}))
		server.EnableHTTP2 = v2
		server.StartTLS()
		transport := &http.Transport{ForceAttemptHTTP2: v2, TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
		request, _ := http.NewRequest("GET", server.URL, nil)
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("HTTP/2 %v: everything was written", v2)
			}
		case <-time.After(patience):
			t.Errorf("HTTP/2 %v: it is served for ever", v2)
		}
		response.Body.Close()
		transport.CloseIdleConnections()
		server.Close()
	}
}

// The silent body of an HTTP/2 stream ends with an error, too.
func TestPacedStalledStreamIsEnded(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewUnstartedServer(Paced(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ended <- readAll(r.Body)
	}), Pace{100 * time.Millisecond, 10}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	silent, writer := io.Pipe()
	t.Cleanup(func() { writer.Close() })
	request, _ := http.NewRequest("POST", server.URL, silent)
	go func() {
		if response, err := server.Client().Do(request); err == nil {
			response.Body.Close()
		}
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrStalled) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the body is awaited for ever")
	}
}

// A client of HTTP/2 that allows no bytes does not hold even a small answer.
func TestPacedStreamWithoutWindowIsEnded(t *testing.T) {
	server := httptest.NewUnstartedServer(Paced(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "small")
	}), Pace{100 * time.Millisecond, 10}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true})
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := frame.(*http2.RSTStreamFrame); ok {
			return
		}
	}
}
