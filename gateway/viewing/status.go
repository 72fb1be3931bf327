package viewing

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.example/gateway/fleet"
	"muster.example/gateway/limits"
	"muster.example/gateway/rest"
	"muster.example/services/client/go"
	"muster.example/services/client/go/peer"
)

// serveStatus answers GET /status for the caller's run; "" is the newest.
func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request, run string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		rest.AnswerProblem(w, http.StatusMethodNotAllowed, rest.StatusIsReadOnly())
		return
	}
	query := r.URL.Query()
	if other := otherRun(query["run"], run); other != "" {
		rest.AnswerProblem(w, http.StatusForbidden, rest.RunNotShown(fmt.Sprintf("%.64s", other), run))
		return
	}
	if run != "" && !peer.ValidRun(run) {
		rest.AnswerProblem(w, http.StatusBadRequest, rest.InvalidRun(fmt.Sprintf("%.64s", strings.ToValidUTF8(run, "?"))))
		return
	}
	if problem, refused := rest.UnknownIn(query, []string{"run", "only"}); refused {
		rest.AnswerProblem(w, http.StatusBadRequest, problem)
		return
	}
	if only := query.Get("only"); only != "" && only != "attention" {
		rest.AnswerProblem(w, http.StatusBadRequest, rest.InvalidBody(`only= may be "attention"`))
		return
	}
	events := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	end, ok := s.watches.Requests().Begin(w, r, events)
	if !ok {
		return
	}
	defer end()
	id, _ := fleet.IdentityOf(r.Context())
	of := view{run: run, attention: query.Get("only") == "attention", kind: id.Kind}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if events {
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Type", "text/event-stream")
			return
		}
		s.stream(w, r, of)
		return
	}
	started := time.Now()
	answer, release, err := s.snapshots.get(r.Context(), of, fleet.HolderOf(r.Context()))
	s.metrics.RequestSeconds.WithLabelValues("status").Observe(time.Since(started).Seconds())
	if err != nil {
		s.answerFailure(w, r, err)
		return
	}
	defer release()
	w.Header().Set("ETag", answer.tag)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Add("Vary", "Accept-Encoding")
	if rest.Matches(r.Header.Get("If-None-Match"), answer.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	pieces := answer.pieces
	if answer.size >= limits.Compressed && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		pieces = [][]byte{answer.gzip()}
		w.Header().Set("Content-Encoding", "gzip")
	}
	if r.Method == http.MethodGet {
		_ = write(w, pieces...)
	}
}

// acceptsGzip reports whether a client accepts gzip. A weak ETag stands for both forms.
func acceptsGzip(accepted string) bool {
	for one := range strings.SplitSeq(accepted, ",") {
		name, weight, weighted := strings.Cut(strings.ReplaceAll(one, " ", ""), ";q=")
		if value, err := strconv.ParseFloat(weight, 64); name == "gzip" && (!weighted || err == nil && value > 0) {
			return true
		}
	}
	return false
}

// answerFailure answers with the error of a fetch.
func (s *Server) answerFailure(w http.ResponseWriter, r *http.Request, err error) {
	s.countUnread(r, err)
	err = rest.OwnError(err)
	if answer := muster.AsError(err); answer.Code == "UNAVAILABLE" && answer.Reason == "" {
		rest.AnswerProblem(w, http.StatusServiceUnavailable, rest.StatusUnreachable(answer.Message))
		return
	}
	rest.AnswerError(w, err)
}

// countUnread counts and logs a refusal because of unread answers.
func (s *Server) countUnread(r *http.Request, err error) {
	if unread := (*rest.UnreadError)(nil); errors.As(err, &unread) {
		s.metrics.RefusedByLimit(s.log, "snapshots", unread.Holder, r.RemoteAddr)
	}
}

// otherRun returns the first requested run that differs from the run of the answer: the answer must not be mistaken for
// that run. Empty: none.
func otherRun(named []string, run string) string {
	for _, name := range named {
		if name != "" && name != run {
			return name
		}
	}
	return ""
}

