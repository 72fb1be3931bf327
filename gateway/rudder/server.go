// Package rudder implements Rudder's relay API: in the strict dialect as released relays do, or in the extended one
// (docs/rudder.md).
package rudder

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.example/gateway/command"
	"muster.example/gateway/config"
	"muster.example/gateway/limits"
)

// Options of a Server.
type Options struct {
	Config  *config.Rudder
	Version string
	// Configuration reads the gateway's configuration file again and returns its error.
	Configuration func() error
	// Requests counts answers by listener, route and code.
	Requests *prometheus.CounterVec
	// Streams reaches attached nodes; nil: streams are not used.
	Streams *command.Runner
	// Pause returns the time before a retry of an upload; nil: back-off with jitter.
	Pause func(tries int) time.Duration
	Log   *slog.Logger
}

// timer is a *time.Timer that calls a function; tests replace it.
type timer interface {
	Stop() bool
	Reset(time.Duration) bool
}

// Server serves Rudder's relay API. Safe for concurrent use.
type Server struct {
	config        *config.Rudder
	version       string
	configuration func() error
	requests      *prometheus.CounterVec
	log           *slog.Logger
	self          string // this relay's id
	networks      networks
	state         atomic.Pointer[state]
	reloading     sync.Mutex
	store         *store
	spool         *spool
	streams       *command.Runner
	afterFunc     func(time.Duration, func()) timer // of the silence of child relays
	metrics       http.Handler

	runs    chan struct{} // one token for each remote run
	uploads chan struct{} // one for each upload of a shared file
	// senderUploads bounds those of each address or IPv6 network; uploads of more addresses wait for the tokens.
	senderUploads limits.Quota
	senders       chan struct{} // for each upload to the policy server
	askers        chan struct{} // for each request of an outcome
	living        context.Context
	stop          context.CancelCauseFunc
	working       sync.WaitGroup // remote runs, and the sweep
}

// New reads the files that the configuration names. An invalid file is an error.
func New(o Options) (*Server, error) {
	s := &Server{
		config: o.Config, version: o.Version, configuration: o.Configuration, requests: o.Requests, streams: o.Streams, log: o.Log,
		runs: make(chan struct{}, o.Config.RemoteRuns), uploads: make(chan struct{}, limits.Uploads),
		senders: make(chan struct{}, limits.Senders), askers: make(chan struct{}, limits.Askers),
		afterFunc: func(d time.Duration, f func()) timer { return time.AfterFunc(d, f) },
	}
	s.senderUploads = limits.Quota{All: math.MaxInt64, Each: int64(limits.UploadsOfAddress)}
	var err error
	if s.self, err = readID(s.config); err != nil {
		return nil, err
	}
	if s.networks, err = parseNetworks(s.config); err != nil {
		return nil, err
	}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	if s.store, err = openStore(s.config, s.log); err != nil {
		return nil, err
	}
	s.living, s.stop = context.WithCancelCause(context.Background())
	if err := s.openSpool(o.Pause); err != nil {
		s.stop(errStops)
		s.store.close()
		return nil, err
	}
	s.metrics = s.newMetrics()
	s.working.Go(func() { s.sweepAlways(s.config.SharedFilesSweep) })
	return s, nil
}

// openSpool loads pending uploads. The strict dialect has none.
func (s *Server) openSpool(pause func(tries int) time.Duration) error {
	if pause == nil {
		pause = retryPause
	}
	s.spool = &spool{
		store: s.store, log: s.log, life: s.config.SpoolTime, forward: s.forward, pause: pause, uploads: map[string]*upload{},
		newest: map[[3]string]*upload{}, sources: map[string]*queue{}, counts: map[string]int{}, living: s.living, working: &s.working,
	}
	if !s.extended() {
		return nil
	}
	return s.spool.open()
}

// sweepAlways removes expired files, immediately and after each interval.
func (s *Server) sweepAlways(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		s.store.sweep(s.living, time.Now())
		s.spool.forget(time.Now())
		select {
		case <-s.living.Done():
			return
		case <-ticker.C:
		}
	}
}

// Reload reads the files about nodes and peers again. If one is invalid, the old state is kept.
func (s *Server) Reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	fresh, err := loadState(s.config, s.self, s.log)
	if err != nil {
		return err
	}
	s.state.Store(fresh)
	s.log.Info("nodes list read", "nodes", len(fresh.nodes), "relay", s.self)
	return nil
}

// Close ends remote runs and waits for them, as long as the context lasts.
func (s *Server) Close(ctx context.Context) {
	s.stop(errStops)
	ended := make(chan struct{})
	go func() {
		s.working.Wait()
		s.store.close()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		s.log.Warn("remote runs did not finish before the stop")
	}
}

