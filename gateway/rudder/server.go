// Package rudder speaks the relay API of Rudder, as released relays do: the strict dialect of docs/relay.md.
package rudder

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.example/gateway/config"
)

const uploadsAtOnce = 64

// Options of a Server.
type Options struct {
	Config  *config.Rudder
	Version string
	// Configuration reads the gateway's configuration file again and says what is wrong with it.
	Configuration func() error
	// Requests counts answers by listener, route and code.
	Requests *prometheus.CounterVec
	Log      *slog.Logger
}

// Server answers Rudder's relay API. Safe for concurrent use.
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
	metrics       http.Handler

	runs    chan struct{} // one token for each remote run
	uploads chan struct{} // one for each upload of a shared file
	living  context.Context
	stop    context.CancelFunc
	working sync.WaitGroup // remote runs, and the sweep
}

// New reads the files that the configuration names. What is wrong with one is an error.
func New(o Options) (*Server, error) {
	s := &Server{
		config: o.Config, version: o.Version, configuration: o.Configuration, requests: o.Requests, log: o.Log,
		runs: make(chan struct{}, o.Config.RemoteRuns), uploads: make(chan struct{}, uploadsAtOnce),
	}
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
	if s.store, err = openStore(s.config.SharedFiles, s.log); err != nil {
		return nil, err
	}
	s.metrics = s.newMetrics()
	s.living, s.stop = context.WithCancel(context.Background())
	s.working.Go(func() { s.store.sweepAlways(s.living, s.config.SharedFilesSweep) })
	return s, nil
}

// Reload takes over what the files about nodes and peers say now. If one is wrong, all stays as it was.
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

// Close ends remote runs and waits for them, for as long as the context lasts.
func (s *Server) Close(ctx context.Context) {
	s.stop()
	ended := make(chan struct{})
	go func() {
		s.working.Wait()
		s.store.close()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		s.log.Warn("remote runs do not end and are left behind")
	}
}

// TLS gives the listener's own settings. Certificates of clients are asked for, and judged with each request:
// what must be shown depends on the path, and who is trusted changes with a reload.
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

func (s *Server) pinning() bool { return s.config.PeerAuthentication == "cert_pinning" }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noted := &notedWriter{ResponseWriter: w, code: http.StatusOK}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // an earlier answer may have left one
	route := "none"
	defer func() { s.requests.WithLabelValues("rudder", route, strconv.Itoa(noted.code)).Inc() }()
	path := r.URL.EscapedPath()
	if path == "/metrics" {
		if route = "metrics"; s.admitted(noted, r, placeLocal) {
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

// decode gives the segments of a path, each without its percent signs.
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

// route hands a request to what answers it, and gives that a name for the metrics.
func (s *Server) route(w http.ResponseWriter, r *http.Request, path string, segments []string) string {
	switch count := len(segments); {
	case path == "remote-run/all", path == "remote-run/nodes",
		segments[0] == "remote-run" && count == 3 && segments[1] == "nodes" && segments[2] != "":
		if s.admitted(w, r, placeRemoteRun) {
			s.serveRemoteRun(w, r, strings.Join(segments[1:], "/"))
		}
	case segments[0] == "shared-files" && count == 4 && segments[1] != "" && segments[2] != "" && segments[3] != "":
		if s.admitted(w, r, placeSharedFiles) {
			s.serveSharedFiles(w, r, sharedID{segments[1], segments[2], segments[3]})
		}
	case segments[0] == "shared-folder" && count > 1:
		if s.admitted(w, r, placeSharedFolder) {
			s.serveSharedFolder(w, r, strings.Join(segments[1:], "/"))
		}
	case path == "system/info", path == "system/status", path == "system/reload":
		if s.admitted(w, r, placeLocal) {
			s.serveSystem(w, r, segments[1])
		}
	default:
		notFound(w)
		return "none"
	}
	return segments[0]
}

// notedWriter remembers the code of an answer.
type notedWriter struct {
	http.ResponseWriter
	code int
}

func (n *notedWriter) WriteHeader(code int) {
	n.code = code
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (n *notedWriter) Unwrap() http.ResponseWriter { return n.ResponseWriter }
