package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	"muster.example/gateway/fleet"
	"muster.example/gateway/gen"
	restv1 "muster.example/gateway/gen/muster/v1"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
)

// Server serves the main listener. Safe for concurrent use.
type Server struct {
	mux     *runtime.ServeMux
	bulk    *bulk
	keys    *fleet.Keystore
	revoked *fleet.Revoked
	metrics *inspect.Metrics
	log     *slog.Logger
	links   Links
	watches *Watches
	bodies  limits.Quota

	operations operations
}

// Links creates links that sign a browser in.
type Links interface {
	// New returns a URL that opens the dashboard once for the identity of the certificate, and its validity.
	New(certificate *x509.Certificate, id peer.Identity) (address string, life time.Duration)
}

// Services are the connections to which requests are forwarded; they require fleet.Interceptors. Without a status
// service, Status may be the aggregator's: its calls fail with UNIMPLEMENTED.
type Services struct {
	Aggregator, Status *grpc.ClientConn
	Relay, Jobs        grpc.ClientConnInterface
}

// New creates the server of the API.
func New(to Services, keys *fleet.Keystore, revoked *fleet.Revoked, links Links, watches *Watches,
	metrics *inspect.Metrics, log *slog.Logger) (*Server, error) {
	drop := func(string) (string, bool) { return "", false }
	s := &Server{keys: keys, revoked: revoked, links: links, watches: watches, metrics: metrics, log: log,
		bodies: limits.Quota{All: limits.Bodies, Each: limits.BodiesOfIdentity}}
	metrics.Sample("body_bytes", "Bytes of JSON of requests in progress.", func() float64 { return float64(s.bodies.Held()) })
	var err error
	if s.operations, err = newOperations(); err != nil {
		return nil, err
	}
	s.mux = runtime.NewServeMux(
		runtime.WithIncomingHeaderMatcher(drop), runtime.WithOutgoingHeaderMatcher(drop), runtime.WithOutgoingTrailerMatcher(drop),
		runtime.WithErrorHandler(grpcError), runtime.WithStreamErrorHandler(streamError),
		runtime.WithRoutingErrorHandler(s.operations.routingError), runtime.WithMiddlewares(s.check),
		runtime.WithForwardResponseRewriter(encodeStatus),
		runtime.WithDisablePathLengthFallback(), runtime.WithMarshalerOption(runtime.MIMEWildcard, newOneValue()),
	)
	s.bulk = newBulk(musterv1.NewResultServiceClient(to.Aggregator), musterv1.NewArchiveServiceClient(to.Aggregator), metrics, log)
	type register func(context.Context, *runtime.ServeMux, *grpc.ClientConn) error
	for _, r := range []register{
		restv1.RegisterRunServiceHandler, restv1.RegisterResultServiceHandler,
		restv1.RegisterArchiveServiceHandler, restv1.RegisterIdentityServiceHandler,
		restv1.RegisterEnrollmentServiceHandler, restv1.RegisterAuditServiceHandler,
	} {
		if err := r(context.Background(), s.mux, to.Aggregator); err != nil {
			return nil, err
		}
	}
	if err := restv1.RegisterStatusServiceHandler(context.Background(), s.mux, to.Status); err != nil {
		return nil, err
	}
	if err := restv1.RegisterHeartbeatServiceHandler(context.Background(), s.mux, to.Status); err != nil {
		return nil, err
	}
	if err := s.registerRelay(to.Relay); err != nil {
		return nil, err
	}
	if err := s.registerJobs(to.Jobs); err != nil {
		return nil, err
	}
	for _, route := range s.routes() {
		if err := s.mux.HandlePath(route.Method, route.Path, route.handle); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// registerRelay adds the calls that the root relay answers.
func (s *Server) registerRelay(relay grpc.ClientConnInterface) error {
	err := restv1.RegisterJobServiceHandlerClient(context.Background(), s.mux, musterv1.NewJobServiceClient(relay))
	if err != nil {
		return err
	}
	if err := restv1.RegisterAttachServiceHandlerClient(context.Background(), s.mux, musterv1.NewAttachServiceClient(relay)); err != nil {
		return err
	}
	return restv1.RegisterShareServiceHandlerClient(context.Background(), s.mux, musterv1.NewShareServiceClient(relay))
}

// registerJobs adds the calls that the jobs service answers.
func (s *Server) registerJobs(jobs grpc.ClientConnInterface) error {
	err := restv1.RegisterTemplateServiceHandlerClient(context.Background(), s.mux, musterv1.NewTemplateServiceClient(jobs))
	if err != nil {
		return err
	}
	if err := restv1.RegisterDeploymentServiceHandlerClient(context.Background(), s.mux, musterv1.NewDeploymentServiceClient(jobs)); err != nil {
		return err
	}
	if err := restv1.RegisterConformanceServiceHandlerClient(context.Background(), s.mux, musterv1.NewConformanceServiceClient(jobs)); err != nil {
		return err
	}
	if err := restv1.RegisterSecretServiceHandlerClient(context.Background(), s.mux, musterv1.NewSecretServiceClient(jobs)); err != nil {
		return err
	}
	return restv1.RegisterWorkspaceServiceHandlerClient(context.Background(), s.mux, musterv1.NewWorkspaceServiceClient(jobs))
}

// route is one hand-written route.
type route struct {
	Method, Path string
	handle       runtime.HandlerFunc
}

// routes returns all hand-written routes.
func (s *Server) routes() []route {
	const archive, result = "/api/v1/runs/{run}/archive/content", "/api/v1/runs/{run}/results/{plugin}/{node}/content"
	return []route{
		{http.MethodGet, "/api/v1/openapi.json", serveOpenAPI},
		{http.MethodPost, "/api/v1/dashboard-links", s.newLink},
		{http.MethodGet, archive, s.bulk.archive},
		{http.MethodHead, archive, s.bulk.archive},
		{http.MethodGet, result, s.bulk.result},
		{http.MethodHead, result, s.bulk.result},
	}
}

// newLink answers an operator with a link that signs a browser in.
func (s *Server) newLink(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	id, _ := fleet.IdentityOf(r.Context())
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 { // a session must not create others
		AnswerProblem(w, http.StatusForbidden, OperatorsOnly())
		return
	}
	// An unread body ends the HTTP/2 stream with a reset, which some clients treat as a failure.
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		answerFault(w, r, err)
		return
	}
	address, life := s.links.New(r.TLS.PeerCertificates[0], id)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(struct {
		URL     string `json:"url"`
		Seconds int    `json:"expires_in_seconds"`
	}{address, int(life.Seconds())})
}

func serveOpenAPI(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(gen.OpenAPI)
}

// TLS returns the settings of the main listener: all clients need a certificate that chains to the fleet's root CA.
func (s *Server) TLS() *tls.Config { return s.keys.ServerTLS(tls.RequireAndVerifyClientCert) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	answer := NewRecorder(w)
	uri := ""
	defer func() { // also when a panic aborts a download
		s.metrics.Requests.WithLabelValues("main", methodLabel(r.Method), strconv.Itoa(answer.code)).Inc()
		s.log.Debug("request", "method", r.Method, "path", r.URL.Path, "code", answer.code, "uri", uri,
			"seconds", time.Since(started).Seconds())
		if !isWatch(r.URL.Path) && !strings.HasSuffix(r.URL.Path, "/content") {
			s.metrics.RequestSeconds.WithLabelValues("main").Observe(time.Since(started).Seconds())
		}
	}()
	leaf := r.TLS.PeerCertificates[0]
	id, err := peer.FromCertificate(leaf)
	if err != nil || id.Fleet != s.keys.Identity().Fleet {
		s.metrics.RefusedIdentity("main", s.log, listen.Describe(leaf), r.RemoteAddr, errors.New("it is no identity of this fleet"))
		AnswerProblem(answer, http.StatusForbidden, IdentityUnknown())
		return
	}
	uri = id.URI
	ctx, done, err := s.revoked.Begin(r.Context(), leaf, id)
	if err != nil {
		s.metrics.RefusedIdentity("main", s.log, uri, r.RemoteAddr, err)
		AnswerProblem(answer, http.StatusForbidden, RevokedIdentity(uri))
		return
	}
	defer done()
	s.ServeAs(answer, r.WithContext(fleet.WithClient(ctx, leaf, id)))
}

// methodLabel returns a label with few values: clients choose their methods.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return method
	}
	return "other"
}

