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
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/gateway/gen/muster/v1"
	"muster.example/gateway/rest"
)

const (
	// eventPause is the least time between two events of one stream; longer where they are large.
	eventPause, largePause = 250 * time.Millisecond, 2 * time.Second
	largeEvent             = 256 << 10
	keepAlive              = 15 * time.Second
	writePiece             = 1 << 20
)

// serveStatus answers GET /status for one run, the one that the caller sees; "" is the newest.
func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request, run string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		rest.AnswerProblem(w, http.StatusMethodNotAllowed, rest.Problem{Message: "the status can only be read",
			Reason: "METHOD_NOT_ALLOWED", NextStep: "Use GET."})
		return
	}
	query := r.URL.Query()
	if other := otherRun(query["run"], run); other != "" {
		rest.AnswerProblem(w, http.StatusForbidden, rest.Problem{
			Message: fmt.Sprintf("run %.64q is not shown to this caller here, run %s alone is", other, run), Reason: "NOT_YOURS",
			NextStep: "Leave run= out, or ask the fleet's status listener with that run's credentials, or as an operator."})
		return
	}
	attention := query.Get("only") == "attention"
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		s.stream(w, r, run, attention)
		return
	}
	answer, err := s.fetch(r.Context(), run, attention)
	if err != nil {
		rest.AnswerError(w, err)
		return
	}
	content, tag, err := encode(answer)
	if err != nil {
		rest.AnswerError(w, err)
		return
	}
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "application/json")
	if rest.Matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if r.Method == http.MethodGet {
		_ = (&paced{w, http.NewResponseController(w), s.writeLimit}).write(content)
	}
}

// otherRun gives the first run that a request names besides the one that it would be answered with: that answer
// must not be taken for the other's. Empty: there is none.
func otherRun(named []string, run string) string {
	for _, name := range named {
		if name != "" && name != run {
			return name
		}
	}
	return ""
}

// encode gives the JSON, and a weak ETag: the same for answers that differ in nothing but when they were
// given.
func encode(answer *Answer) ([]byte, string, error) {
	given, heard := answer.Time, answer.FeedTime
	answer.Time, answer.FeedTime = "", ""
	timeless, err := json.Marshal(answer)
	answer.Time, answer.FeedTime = given, heard
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(timeless)
	content := timeless[:len(timeless)-1]
	times, err := json.Marshal(struct {
		Time     string `json:"time,omitempty"`
		FeedTime string `json:"feed_time,omitempty"`
	}{given, heard})
	if err != nil {
		return nil, "", err
	}
	if len(times) > 2 {
		content = append(append(content, ','), times[1:]...)
	} else {
		content = append(content, '}')
	}
	return append(content, '\n'), `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, nil
}

// stream sends the status again whenever it changed, until the run has ended and that was told.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, run string, attention bool) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	answer, err := s.fetch(ctx, run, attention)
	if err != nil {
		rest.AnswerError(w, err)
		return
	}
	s.metrics.EventStreams.Inc()
	defer s.metrics.EventStreams.Dec()
	w.Header().Set("Content-Type", "text/event-stream")
	events := &eventWriter{out: paced{w, http.NewResponseController(w), s.writeLimit}}
	changes := s.changes(ctx, answer.Run)
	for {
		size, err := events.status(answer)
		if err != nil {
			return
		}
		if finished(answer) {
			_ = events.send("event: end\ndata: {}\n\n")
			return
		}
		if !await(ctx, size, changes, events) {
			return
		}
		if answer, err = s.fetch(ctx, answer.Run, attention); err != nil {
			s.log.Debug("an event stream ends", "error", err)
			return // the client comes again
		}
	}
}

// await returns after a change, not too soon after the last event; false if the stream is over.
func await(ctx context.Context, size int, changes <-chan struct{}, events *eventWriter) bool {
	pause := eventPause
	if size > largeEvent {
		pause = largePause
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return false
	}
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	for {
		select {
		case _, open := <-changes:
			return open
		case <-idle.C:
			if events.send(": alive\n\n") != nil {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// changes gives a sign when something of the run changed; any number of changes may be one sign. It is
// closed when there will be no more.
func (s *Server) changes(ctx context.Context, run string) <-chan struct{} {
	signs := make(chan struct{}, 1)
	sign := func() {
		select {
		case signs <- struct{}{}:
		default:
		}
	}
	go func() {
		defer close(signs)
		watch, err := s.status.WatchStatus(ctx, &musterv1.WatchStatusRequest{Run: run})
		for err == nil {
			if _, err = watch.Recv(); err == nil || errors.Is(err, io.EOF) {
				sign()
			}
		}
		if !errors.Is(err, io.EOF) && status.Code(err) != codes.Canceled {
			s.log.Debug("a run is not watched any more", "run", run, "error", err)
		}
	}()
	return signs
}

func finished(answer *Answer) bool {
	return answer.Status == "complete" || answer.Status == "failed" || answer.Status == "cancelled"
}

// eventWriter writes server-sent events.
type eventWriter struct {
	out paced
	tag string
}

// status sends an answer, unless it is the one that was sent last; it gives its size.
func (e *eventWriter) status(answer *Answer) (int, error) {
	content, tag, err := encode(answer)
	if err != nil || tag == e.tag {
		return len(content), err
	}
	e.tag = tag
	return len(content), e.send("event: status\nid: " + tag + "\ndata: " + strings.TrimSpace(string(content)) + "\n\n")
}

// send writes an event, and sees that it goes out now.
func (e *eventWriter) send(text string) error {
	if err := e.out.write([]byte(text)); err != nil {
		return err
	}
	return e.out.control.Flush()
}

// paced lets a client go that does not take what is written to it.
type paced struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration // for each writePiece
}

func (p *paced) write(content []byte) error {
	for piece := range slices.Chunk(content, writePiece) {
		if err := p.control.SetWriteDeadline(time.Now().Add(p.limit)); err != nil {
			return err
		}
		if _, err := p.w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
