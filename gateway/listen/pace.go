package listen

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"muster.example/gateway/limits"
)

// Pace is the minimum rate of a client: a number of bytes in each window.
type Pace struct {
	Window time.Duration
	Bytes  int
}

// DefaultPace is 1 KiB/s over a minute: the rule of uploads over gRPC.
var DefaultPace = Pace{limits.PaceTime, int(limits.PaceBytes)}

// ErrStalled is the error of a body that was sent more slowly than the pace.
var ErrStalled = fmt.Errorf("the body was sent too slowly: %w", os.ErrDeadlineExceeded)

// Paced limits how long a client may take to send a body or to read an answer. The server's own time between reads and
// writes does not count. An answer before the end of the body ends the connection (HTTP/1.1) or the stream (HTTP/2).
// The handler may set deadlines by http.ResponseController; the earlier deadline applies.
func Paced(handler http.Handler, pace Pace) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{ResponseWriter: w, control: http.NewResponseController(w), pace: pace, http1: r.ProtoMajor == 1}
		// The server reads the fields of the original request, which remains unchanged.
		own := *r
		if r.Body != nil && r.Body != http.NoBody {
			x.unread = true
			own.Body = &pacedBody{ReadCloser: r.Body, x: x}
		}
		defer x.end(own.Body)
		handler.ServeHTTP(x, &own)
	})
}

// exchange is one request with its answer. Safe for concurrent use, except for the answer.
type exchange struct {
	http.ResponseWriter
	control  *http.ResponseController
	pace     Pace
	http1    bool
	answered bool
	duplex   bool // the handler reads the body after its answer

	mu      sync.Mutex
	unread  bool      // the end of the body was not reached
	ended   bool      // the connection may belong to the next request
	closeBy time.Time // of an unread body; zero: not answered yet
	readBy  time.Time // the handler's own deadlines
	writeBy time.Time
}

// earliest returns the earliest time; zero times do not count.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// setReadDeadline sets the deadline of the next read; zero: none but those of the handler and of the answer.
func (x *exchange) setReadDeadline(deadline time.Time) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return http.ErrBodyReadAfterClose
	}
	return x.control.SetReadDeadline(earliest(deadline, x.readBy, x.closeBy))
}

// SetReadDeadline supports http.ResponseController.
func (x *exchange) SetReadDeadline(deadline time.Time) error {
	x.mu.Lock()
	x.readBy = deadline
	x.mu.Unlock()
	return x.setReadDeadline(time.Time{})
}

// EnableFullDuplex supports http.ResponseController. The handler limits how long it reads after its answer.
func (x *exchange) EnableFullDuplex() error {
	x.duplex = true
	return x.control.EnableFullDuplex()
}

// SetWriteDeadline supports http.ResponseController.
func (x *exchange) SetWriteDeadline(deadline time.Time) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writeBy = deadline
	return x.control.SetWriteDeadline(deadline)
}

// timed runs a write under the pace.
func (x *exchange) timed(write func() error) error {
	x.mu.Lock()
	own := x.writeBy
	x.mu.Unlock()
	if err := x.control.SetWriteDeadline(earliest(own, time.Now().Add(x.pace.Window))); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return x.control.SetWriteDeadline(own) // the next piece may come much later
}

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(code int) {
	if code >= http.StatusOK {
		x.answer()
	}
	x.ResponseWriter.WriteHeader(code)
}

// answer prepares the end of the connection if the body is unread.
func (x *exchange) answer() {
	if x.answered {
		return
	}
	x.answered = true
	x.mu.Lock()
	unread := x.unread && x.http1
	if unread && !x.duplex {
		x.closeBy = time.Now().Add(limits.CloseDelay)
	}
	x.mu.Unlock()
	if unread {
		x.Header().Set("Connection", "close")
		_ = x.setReadDeadline(time.Time{})
	}
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(content []byte) (written int, err error) {
	x.answer()
	for first := true; err == nil && (first || len(content) > 0); first = false {
		piece := content[:min(len(content), x.pace.Bytes)]
		err = x.timed(func() error {
			n, err := x.ResponseWriter.Write(piece)
			written += n
			return err
		})
		content = content[len(piece):]
	}
	return written, err
}

// FlushError supports http.ResponseController.
func (x *exchange) FlushError() error {
	x.answer()
	return x.timed(x.control.Flush)
}

// Flush implements http.Flusher.
func (x *exchange) Flush() { _ = x.FlushError() }

// Unwrap supports http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// end limits the time of the last write, which the server performs after the handler, and reads the rest of an unread
// body for a moment.
func (x *exchange) end(body io.Reader) {
	x.answer()
	x.mu.Lock()
	unread := x.unread && x.http1
	if unread && x.closeBy.IsZero() {
		x.closeBy = time.Now().Add(limits.CloseDelay)
	}
	x.mu.Unlock()
	if unread && x.FlushError() == nil {
		_, _ = io.Copy(io.Discard, body)
	}
	_ = x.control.SetWriteDeadline(time.Now().Add(x.pace.Window))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
}

// pacedBody is a body that is read with the pace.
type pacedBody struct {
	io.ReadCloser
	x     *exchange
	spent time.Duration // in reads since `got` was zero
	got   int
}

// Close implements io.Closer. The server closes the body after the answer.
func (b *pacedBody) Close() error { return nil }

// Read implements io.Reader. Its errors are ErrStalled and those of the connection.
func (b *pacedBody) Read(p []byte) (int, error) {
	started := time.Now()
	if err := b.x.setReadDeadline(started.Add(b.x.pace.Window - b.spent)); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.spent += time.Since(started)
	b.got += n
	if b.got >= b.x.pace.Bytes {
		b.got, b.spent = 0, 0
	}
	if err == nil && !b.x.http1 { // HTTP/2 ends the body at a deadline even between two reads
		_ = b.x.setReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, io.EOF): // the server watches the connection during the following work, without a limit
		b.x.mu.Lock()
		b.x.unread = false
		b.x.mu.Unlock()
		_ = b.x.setReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrStalled
	}
	return n, err
}
