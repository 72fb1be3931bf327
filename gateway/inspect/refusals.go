package inspect

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"muster.example/gateway/listen"
	"muster.example/gateway/logs"
)

// RefusedHandshake returns a callback for listen.Options.Refused. It counts for a listener, and logs at most one line
// per minute for each reason and certificate with their number: a client with a certificate of another run may dial for
// hours, and does not hide others. Connections that went away or timed out are logged at level debug: health checks connect
// and close. Safe for concurrent use.
func (m *Metrics) RefusedHandshake(listener string, log *slog.Logger) func(reason string, remote net.Addr, err error) {
	limited := &logs.Limiter{}
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
		limited.Note(reason, subject, func(count int) {
			log.Log(context.Background(), level, "connection refused", "reason", reason, "remote", remote.String(), "count", count, "error", err)
		})
	}
}

// ClosedConnection returns a callback for listen.Options.Closed. It counts for a listener, and logs at most one line per
// minute for each reason and source. Safe for concurrent use.
func (m *Metrics) ClosedConnection(listener string, log *slog.Logger) func(reason, source string, remote net.Addr) {
	limited := &logs.Limiter{}
	for _, reason := range listen.FloodReasons() {
		m.ClosedConnections.WithLabelValues(listener, reason) // present before the first, so that its increase is visible
	}
	return func(reason, source string, remote net.Addr) {
		m.ClosedConnections.WithLabelValues(listener, reason).Inc()
		limited.Note(reason, source, func(count int) {
			log.Warn("connection closed because of too many HTTP/2 frames", "reason", reason, "source", source, "remote", remote.String(), "count", count)
		})
	}
}

// RefusedIdentity counts a request that is refused because of its certificate, such as a revoked one, and logs it with the
// same limit.
func (m *Metrics) RefusedIdentity(listener string, log *slog.Logger, subject, remote string, why error) {
	m.RefusedIdentities.WithLabelValues(listener).Inc()
	m.refusedIdentities.Note(listener, subject, func(count int) {
		log.Warn("identity refused", "uri", subject, "remote", remote, "count", count, "error", why)
	})
}

// RefusedByLimit counts a request above a limit, and logs the client that holds too much, with the same limit.
func (m *Metrics) RefusedByLimit(log *slog.Logger, limit, holder, remote string) {
	m.LimitRefusals.WithLabelValues(limit).Inc()
	m.refusedByLimit.Note(limit, holder, func(count int) {
		log.Warn("request refused because of a limit", "limit", limit, "holder", holder, "remote", remote, "count", count)
	})
}
