// Package viewing is the gateway's second HTTPS server, for people and products. It answers GET /status, and serves the
// dashboard with read access to the API. It is read-only.
package viewing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"

	"muster.example/gateway/dashboard"
	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
)

// Settings of the server and of the runs' own listeners.
type Settings struct {
	Host                string // of runs' own listeners
	FirstPort, LastPort int    // of those; 0, 0: any
	Connections         listen.Limits
	Floods              *listen.Floods
	Origins             []string // of other pages that may read the status; none: no CORS
}

// Server serves the fleet's status listener and those of runs. Safe for concurrent use.
type Server struct {
	settings Settings
	// connection is the status service's, for responses that are parsed only partially.
	connection grpc.ClientConnInterface
	status     musterv1.StatusServiceClient
	changes    *changes
	api        *rest.Server
	pages      http.Handler
	sessions   *Sessions
	watches    *rest.Watches
	snapshots  *snapshots
	keys       *fleet.Keystore
	revoked    *fleet.Revoked
	metrics    *inspect.Metrics
	log        *slog.Logger
}

// New creates a server of the status service's data and the API.
func New(settings Settings, status grpc.ClientConnInterface, api *rest.Server, sessions *Sessions, watches *rest.Watches, keys *fleet.Keystore,
	revoked *fleet.Revoked, metrics *inspect.Metrics, log *slog.Logger) *Server {
	s := &Server{settings: settings, connection: status, status: musterv1.NewStatusServiceClient(status), api: api, pages: dashboard.Handler(), sessions: sessions, watches: watches, keys: keys,
		revoked: revoked, metrics: metrics, log: log}
	s.changes = newChanges(s.status, log)
	s.snapshots = newSnapshots(s.fetch, watches.Load())
	return s
}

// TLS returns the settings of the fleet's status listener. A client without a certificate may have a session. A run's
// viewer is verified through its run CA, which chains to the fleet's root CA and is constrained to its run.
func (s *Server) TLS() *tls.Config { return s.keys.ServerTLS(tls.VerifyClientCertIfGiven) }

// Route is one path that the server answers itself.
type Route struct {
	Method, Path string
}

// Routes are these paths, written as in the OpenAPI document; the pages and the API are additional.
var Routes = []Route{
	{http.MethodGet, "/status"}, {http.MethodHead, "/status"}, {http.MethodGet, "/login"}, {http.MethodPost, "/logout"},
}

// ServeHTTP implements http.Handler, for the fleet's status listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	counted := rest.NewRecorder(w)
	defer func() { s.metrics.Requests.WithLabelValues("status", routeOf(r), strconv.Itoa(counted.Code())).Inc() }()
	switch {
	case r.URL.Path == "/login":
		s.login(counted, r)
	case r.URL.Path == "/logout":
		s.logout(counted, r)
	case r.URL.Path == "/status":
		if s.allowOrigin(counted, r) {
			return
		}
		s.serveAs(counted, r, s.callerOf(r), func(r *http.Request, p *caller) { s.serveStatus(counted, r, runFor(p, r)) })
	case strings.HasPrefix(r.URL.Path, "/api/"):
		s.serveAs(counted, r, s.callerOf(r), func(r *http.Request, _ *caller) { s.serveAPI(counted, r) })
	default:
		s.pages.ServeHTTP(counted, r)
	}
}

// routeOf returns a label with few values.
func routeOf(r *http.Request) string {
	switch {
	case r.URL.Path == "/status", r.URL.Path == "/login", r.URL.Path == "/logout":
		return r.URL.Path
	case strings.HasPrefix(r.URL.Path, "/api/"):
		return "/api/"
	}
	return "page"
}

// callerOf returns the identity of the certificate or the session, or nil.
func (s *Server) callerOf(r *http.Request) *caller {
	if len(r.TLS.PeerCertificates) == 0 {
		return s.sessions.of(r)
	}
	return s.callerOfCertificate(r.TLS.PeerCertificates[0])
}

// callerOfCertificate returns the identity of a verified certificate of the fleet; nil if its role may not read the status, such
// as a sidecar or a service.
func (s *Server) callerOfCertificate(leaf *x509.Certificate) *caller {
	id, err := peer.FromCertificate(leaf)
	if err != nil || id.Fleet != s.keys.Identity().Fleet || id.Kind != peer.User && id.Kind != peer.Viewer {
		return nil
	}
	return &caller{id: id, certificate: leaf}
}

var errNoViewer = errors.New("its role may not read the status")

// serveAs serves a request for a caller, unless or until it is revoked.
func (s *Server) serveAs(w http.ResponseWriter, r *http.Request, p *caller, serve func(*http.Request, *caller)) {
	if p == nil {
		if len(r.TLS.PeerCertificates) == 0 {
			s.metrics.RefusedIdentities.WithLabelValues("status").Inc()
			rest.AnswerProblem(w, http.StatusUnauthorized, rest.CertificateMissing())
			return
		}
		s.metrics.RefusedIdentity("status", s.log, listen.Describe(r.TLS.PeerCertificates[0]), r.RemoteAddr, errNoViewer)
		rest.AnswerProblem(w, http.StatusForbidden, rest.ViewersOnly())
		return
	}
	ctx, done, err := s.revoked.Begin(r.Context(), p.certificate, p.id)
	if err != nil {
		s.metrics.RefusedIdentity("status", s.log, p.id.URI, r.RemoteAddr, err)
		rest.AnswerProblem(w, http.StatusForbidden, rest.RevokedIdentity(p.id.URI))
		return
	}
	defer done()
	serve(r.WithContext(fleet.WithClient(ctx, p.certificate, p.id)), p)
}

// runFor returns the run that a caller sees: its own; operators may name one, or see the newest.
func runFor(p *caller, r *http.Request) string {
	if p.id.Run != "" {
		return p.id.Run
	}
	return r.URL.Query().Get("run")
}

// serveAPI forwards read requests to the API. The services decide what each caller may see.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		rest.AnswerProblem(w, http.StatusMethodNotAllowed, rest.ListenerIsReadOnly())
		return
	}
	s.api.ServeAs(w, r)
}

// login exchanges a link of `muster dashboard` for a session, once.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	session := ""
	if r.Method == http.MethodGet {
		session = s.sessions.Open(r.URL.Query().Get("token"))
	}
	if session == "" {
		http.Error(w, "This link was used already, or is older than a minute. Run muster dashboard for a new one.", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: session, Path: "/", MaxAge: int(limits.SessionTime.Seconds()),
		HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout ends the browser's session.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	s.sessions.end(r)
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode})
	w.WriteHeader(http.StatusNoContent)
}

// allowOrigin sets the CORS headers for configured origins; it returns true if it has answered a preflight request.
func (s *Server) allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(s.settings.Origins, origin) {
		return false
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Allow-Credentials", "true")
	w.Header().Set("Access-Control-Expose-Headers", "ETag")
	w.Header().Add("Vary", "Origin")
	if r.Method != http.MethodOptions {
		return false
	}
	w.Header().Set("Access-Control-Allow-Methods", "GET")
	w.Header().Set("Access-Control-Allow-Headers", "If-None-Match")
	w.WriteHeader(http.StatusNoContent)
	return true
}
