package rudder

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// envelope is the form of all answers of system/.
type envelope struct {
	Result string `json:"result"`
	Action string `json:"action"`
	Data   any    `json:"data,omitempty"`
	Error  string `json:"errorDetails,omitempty"`
}

type systemInfo struct {
	Major string `json:"major-version"`
	Full  string `json:"full-version"`
}

type systemStatus struct {
	Configuration check `json:"configuration"`
}

// check is the state of one component.
type check struct {
	Status  string `json:"status"`
	Details string `json:"details,omitempty"`
}

// serveSystem answers GET system/info, GET system/status and POST system/reload.
func (s *Server) serveSystem(w http.ResponseWriter, r *http.Request, call string) {
	switch r.Method + " " + call {
	case "GET info":
		major, rest, _ := strings.Cut(s.version, ".")
		minor, _, _ := strings.Cut(rest, ".")
		answerJSON(w, http.StatusOK, envelope{Result: "success", Action: "getSystemInfo",
			Data: systemInfo{Major: major + "." + minor, Full: s.version}})
	case "GET status":
		configuration := check{Status: "success"}
		if err := s.configuration(); err != nil {
			configuration = check{Status: "error", Details: err.Error()}
		}
		answerJSON(w, http.StatusOK, envelope{Result: "success", Action: "getStatus", Data: systemStatus{configuration}})
	case "POST reload":
		if err := s.Reload(); err != nil {
			s.log.Error("not reloaded: the old state is kept", "error", err)
			answerJSON(w, http.StatusInternalServerError,
				envelope{Result: "error", Action: "reloadConfiguration", Error: err.Error()})
			return
		}
		answerJSON(w, http.StatusOK, envelope{Result: "success", Action: "reloadConfiguration"})
	default:
		notFound(w)
	}
}

func answerJSON(w http.ResponseWriter, code int, content envelope) {
	text, err := json.Marshal(content)
	if err != nil {
		answer(w, http.StatusInternalServerError, "INTERNAL SERVER ERROR")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// newMetrics returns the families that released relays export, and our additions. Reports and inventories do not pass
// through the gateway: their counters remain zero, for existing dashboards.
func (s *Server) newMetrics() http.Handler {
	const prefix = "rudder_relayd_"
	registry := prometheus.NewRegistry()
	for name, statuses := range map[string][]string{
		"reports_total":     {"ok", "error", "invalid", "forward_ok", "forward_error"},
		"inventories_total": {"forward_ok", "forward_error"},
	} {
		family := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name,
			Help: "Always zero: they do not pass through this gateway."}, []string{"status"})
		for _, status := range statuses {
			family.WithLabelValues(status)
		}
		registry.MustRegister(family)
	}
	gauge := func(name, help string, read func() int) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(read()) }))
	}
	gauge(prefix+"managed_nodes_total", "Nodes attached to this relay.", func() int { return len(s.state.Load().children()) })
	gauge(prefix+"sub_nodes_total", "All descendants of this relay.", func() int { return len(s.state.Load().nodes) })
	gauge("muster_rudder_remote_runs", "Active remote runs.", func() int { return len(s.runs) })
	gauge("muster_rudder_uploads", "Incoming shared files.", func() int { return len(s.uploads) })
	gauge("muster_rudder_shared_bytes", "Bytes of shared files, including incoming ones.", func() int {
		used, _ := s.store.space.state()
		return int(used)
	})
	gauge("muster_rudder_spooled", "Shared files in transit to the policy server.", s.spool.waiting)
	for _, state := range []string{stateDelivered, stateRefused, stateExpired} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "muster_rudder_spool_outcomes_total",
			Help: "Spooled shared files by outcome.", ConstLabels: prometheus.Labels{"state": state}},
			func() float64 { return float64(s.spool.outcomes(state)) }))
	}
	registry.MustRegister(
		prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + "reports_processing_duration_seconds",
			Help: "Always empty: reports do not pass through this gateway."}),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// serveMetrics answers GET /metrics, with the content type of released relays.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		notFound(w)
		return
	}
	s.metrics.ServeHTTP(&typedWriter{ResponseWriter: w}, r)
}

// typedWriter overrides the type that the library sets.
type typedWriter struct{ http.ResponseWriter }

func (t *typedWriter) WriteHeader(code int) {
	t.Header().Set("Content-Type", "application/octet-stream")
	t.ResponseWriter.WriteHeader(code)
}

func (t *typedWriter) Write(content []byte) (int, error) {
	t.Header().Set("Content-Type", "application/octet-stream")
	return t.ResponseWriter.Write(content)
}
