package rudder

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"muster.example/gateway/limits"
)

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

// notFound answers an unknown route, which includes a wrong method, query or content type.
func notFound(w http.ResponseWriter) { answer(w, http.StatusNotFound, "NOT FOUND") }

// bounded answers a body without a length, or with one above the limit; it reports whether the body is acceptable.
func (s *Server) bounded(w http.ResponseWriter, r *http.Request, limit int64) bool {
	switch {
	case r.Header.Get("Content-Length") == "":
		s.drain(w, r)
		answer(w, http.StatusLengthRequired, "LENGTH REQUIRED")
	case r.ContentLength > limit:
		s.drain(w, r)
		answer(w, http.StatusRequestEntityTooLarge, "PAYLOAD TOO LARGE")
	default:
		return true
	}
	return false
}

// drain reads the rest of the body, unless the client waits for 100 Continue.
func (s *Server) drain(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		_, _ = io.CopyN(io.Discard, s.newIdleReader(w, r), limits.RudderDrain)
	}
}

// idleReader reads a body as long as data arrives.
type idleReader struct {
	body    io.Reader
	client  *http.ResponseController
	silence time.Duration
}

func (s *Server) newIdleReader(w http.ResponseWriter, r *http.Request) *idleReader {
	return &idleReader{r.Body, http.NewResponseController(w), s.config.ClientSilence}
}

func (p *idleReader) Read(into []byte) (int, error) {
	_ = p.client.SetReadDeadline(time.Now().Add(p.silence))
	n, err := p.body.Read(into)
	if errors.Is(err, io.EOF) { // the following work waits for the client without a limit
		_ = p.client.SetReadDeadline(time.Time{})
	}
	return n, err
}