// ServeAs answers a request for the identity in its context (fleet.WithClient), which a listener has verified.
func (s *Server) ServeAs(w http.ResponseWriter, r *http.Request) {
	clean(r)
	if _, ok := fleet.IdentityOf(r.Context()); !ok {
		AnswerProblem(w, http.StatusForbidden, IdentityUnknown())
		return
	}
	end, ok := s.watches.Requests().Begin(w, r, isWatch(r.URL.Path))
	if !ok {
		return
	}
	defer end()
	holder := fleet.HolderOf(r.Context())
	body := &content{ReadCloser: r.Body, caller: holder, quota: &s.bodies, limit: limits.Body,
		over: func() { s.metrics.RefusedByLimit(s.log, "bodies", holder, r.RemoteAddr) }}
	defer body.end()
	r.Body = body
	if isWatch(r.URL.Path) {
		s.watch(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// clean removes every header that the translation to gRPC would interpret. There is one form of bodies, whatever types
// the client names.
func clean(r *http.Request) {
	kept := http.Header{}
	for _, name := range []string{"Range", "If-Range", "If-None-Match"} {
		if values := r.Header.Values(name); len(values) > 0 {
			kept[name] = values
		}
	}
	r.Header = kept
}

// Recorder records the status code.
type Recorder struct {
	http.ResponseWriter
	code int
}

// NewRecorder returns a recorder that writes to w.
func NewRecorder(w http.ResponseWriter) *Recorder { return &Recorder{ResponseWriter: w} }

// Code returns the recorded status; 0: no answer yet.
func (r *Recorder) Code() int { return r.code }

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *Recorder) Write(p []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Flush supports streams of JSON.
func (r *Recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

// Unwrap supports http.ResponseController.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
