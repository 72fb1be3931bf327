package inspect

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"
)

// RefusedHandshake returns a callback for listen.Options.Refused. It counts for a listener, and logs at most one line
// per minute and reason with their number: a client with a certificate of another run may dial for hours. Connections
// that went away or timed out are logged at level debug: health checks connect and close. Safe for concurrent use.
func (m *Metrics) RefusedHandshake(listener string, log *slog.Logger) func(reason string, remote net.Addr, err error) {
	limited := &refusalLog{log: log, notes: map[string]*refusalNote{}}
	return func(reason string, remote net.Addr, err error) {
		m.RefusedHandshakes.WithLabelValues(listener, reason).Inc()
		limited.note(reason, remote, err)
	}
}

type refusalLog struct {
	log   *slog.Logger
	mu    sync.Mutex
	notes map[string]*refusalNote // by reason
}

type refusalNote struct {
	written time.Time
	since   int
}

const refusalInterval = time.Minute

// note logs a line, unless one of the same reason was logged within the minute.
func (r *refusalLog) note(reason string, remote net.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.notes[reason]
	if n == nil {
		n = &refusalNote{}
		r.notes[reason] = n
	}
	n.since++
	if now := time.Now(); now.Sub(n.written) >= refusalInterval {
		level := slog.LevelWarn
		if reason == "gone" || reason == "timeout" {
			level = slog.LevelDebug
		}
		r.log.Log(context.Background(), level, "connection refused", "reason", reason, "remote", remote.String(), "count", n.since, "error", err)
		n.written, n.since = now, 0
	}
}