// encode returns the JSON in pieces, and a weak ETag: answers that differ only in their time have the same, but not
// answers before and after a silence of the aggregator began, which clients report.
func encode(answer *Answer) (pieces [][]byte, tag string, err error) {
	head, err := json.Marshal(answer.head)
	if err != nil {
		return nil, "", err
	}
	timeless := answer.about
	timeless.times = times{}
	tail, err := json.Marshal(timeless)
	if err != nil {
		return nil, "", err
	}
	times, err := json.Marshal(answer.times)
	if err != nil {
		return nil, "", err
	}
	head = append(head[:len(head)-1], `,"plugins":[`...)
	tail = append([]byte("],"), tail[1:len(tail)-1]...)
	pieces = append(append([][]byte{head}, answer.plugins...), tail)
	sum := sha256.New()
	for _, piece := range pieces {
		sum.Write(piece)
	}
	if answer.times.showSilence() {
		sum.Write([]byte(answer.FeedTime))
	}
	if len(times) > 2 {
		times[0] = ','
	} else {
		times = times[1:]
	}
	return append(pieces, append(times, '\n')), `W/"` + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:12]) + `"`, nil
}

// stream sends the status after every change, until the end of the run was sent.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, of view) {
	ctx, end, ok := s.watches.Begin(w, r)
	if !ok {
		return
	}
	defer end()
	holder := fleet.HolderOf(ctx)
	answer, release, err := s.snapshots.get(ctx, of, holder)
	if err != nil {
		s.answerFailure(w, r, err)
		return
	}
	defer func() { release() }()
	of.run = answer.answer.Run // of "", the newest
	s.metrics.EventStreams.Inc()
	defer s.metrics.EventStreams.Dec()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not keep events back
	events := &eventWriter{w: w}
	changes := s.changes.of(ctx, of.run)
	for {
		if err := events.status(answer); err != nil {
			return
		}
		over, size := ended(answer.answer), answer.size
		release() // not held during the wait
		if over {
			_ = events.send([]byte("event: end\ndata: {}\n\n"))
			return
		}
		if !await(ctx, size, changes, events) {
			return
		}
		if answer, release, err = s.snapshots.get(ctx, of, holder); err != nil {
			release = func() {}
			s.countUnread(r, err)
			s.log.Debug("event stream ended", "error", err)
			return // the client reconnects
		}
	}
}

// await returns after a change, and after a minimum pause; false if the stream has ended.
func await(ctx context.Context, size int64, changes <-chan struct{}, events *eventWriter) bool {
	pause := limits.EventGap
	if size > limits.LargeOne {
		pause = limits.LargeGap
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return false
	}
	idle := time.NewTicker(limits.KeepLive)
	defer idle.Stop()
	for {
		select {
		case _, open := <-changes:
			return open
		case <-idle.C:
			if events.send([]byte(": alive\n\n")) != nil {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

func ended(answer *Answer) bool {
	return answer.Status == "complete" || answer.Status == "failed" || answer.Status == "cancelled"
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w   http.ResponseWriter
	tag string
}

// status sends an answer, unless it equals the previous one.
func (e *eventWriter) status(answer *snapshot) error {
	if answer.tag == e.tag {
		return nil
	}
	e.tag = answer.tag
	// The JSON is one line with a line end.
	return e.send(slices.Concat([][]byte{[]byte("event: status\nid: " + answer.tag + "\ndata: ")}, answer.pieces, [][]byte{[]byte("\n")})...)
}

// send writes and flushes an event.
func (e *eventWriter) send(pieces ...[]byte) error {
	if err := write(e.w, pieces...); err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}

// write writes pieces until one fails. The listener disconnects a client that does not read.
func write(w io.Writer, pieces ...[]byte) error {
	for _, piece := range pieces {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
