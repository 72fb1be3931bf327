// Package inspect serves metrics and probes on a separate loopback port.
package inspect

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"muster.example/gateway/logs"
)

// Metrics of the gateway. docs/operating.md lists them.
type Metrics struct {
	registry            *prometheus.Registry
	Requests            *prometheus.CounterVec // listener, route, code
	RefusedHandshakes   *prometheus.CounterVec // listener, reason
	RefusedIdentities   *prometheus.CounterVec // listener
	ClosedConnections   *prometheus.CounterVec // listener, reason
	DeliveriesActive    prometheus.Gauge
	DeliveredBytes      prometheus.Counter
	ReadBytes           prometheus.Counter
	BrokenReads         prometheus.Counter
	EventStreams        prometheus.Gauge
	RunListeners        prometheus.Gauge
	RunListenerFaults   prometheus.Counter
	CertificateExpires  prometheus.Gauge
	CertificateFailures prometheus.Counter
	Connections         *prometheus.GaugeVec   // listener
	Handshakes          *prometheus.GaugeVec   // listener
	LimitRefusals       *prometheus.CounterVec // reason
	Watches             prometheus.Gauge
	RequestSeconds      *prometheus.HistogramVec // listener
	FeedConnected       prometheus.Gauge
	FeedEvents          prometheus.Counter
	TunnelsClosed       *prometheus.CounterVec // reason
	TunnelBytes         *prometheus.CounterVec // direction

	refusedIdentities, refusedByLimit logs.Limiter
}

// NewMetrics registers all metrics, including those of the Go runtime.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_gateway_" + name, Help: help})
		registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_gateway_" + name, Help: help})
		registry.MustRegister(g)
		return g
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_gateway_" + name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "muster_gateway_" + name, Help: help}, labels)
		registry.MustRegister(g)
		return g
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &Metrics{
		registry:            registry,
		Requests:            counters("requests_total", "Requests answered.", "listener", "route", "code"),
		RefusedHandshakes:   counters("refused_handshakes_total", "TLS handshakes that failed.", "listener", "reason"),
		RefusedIdentities:   counters("refused_identities_total", "Requests of certificates that are revoked or have no valid identity.", "listener"),
		ClosedConnections:   counters("closed_connections_total", "Connections that were closed because their clients sent too many frames of HTTP/2.", "listener", "reason"),
		DeliveriesActive:    gauge("deliveries_active", "Results of legacy clients in transit to the aggregator."),
		DeliveredBytes:      counter("delivered_bytes_total", "Bytes of results received from legacy clients."),
		ReadBytes:           counter("read_bytes_total", "Bytes of archives and results sent to readers."),
		BrokenReads:         counter("broken_reads_total", "Downloads aborted because of damaged or missing bytes."),
		EventStreams:        gauge("event_streams", "Clients that follow a run's status as server-sent events."),
		RunListeners:        gauge("run_listeners", "Open listeners of runs."),
		RunListenerFaults:   counter("run_listener_faults_total", "Failures to open a listener of a run."),
		CertificateExpires:  gauge("certificate_expires_timestamp_seconds", "Expiry of the gateway's certificate, in Unix time."),
		CertificateFailures: counter("certificate_failures_total", "Failures to obtain or load a new certificate."),
		Connections:         gauges("connections", "Open connections, also those in their handshake.", "listener"),
		Handshakes:          gauges("handshakes", "TLS handshakes in progress.", "listener"),
		LimitRefusals:       counters("limit_refusals_total", "Requests refused because of a limit of the gateway.", "reason"),
		Watches:             gauge("watches", "Clients that watch a run, a status or a job."),
		FeedConnected:       gauge("feed_connected", "1 while the gateway follows the aggregator's changes."),
		FeedEvents:          counter("feed_events_total", "Changes received from the aggregator."),
		TunnelsClosed:       counters("tunnels_closed_total", "Tunnels of agents and relays that have ended.", "reason"),
		TunnelBytes:         counters("tunnel_bytes_total", "Bytes passed through tunnels.", "direction"),
	}
	m.RequestSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "muster_gateway_request_seconds",
		Help: "Time of answers, without watches and downloads.", Buckets: []float64{.005, .02, .1, .5, 1, 2, 5, 10, 30}}, []string{"listener"})
	registry.MustRegister(m.RequestSeconds)
	for _, listener := range []string{"main", "status"} {
		m.RequestSeconds.WithLabelValues(listener)
	}
	for _, limit := range []string{"bodies", "downloads", "requests", "snapshots", "tunnels", "watches"} {
		m.LimitRefusals.WithLabelValues(limit)
	}
	for _, reason := range []string{"client", "protocol", "refused", "relay", "silent", "stopping", "unreachable"} {
		m.TunnelsClosed.WithLabelValues(reason)
	}
	for _, direction := range []string{"received", "sent"} {
		m.TunnelBytes.WithLabelValues(direction)
	}
	for _, listener := range []string{"main", "run", "status"} {
		m.RefusedIdentities.WithLabelValues(listener) // present before the first refusal, so that its increase is visible
	}
	return m
}

// Sample computes a value at each read of the metrics; `read` is safe for concurrent use. Each name may be used once.
func (m *Metrics) Sample(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "muster_gateway_" + name, Help: help}, read))
}

// Probes reports whether the gateway is ready. Safe for concurrent use.
type Probes struct {
	mu      sync.Mutex
	waiting map[string]string
}

// NewProbes waits for Set on each of the names.
func NewProbes(names ...string) *Probes {
	p := &Probes{waiting: map[string]string{}}
	for _, name := range names {
		p.waiting[name] = "not started"
	}
	return p
}

// Set sets the fault of a name; empty: none.
func (p *Probes) Set(name, fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fault == "" {
		delete(p.waiting, name)
	} else {
		p.waiting[name] = fault
	}
}

func (p *Probes) ready(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if len(p.waiting) == 0 {
		_, _ = w.Write([]byte("ready\n"))
		return
	}
	var lines strings.Builder
	for name, fault := range p.waiting {
		lines.WriteString("not ready: " + name + ": " + fault + "\n")
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(lines.String()))
}

// Server serves /metrics, /livez and /readyz.
func Server(m *Metrics, p *Probes) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("live\n")) })
	mux.HandleFunc("GET /readyz", p.ready)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
}
