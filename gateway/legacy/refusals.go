package legacy

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"muster.example/gateway/inspect"
)

// refusalLog counts refused handshakes, and logs at most one line per minute and reason with their number: a client
// with a certificate of another run may dial for hours. Safe for concurrent use.
type refusalLog struct {
	metrics *inspect.Metrics
	log     *slog.Logger
	mu      sync.Mutex
	notes   map[string]*refusalNote
}

type refusalNote struct {
	written time.Time
	since   int
}

const refusalInterval = time.Minute

// refused implements listen.Options.Refused.
func (r *refusalLog) refused(reason string, remote net.Addr, err error) {
	r.metrics.RefusedHandshakes.WithLabelValues("run", reason).Inc()
	r.note(reason, remote, err)
}

// note logs a line, unless one of the same reason was logged within the minute.
func (r *refusalLog) note(reason string, remote net.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.notes == nil {
		r.notes = map[string]*refusalNote{}
	}
	n := r.notes[reason]
	if n == nil {
		n = &refusalNote{}
		r.notes[reason] = n
	}
	n.since++
	if now := time.Now(); now.Sub(n.written) >= refusalInterval {
		r.log.Warn("connection refused in the handshake", "reason", reason, "remote", remote.String(), "count", n.since, "error", err)
		n.written, n.since = now, 0
	}
}
