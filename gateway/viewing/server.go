// Package viewing is the gateway's second HTTPS server: what people and products look at. It answers
// GET /status, serves the dashboard, and lets it read the API. Nothing can be changed through it.
package viewing

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"muster.example/gateway/dashboard"
	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/rest"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
)

// Settings of the server and of the runs' own listeners.
type Settings struct {
	Host                string // of runs' own listeners
	FirstPort, LastPort int    // of those; 0, 0: any
	MaxConnections      int
	Origins             []string // of pages elsewhere that may read the status; none: no CORS
}

// Server answers on the fleet's status listener and on those of runs. Safe for concurrent use.
type Server struct {
	settings Settings
	// connection is that of the status service, for answers that are read only as far as they have to be.
	connection grpc.ClientConnInterface
	status     musterv1.StatusServiceClient
	api        *rest.Server
	pages      http.Handler
	sessions   *Sessions
	keys       *fleet.Keystore
	revoked    *fleet.Revoked
	metrics    *inspect.Metrics
	log        *slog.Logger
	// writeLimit is how long each writePiece of an answer may take to get out: who reads none is let go.
	writeLimit time.Duration
}

// New serves what the status service says, and the API to whom it knows.
func New(settings Settings, status grpc.ClientConnInterface, api *rest.Server, sessions *Sessions, keys *fleet.Keystore,
	revoked *fleet.Revoked, metrics *inspect.Metrics, log *slog.Logger) *Server {
	return &Server{settings: settings, connection: status, status: musterv1.NewStatusServiceClient(status), api: api, pages: dashboard.Handler(), sessions: sessions, keys: keys,
		revoked: revoked, metrics: metrics, log: log, writeLimit: 30 * time.Second}
}

// TLS settings of the fleet's status listener. Who shows no certificate may come with a session. A run's
// viewer is verified through its run's authority, which the fleet's root vouches for and holds to its run.
func (s *Server) TLS() *tls.Config { return s.keys.ServerTLS(tls.VerifyClientCertIfGiven) }

// Route is one path that the server answers itself.
type Route struct {
	Method, Path string
}

// Routes are all of them, written as in the OpenAPI document; pages and what reads the API come besides.
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
		s.as(counted, r, s.callerOf(r), func(r *http.Request, p *party) { s.serveStatus(counted, r, runFor(p, r)) })
	case strings.HasPrefix(r.URL.Path, "/api/"):
		s.as(counted, r, s.callerOf(r), func(r *http.Request, _ *party) { s.serveAPI(counted, r) })
	default:
		s.pages.ServeHTTP(counted, r)
	}
}

// routeOf is a label with few values.
func routeOf(r *http.Request) string {
	switch {
	case r.URL.Path == "/status", r.URL.Path == "/login", r.URL.Path == "/logout":
		return r.URL.Path
	case strings.HasPrefix(r.URL.Path, "/api/"):
		return "/api/"
	}
	return "page"
}

// callerOf gives who asks: whom the certificate names, or whom the session stands for. Nil: nobody.
func (s *Server) callerOf(r *http.Request) *party {
	if len(r.TLS.PeerCertificates) == 0 {
		return s.sessions.of(r)
	}
	return s.certified(r.TLS.PeerCertificates[0])
}

// certified gives whom a verified certificate of the fleet names; nil if that is nobody who may look: what
// delivers or serves has no business here.
func (s *Server) certified(leaf *x509.Certificate) *party {
	id, err := peer.FromCertificate(leaf)
	if err != nil || id.Fleet != s.keys.Identity().Fleet || id.Kind != peer.User && id.Kind != peer.Viewer {
		return nil
	}
	return &party{id: id, certificate: leaf}
}

// as serves a request for a caller, as long as that one is not revoked.
func (s *Server) as(w http.ResponseWriter, r *http.Request, p *party, serve func(*http.Request, *party)) {
	if p == nil {
		s.metrics.RefusedIdentities.WithLabelValues("status").Inc()
		if len(r.TLS.PeerCertificates) == 0 {
			rest.AnswerProblem(w, http.StatusUnauthorized, rest.CertificateMissing())
			return
		}
		rest.AnswerProblem(w, http.StatusForbidden, rest.ViewersOnly())
		return
	}
	ctx, done, err := s.revoked.Begin(r.Context(), p.certificate, p.id)
	if err != nil {
		s.metrics.RefusedIdentities.WithLabelValues("status").Inc()
		rest.AnswerProblem(w, http.StatusForbidden, rest.RevokedIdentity(p.id.URI))
		return
	}
	defer done()
	serve(r.WithContext(fleet.WithIdentity(ctx, p.id.URI)), p)
}

// runFor gives the run that a caller sees: its own; operators may name one, or see the newest.
func runFor(p *party, r *http.Request) string {
	if p.id.Run != "" {
		return p.id.Run
	}
	return r.URL.Query().Get("run")
}

// serveAPI lets a caller read the API. The services decide what each may see.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		rest.AnswerProblem(w, http.StatusMethodNotAllowed, rest.ListenerIsReadOnly())
		return
	}
	s.api.ServeAs(w, r)
}

// login makes a session of a link that `muster dashboard` printed, once.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	session := ""
	if r.Method == http.MethodGet {
		session = s.sessions.Open(r.URL.Query().Get("token"))
	}
	if session == "" {
		http.Error(w, "This link was used already, or is older than a minute. Get a new one: muster dashboard.", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: session, Path: "/", MaxAge: int(sessionLife.Seconds()),
		HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout ends the browser's session.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	s.sessions.end(r)
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode})
	w.WriteHeader(http.StatusNoContent)
}

// allowOrigin lets pages of configured origins read the status; true if the request was a browser's question
// whether it may, and is answered.
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
