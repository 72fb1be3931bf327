package legacy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/listen"
	"muster.example/gateway/runs"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
)

// Settings of all listeners of runs.
type Settings struct {
	Host                string
	FirstPort, LastPort int // of runs with a separate port; 0, 0: any
	SharedPort          int // of runs with host names; 0: any
	Hold                time.Duration
	MaxResultBytes      int64
	Connections         listen.Limits
}

// Manager keeps one listener open for each run until its run CA is deleted. It implements runs.Follower. Safe for
// concurrent use.
type Manager struct {
	settings   Settings
	listeners  musterv1.ListenerServiceClient
	deliver    Deliverer
	heartbeats musterv1.HeartbeatServiceClient
	sockets    *listen.Sockets
	ports      *ports
	// refused handles refused handshakes of clients that do not belong to a run.
	refused func(reason string, remote net.Addr, err error)
	revoked *fleet.Revoked
	metrics *inspect.Metrics
	probes  *inspect.Probes
	log     *slog.Logger

	living context.Context // the context of deliveries
	kill   context.CancelFunc

	mu           sync.Mutex
	runListeners map[string]*runListener
	closed       bool
	ended        sync.WaitGroup
}

// NewManager creates a manager without listeners. The connections for deliveries and heartbeats require fleet.Interceptors.
func NewManager(settings Settings, listeners musterv1.ListenerServiceClient, deliver Deliverer,
	heartbeats musterv1.HeartbeatServiceClient, sockets *listen.Sockets, revoked *fleet.Revoked, metrics *inspect.Metrics, probes *inspect.Probes, log *slog.Logger) *Manager {
	living, kill := context.WithCancel(context.Background())
	m := &Manager{
		settings: settings, listeners: listeners, deliver: deliver, heartbeats: heartbeats, sockets: sockets, revoked: revoked,
		metrics: metrics, probes: probes, log: log, living: living, kill: kill, runListeners: map[string]*runListener{},
		refused: metrics.RefusedHandshake("run", log),
	}
	m.ports = &ports{
		host: settings.Host, usual: settings.SharedPort, sockets: sockets, options: m.options(m.refused),
		awaited: m.awaited, open: map[int]*listen.Shared{},
	}
	return m
}

func (m *Manager) options(refused func(reason string, remote net.Addr, err error)) listen.Options {
	return listen.Options{Limits: m.settings.Connections, PlainHTTP: plainHTTPHelp, Refused: refused, Shared: peer.IsShared,
		Open: m.metrics.Connections.WithLabelValues("run"), Handshaking: m.metrics.Handshakes.WithLabelValues("run"),
		TooMany: listen.Answer{Code: http.StatusServiceUnavailable, ContentType: "text/plain; charset=utf-8", Body: tooManyText}}
}

// tooManyText is the answer for a sender with too many connections. Old workers retry after 503.
const tooManyText = "this sender has too many connections (TOO_MANY_CONNECTIONS): close some, and send the result again\n"

// awaited reports whether a name has the id of a run whose listener is about to open: after a restart, clients may
// connect before it does.
func (m *Manager) awaited(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for run, d := range m.runListeners {
		if strings.Contains(name, run) && d.ctx.Err() == nil && !d.listening.Load() {
			return true
		}
	}
	return false
}

// Snapshot implements runs.Follower.
func (m *Manager) Snapshot(all []*musterv1.Run, revoked []string) {
	m.metrics.FeedEvents.Inc()
	m.revoked.Replace(revoked)
	listed := map[string]bool{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, run := range all { // all of them before a listener opens, because awaited needs them
		listed[run.Id] = true
		m.changed(run)
	}
	for run, d := range m.runListeners {
		if !listed[run] {
			d.stop(errAuthorityDeleted)
		}
	}
}

// Changed implements runs.Follower.
func (m *Manager) Changed(run *musterv1.Run) {
	m.metrics.FeedEvents.Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed(run)
}

// changed opens a listener for a run without one. The lock is held.
func (m *Manager) changed(run *musterv1.Run) {
	d := m.runListeners[run.Id]
	if d == nil {
		if m.closed || runs.AuthorityEnd(run).Before(time.Now()) {
			return
		}
		d = newRunListener(m, run.Id)
		m.runListeners[run.Id] = d
		m.ended.Add(1)
		go d.maintain()
	}
	d.update(run)
}

// releaseFor closes the separate port of the run that ended first, up to an hour early, and returns the port; 0 if there
// is none, or if `next` has ended itself. Late clients of that run get no answer any more, which matters less than a run
// without a listener.
func (m *Manager) releaseFor(ctx context.Context, next *runListener) (int, error) {
	d := m.firstEnded(next)
	if d == nil {
		return 0, nil
	}
	if _, err := m.listeners.ReleaseListener(ctx, &musterv1.ReleaseListenerRequest{Run: d.run}); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		d.releasedFor = nil
		return 0, err
	}
	d.stop(errAuthorityDeleted)
	select {
	case <-d.done:
		return d.port, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// firstEnded returns the listener to release for `next`, or nil: one that is closing for it since an earlier attempt, or
// that of the run that ended first.
func (m *Manager) firstEnded(next *runListener) (first *runListener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !next.endTime.IsZero() {
		return nil
	}
	for _, d := range m.runListeners {
		if d.releasedFor == next {
			return d
		}
		if d.port == 0 || d.endTime.IsZero() || d.releasedFor != nil || d.ctx.Err() != nil {
			continue
		}
		if first == nil || d.endTime.Before(first.endTime) {
			first = d
		}
	}
	if first != nil {
		first.releasedFor = next
	}
	return first
}

// setPort records the separate port of a run.
func (m *Manager) setPort(d *runListener, port int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d.port = port
}

// holders names the runs that have not ended and have a separate port.
func (m *Manager) holders() string {
	const named = 3
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for id, d := range m.runListeners {
		if d.port != 0 && d.endTime.IsZero() {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return "by other programs, or by runs that have ended"
	}
	slices.Sort(ids)
	if more := len(ids) - named; more > 0 {
		return fmt.Sprintf("by the runs %s and %d more, which have not ended", strings.Join(ids[:named], ", "), more)
	}
	return fmt.Sprintf("by the runs %s, which have not ended", strings.Join(ids, ", "))
}

// Deleted implements runs.Follower.
func (m *Manager) Deleted(run string) {
	m.metrics.FeedEvents.Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.runListeners[run]; d != nil {
		d.stop(errAuthorityDeleted)
	}
}

// Revoked implements runs.Follower.
func (m *Manager) Revoked(subject string) {
	m.metrics.FeedEvents.Inc()
	m.revoked.Add(subject)
}

// Connected implements runs.Follower.
func (m *Manager) Connected(ok bool, fault string) {
	m.probes.Set("changes of the aggregator", fault)
	m.metrics.FeedConnected.Set(0)
	if ok {
		m.metrics.FeedConnected.Set(1)
	}
}

// forget removes an ended listener.
func (m *Manager) forget(d *runListener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runListeners[d.run] == d {
		delete(m.runListeners, d.run)
	}
	close(d.done)
	m.ended.Done()
}

// Close stops accepting, and returns when all deliveries have ended or, at the context's end, were cancelled. A
// cancelled delivery was not acknowledged: its sender still has the result.
func (m *Manager) Close(ctx context.Context) {
	m.mu.Lock()
	m.closed = true
	for _, d := range m.runListeners {
		d.stop(errRestarting)
	}
	m.mu.Unlock()
	m.ports.close()
	stopKill := context.AfterFunc(ctx, m.kill)
	m.ended.Wait()
	stopKill()
	m.kill()
}
