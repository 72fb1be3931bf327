package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
)

// errStopping ends the watches of a gateway that stops.
var errStopping = errors.New("the gateway is stopping")

// Watches bounds the open watches and event streams of all callers and of each, and ends them when the gateway stops.
// Safe for concurrent use.
type Watches struct {
	quota    limits.Quota
	metrics  *inspect.Metrics
	load     *StatusLoad
	requests *Requests
	living   context.Context
	stop     context.CancelCauseFunc
}

// NewWatches returns a set without watches.
func NewWatches(metrics *inspect.Metrics) *Watches {
	s := &Watches{quota: limits.Quota{All: int64(limits.Watches), Each: int64(limits.WatchesOfIdentity)}, metrics: metrics, load: NewStatusLoad(metrics),
		requests: NewRequests(metrics)}
	s.living, s.stop = context.WithCancelCause(context.Background())
	return s
}

// Load returns what readers of the status occupy.
func (s *Watches) Load() *StatusLoad { return s.load }

// Requests returns the limits of all requests of each identity.
func (s *Watches) Requests() *Requests { return s.requests }

// Begin adds a watch of the request's client. The context ends when the gateway stops; the caller of Begin calls the
// function at the end of the watch. If there are too many, it answers and returns false.
func (s *Watches) Begin(w http.ResponseWriter, r *http.Request) (ctx context.Context, end func(), ok bool) {
	if s.living.Err() != nil {
		AnswerProblem(w, http.StatusServiceUnavailable, GatewayStopping())
		return nil, nil, false
	}
	holder := fleet.HolderOf(r.Context())
	if !s.quota.Acquire(holder, 1) {
		s.metrics.LimitRefusals.WithLabelValues("watches").Inc()
		w.Header().Set("Retry-After", "10")
		AnswerProblem(w, http.StatusTooManyRequests, TooManyWatches(s.quota.Each, s.quota.All))
		return nil, nil, false
	}
	s.metrics.Watches.Inc()
	ctx, cancel := context.WithCancelCause(r.Context())
	release := context.AfterFunc(s.living, func() { cancel(errStopping) })
	return ctx, func() {
		release()
		cancel(nil)
		s.metrics.Watches.Dec()
		s.quota.Release(holder, 1)
	}, true
}

// End ends all watches, and refuses new ones.
func (s *Watches) End() { s.stop(errStopping) }

// isWatch reports whether a path has a stream of responses: only those of watches have.
func isWatch(path string) bool { return strings.HasSuffix(path, ":watch") }

type watchKey struct{}

// watchWriter holds back the error with which a watch ends before its first message: it gets the same answer as the
// error of any other call.
type watchWriter struct {
	http.ResponseWriter
	failure error        // the error of the stream
	begun   bool         // the head was sent
	failed  bool         // the head of an error was held back
	status  *statusWatch // of a run; nil: another watch
}

// WriteHeader implements http.ResponseWriter.
func (w *watchWriter) WriteHeader(code int) {
	if !w.begun && w.failure != nil {
		w.failed = true
		return
	}
	w.begun = true
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *watchWriter) Write(p []byte) (int, error) {
	if w.failed {
		return len(p), nil
	}
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// FlushError supports http.ResponseController: it is called after each message.
func (w *watchWriter) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if w.status != nil {
		w.status.sent()
	}
	return err
}

// Unwrap supports http.ResponseController.
func (w *watchWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// watch serves a request with a stream of responses.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	ctx, end, ok := s.watches.Begin(w, r)
	if !ok {
		return
	}
	defer end()
	held := &watchWriter{ResponseWriter: w}
	if strings.HasSuffix(r.URL.Path, "/status:watch") {
		watch, err := s.beginStatusWatch(ctx, r.RemoteAddr)
		if err != nil {
			AnswerError(w, OwnError(err))
			return
		}
		defer watch.close()
		ctx, held.status = watch.ctx, watch
	}
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not keep messages back
	s.mux.ServeHTTP(held, r.WithContext(context.WithValue(ctx, watchKey{}, held)))
	if held.failed {
		w.Header().Del("Transfer-Encoding")
		AnswerError(w, held.failure)
	}
}
