// Package inspect shows how the gateway is: metrics and probes on a loopback port of their own.
package inspect

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics of the gateway. docs/operating.md lists them.
type Metrics struct {
	registry            *prometheus.Registry
	Requests            *prometheus.CounterVec // listener, route, code
	RefusedHandshakes   *prometheus.CounterVec // listener, reason
	RefusedIdentities   *prometheus.CounterVec // listener
	DeliveriesActive    prometheus.Gauge
	DeliveredBytes      prometheus.Counter
	ReadBytes           prometheus.Counter
	BrokenReads         prometheus.Counter
	EventStreams        prometheus.Gauge
	RunListeners        prometheus.Gauge
	RunListenerFaults   prometheus.Counter
	CertificateExpires  prometheus.Gauge
	CertificateFailures prometheus.Counter
	FeedConnected       prometheus.Gauge
	FeedEvents          prometheus.Counter
}

// NewMetrics registers everything, with what Go knows of its own process.
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
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &Metrics{
		registry:            registry,
		Requests:            counters("requests_total", "Requests answered.", "listener", "route", "code"),
		RefusedHandshakes:   counters("refused_handshakes_total", "TLS handshakes that failed.", "listener", "reason"),
		RefusedIdentities:   counters("refused_identities_total", "Requests of certificates that are revoked or name nobody.", "listener"),
		DeliveriesActive:    gauge("deliveries_active", "Results of old clients on their way to the aggregator."),
		DeliveredBytes:      counter("delivered_bytes_total", "Bytes of results taken from old clients."),
		ReadBytes:           counter("read_bytes_total", "Bytes of archives and results given to readers."),
		BrokenReads:         counter("broken_reads_total", "Downloads broken off because the bytes were wrong or stopped coming."),
		EventStreams:        gauge("event_streams", "Clients that follow a run's status as server-sent events."),
		RunListeners:        gauge("run_listeners", "Open listeners of runs."),
		RunListenerFaults:   counter("run_listener_faults_total", "Times that a listener of a run could not be opened."),
		CertificateExpires:  gauge("certificate_expires_timestamp_seconds", "When the gateway's certificate ends, in Unix time."),
		CertificateFailures: counter("certificate_failures_total", "Times that a new certificate could not be had or taken over."),
		FeedConnected:       gauge("feed_connected", "1 while the gateway follows the aggregator's changes."),
		FeedEvents:          counter("feed_events_total", "Changes taken from the aggregator."),
	}
	for _, listener := range []string{"main", "run", "status"} {
		m.RefusedIdentities.WithLabelValues(listener) // there before the first: its increase can be seen
	}
	return m
}

// RefusedHandshake gives what listen.Options.Refused asks for: it counts for a listener, and notes in the log.
func (m *Metrics) RefusedHandshake(listener string, log *slog.Logger) func(reason string, remote net.Addr, err error) {
	return func(reason string, remote net.Addr, err error) {
		m.RefusedHandshakes.WithLabelValues(listener, reason).Inc()
		log.Debug("connection refused in the handshake", "reason", reason, "remote", remote.String(), "error", err)
	}
}

// Sample reads a figure each time that the metrics are read; `read` is safe for concurrent use. Each name once.
func (m *Metrics) Sample(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "muster_gateway_" + name, Help: help}, read))
}

// Probes says whether the gateway is ready. Safe for concurrent use.
type Probes struct {
	mu      sync.Mutex
	waiting map[string]string
}

// NewProbes waits for each of the named things until Set tells about it.
func NewProbes(names ...string) *Probes {
	p := &Probes{waiting: map[string]string{}}
	for _, name := range names {
		p.waiting[name] = "not started"
	}
	return p
}

// Set says what is wrong with a thing; empty: nothing.
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