// TLS returns the listener's settings. Certificates of clients are requested here, and checked with each request: the
// requirement depends on the path, and the trusted certificates change with a reload.
func (s *Server) TLS() *tls.Config {
	oldest := uint16(tls.VersionTLS13)
	if s.config.TLSMinimum == "1.2" {
		oldest = tls.VersionTLS12
	}
	return &tls.Config{
		MinVersion: oldest, ClientAuth: tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.state.Load().own, nil },
		NextProtos:     []string{"http/1.1"}, SessionTicketsDisabled: true,
	}
}

func (s *Server) extended() bool { return s.config.Dialect == "extended" }

func (s *Server) pinning() bool { return s.config.PeerAuthentication == "cert_pinning" }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noted := &notedWriter{ResponseWriter: w, code: http.StatusOK}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // an earlier answer may have set one
	route := "none"
	defer func() { s.requests.WithLabelValues("rudder", route, strconv.Itoa(noted.code)).Inc() }()
	path := r.URL.EscapedPath()
	if path == "/metrics" {
		if route = "metrics"; s.admitted(noted, r, areaLocal) {
			s.serveMetrics(noted, r)
		}
		return
	}
	rest, below := strings.CutPrefix(path, basePath)
	if !below {
		notFound(noted)
		return
	}
	rest = strings.TrimPrefix(rest, "1/")
	segments, ok := decode(rest)
	if !ok {
		notFound(noted)
		return
	}
	route = s.route(noted, r, rest, segments)
}

// decode returns the segments of a path, percent-decoded.
func decode(path string) (segments []string, ok bool) {
	for segment := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, false
		}
		segments = append(segments, plain)
	}
	return segments, true
}

// route dispatches a request, and returns the route's name for the metrics.
func (s *Server) route(w http.ResponseWriter, r *http.Request, path string, segments []string) string {
	found := false
	switch segments[0] {
	case "remote-run":
		found = s.routeRun(w, r, path, segments[1:])
	case "shared-files":
		if !slices.Contains(segments, "") {
			found = s.routeFiles(w, r, segments[1:])
		}
	case "shared-folder":
		if found = len(segments) > 1; found && s.admitted(w, r, areaSharedFolder) {
			s.serveSharedFolder(w, r, strings.Join(segments[1:], "/"))
		}
	case "system":
		if found = slices.Contains([]string{"system/info", "system/status", "system/reload"}, path); found && s.admitted(w, r, areaLocal) {
			s.serveSystem(w, r, segments[1])
		}
	}
	if !found {
		notFound(w)
		return "none"
	}
	return segments[0]
}

// routeRun answers paths under remote-run/, and reports whether the path exists.
func (s *Server) routeRun(w http.ResponseWriter, r *http.Request, path string, below []string) bool {
	one := map[bool]string{false: "nodes", true: "node"}[s.extended()]
	single := len(below) == 2 && below[0] == one && below[1] != ""
	if path != "remote-run/all" && path != "remote-run/nodes" && !single {
		return false
	}
	if !s.admitted(w, r, areaRemoteRun) {
		return true
	}
	if !s.extended() {
		s.serveRemoteRun(w, r, strings.Join(below, "/"))
		return true
	}
	id := ""
	if single {
		id = below[1]
	}
	s.serveExtendedRun(w, r, below[0] == "all", id)
	return true
}

// routeFiles answers paths under shared-files/, and reports whether the path exists.
func (s *Server) routeFiles(w http.ResponseWriter, r *http.Request, below []string) bool {
	switch {
	case !s.extended() && len(below) == 3:
		if s.admitted(w, r, areaSharedFiles) {
			s.serveSharedFiles(w, r, sharedID{below[0], below[1], below[2]})
		}
	case s.extended() && len(below) == 3 && below[0] == "node":
		if s.admitted(w, r, areaSharedFiles) {
			s.serveShare(w, r, below[1], below[2])
		}
	case s.extended() && len(below) == 2 && below[0] == "uploads":
		if s.admitted(w, r, areaSharedFiles) {
			s.serveUpload(w, r, below[1])
		}
	default:
		return false
	}
	return true
}

// notedWriter records the code of an answer.
type notedWriter struct {
	http.ResponseWriter
	code int
}

func (n *notedWriter) WriteHeader(code int) {
	n.code = code
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap supports http.ResponseController.
func (n *notedWriter) Unwrap() http.ResponseWriter { return n.ResponseWriter }
