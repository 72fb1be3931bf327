package inspect

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
)

// RefusedHandshake returns a callback for listen.Options.Refused. It counts for a listener, and logs at most one line
// per minute for each reason and certificate with their number: a client with a certificate of another run may dial for
// hours, and does not hide others. Connections that went away or timed out are logged at level debug: health checks connect
// and close. Safe for concurrent use.
func (m *Metrics) RefusedHandshake(listener string, log *slog.Logger) func(reason string, remote net.Addr, err error) {
	limited := &refusalLog{}
	return func(reason string, remote net.Addr, err error) {
		m.RefusedHandshakes.WithLabelValues(listener, reason).Inc()
		level := slog.LevelWarn
		if reason == "gone" || reason == "timeout" {
			level = slog.LevelDebug
		}
		subject := ""
		if refused := (*listen.RefusedPeer)(nil); errors.As(err, &refused) {
			subject = refused.Subject
		}
		limited.note(reason, subject, func(count int) {
			log.Log(context.Background(), level, "connection refused", "reason", reason, "remote", remote.String(), "count", count, "error", err)
		})
	}
}

// RefusedIdentity counts a request that is refused because of its certificate, such as a revoked one, and logs it with the
// same limit.
func (m *Metrics) RefusedIdentity(listener string, log *slog.Logger, subject, remote string, why error) {
	m.RefusedIdentities.WithLabelValues(listener).Inc()
	m.refusedIdentities.note(listener, subject, func(count int) {
		log.Warn("identity refused", "uri", subject, "remote", remote, "count", count, "error", why)
	})
}

// RefusedByLimit counts a request above a limit, and logs the client that holds too much, with the same limit.
func (m *Metrics) RefusedByLimit(log *slog.Logger, limit, holder, remote string) {
	m.LimitRefusals.WithLabelValues(limit).Inc()
	m.refusedByLimit.note(limit, holder, func(count int) {
		log.Warn("request refused because of a limit", "limit", limit, "holder", holder, "remote", remote, "count", count)
	})
}

// refusalLog limits the lines of refusals. Safe for concurrent use.
type refusalLog struct {
	mu    sync.Mutex
	notes map[string]*refusalNote // by cause
}

type refusalNote struct {
	written time.Time
	since   int
}

// refusalInterval is the least time between two lines of one cause. Strangers choose their certificates, so
// limits.LogCauses bounds the causes within it.
const refusalInterval = time.Minute

// note calls `write` with the number of refusals, unless one of the same cause was written within the minute. The cause is
// the reason and the subject; with too many causes, the reason alone.
func (r *refusalLog) note(reason, subject string, write func(count int)) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	cause := reason + " " + subject
	if r.notes[cause] == nil && len(r.notes) >= limits.LogCauses && !r.removeOld(now) {
		cause = reason
	}
	n := r.notes[cause]
	if n == nil {
		if r.notes == nil {
			r.notes = map[string]*refusalNote{}
		}
		n = &refusalNote{}
		r.notes[cause] = n
	}
	n.since++
	if now.Sub(n.written) >= refusalInterval {
		write(n.since)
		n.written, n.since = now, 0
	}
}

// removeOld removes the causes without a line within the interval, and reports whether there were any.
func (r *refusalLog) removeOld(now time.Time) bool {
	before := len(r.notes)
	for cause, n := range r.notes {
		if now.Sub(n.written) >= refusalInterval {
			delete(r.notes, cause)
		}
	}
	return len(r.notes) < before
}
