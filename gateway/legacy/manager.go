package legacy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
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

// NewManager creates a manager without listeners. The heartbeat connection requires fleet.Interceptors.
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
