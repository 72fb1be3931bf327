package legacy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"muster.example/services/client/go"
)

// readBody serves one request whose body is read at a pace, and returns how the read ended.
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

func TestStalledSenderIsDisconnected(t *testing.T) {
	conn, ended := readBody(t, pace{50 * time.Millisecond, 10}, readAll)
	fmt.Fprint(conn, "abc")
	if err := <-ended; !errors.Is(err, errStalled) {
		t.Error(err)
	}
}

func TestSlowSenderIsDisconnected(t *testing.T) {
	conn, ended := readBody(t, pace{100 * time.Millisecond, 1000}, readAll)
	go func() {
		for {
			if _, err := fmt.Fprint(conn, "x"); err != nil {
				return
			}
			time.Sleep(time.Millisecond) // the pace itself is the subject of this test
		}
	}()
	if err := <-ended; !errors.Is(err, errStalled) {
		t.Error(err)
	}
}

// The gateway's own time does not count against the sender.
func TestHeldSenderIsNotDisconnected(t *testing.T) {
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

func TestSplitExtensionUsesPlannedNames(t *testing.T) {
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

// Old workers treat 200 as success, retry after 5xx, and give up otherwise: no error may be answered with a success, a
// redirect, or 429.
func TestEveryErrorMapsToCode(t *testing.T) {
	answer := func(code, reason string) error { return &muster.Error{Code: code, Reason: reason, Message: "m"} }
	for _, c := range []struct {
		err  error
		code int
	}{
		{errTooLarge, 413}, {&muster.BodyError{Err: errTooLarge}, 413},
		{&muster.BodyError{Err: errStalled}, 503}, {&muster.BodyError{Err: os.ErrDeadlineExceeded}, 503},
		{&muster.BodyError{Err: io.ErrUnexpectedEOF}, 500}, {&muster.LostError{Wanted: 1, Kept: 2}, 503},
		{context.Canceled, 503}, {errors.New("unknown"), 500},
		{answer("ALREADY_EXISTS", "RESULT_CONFLICT"), 409},
		{answer("FAILED_PRECONDITION", "RUN_SEALED"), 410}, {answer("FAILED_PRECONDITION", "RUN_CANCELLED"), 410},
		{answer("NOT_FOUND", "RUN_NOT_FOUND"), 410}, {answer("FAILED_PRECONDITION", "SOMETHING_NEW"), 500},
		{answer("PERMISSION_DENIED", "PAIR_NOT_PLANNED"), 403}, {answer("PERMISSION_DENIED", "NOT_YOURS"), 403},
		{answer("PERMISSION_DENIED", "SOMETHING_NEW"), 403}, {answer("UNAUTHENTICATED", ""), 403},
		{answer("INVALID_ARGUMENT", "SOMETHING_NEW"), 400},
		{answer("RESOURCE_EXHAUSTED", "DISK_FULL"), 507}, {answer("RESOURCE_EXHAUSTED", "TOO_MANY_UPLOADS"), 503},
		{answer("UNAVAILABLE", ""), 503}, {answer("INTERNAL", ""), 503}, {answer("INTERNAL", "STORE_FAILED"), 500},
		{answer("ABORTED", "TAKEN_OVER"), 503}, {answer("DATA_LOSS", "CRC_MISMATCH"), 503},
		{answer("DATA_LOSS", "DIGEST_MISMATCH"), 503}, {answer("DATA_LOSS", "SIZE_MISMATCH"), 503},
		{answer("UNIMPLEMENTED", ""), 500},
	} {
		code, text, _ := failure(fmt.Errorf("delivering: %w", c.err))
		if code != c.code || text == "" {
			t.Errorf("%v: %d %q, want %d", c.err, code, text, c.code)
		}
	}
}

// The client's text has a next step and no server paths.
func TestFullDiskAnswerHidesServerPath(t *testing.T) {
	code, text, retryAfter := failure(&muster.Error{Code: "RESOURCE_EXHAUSTED", Reason: "DISK_FULL",
		Message: "write /srv/muster/aggregator/staged/1: No space left on device", RetryAfter: 30 * time.Second})
	if code != 507 || strings.Contains(text, "/srv") || !strings.Contains(text, "DISK_FULL") || !strings.Contains(text, "free space") ||
		retryAfter != 30*time.Second {
		t.Errorf("%d %q, retry after %v", code, text, retryAfter)
	}
}

func TestRetryAfterIsRoundedUpToSeconds(t *testing.T) {
	w := httptest.NewRecorder()
	code := answerFailure(w, &muster.Error{Code: "UNAVAILABLE", Message: "two\nlines", RetryAfter: 1500 * time.Millisecond})
	if code != 503 || w.Code != 503 || w.Header().Get("Retry-After") != "2" || w.Body.String() != "two lines (UNAVAILABLE)\n" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}
