package viewing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"muster.example/gateway/fleet"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
	"muster.example/gateway/runs"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/peer"
	"muster.example/services/client/go/reasons"
)

// PlainHelp is the answer to a client that uses HTTP without TLS.
const PlainHelp = "This port speaks HTTPS only: use https:// (muster dashboard prints a link)."

// Listeners keeps the separate status listeners of runs. It implements runs.Follower. Safe for concurrent use.
type Listeners struct {
	server       *Server
	signer       musterv1.ListenerServiceClient
	sockets      *listen.Sockets
	mu           sync.Mutex
	runListeners map[string]*statusListener
	closed       bool
	finished     sync.WaitGroup
}

// statusListener is the status listener of one run.
type statusListener struct {
	run  string
	ctx  context.Context
	stop context.CancelFunc
	end  *time.Timer
}

// name returns the socket's name for the supervisor.
func (d *statusListener) name() string { return "status/" + d.run }

// NewListeners creates it without listeners.
func NewListeners(server *Server, signer musterv1.ListenerServiceClient, sockets *listen.Sockets) *Listeners {
	return &Listeners{server: server, signer: signer, sockets: sockets, runListeners: map[string]*statusListener{}}
}

// Snapshot implements runs.Follower.
func (l *Listeners) Snapshot(all []*musterv1.Run, _ []string) {
	listed := map[string]bool{}
	for _, run := range all {
		listed[run.Id] = true
		l.Changed(run)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for run, d := range l.runListeners {
		if !listed[run] {
			d.stop()
		}
	}
}

// Changed implements runs.Follower.
func (l *Listeners) Changed(run *musterv1.Run) {
	if run.StatusListener == nil {
		return
	}
	left := time.Until(runs.AuthorityEnd(run))
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.runListeners[run.Id]
	if d == nil {
		if l.closed || left <= 0 {
			return
		}
		d = &statusListener{run: run.Id}
		d.ctx, d.stop = context.WithCancel(context.Background())
		d.end = time.AfterFunc(left, d.stop)
		l.runListeners[run.Id] = d
		l.finished.Go(func() { l.maintain(d) })
		return
	}
	d.end.Reset(left)
}

// Deleted implements runs.Follower.
func (l *Listeners) Deleted(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.runListeners[run]; d != nil {
		d.stop()
	}
}

// Revoked implements runs.Follower: the server checks each request.
func (l *Listeners) Revoked(string) {}

// Connected implements runs.Follower.
func (l *Listeners) Connected(bool, string) {}

// Close ends all listeners.
func (l *Listeners) Close() {
	l.mu.Lock()
	l.closed = true
	for _, d := range l.runListeners {
		d.stop()
	}
	l.mu.Unlock()
	l.finished.Wait()
}

// maintain opens the listener repeatedly until it is stopped.
func (l *Listeners) maintain(d *statusListener) {
	log := l.server.log.With("run", d.run)
	defer func() {
		d.end.Stop()
		d.stop()
		l.mu.Lock()
		delete(l.runListeners, d.run)
		l.mu.Unlock()
	}()
	for failures := 0; d.ctx.Err() == nil; failures++ {
		started := time.Now()
		err := l.open(d, log)
		if d.ctx.Err() != nil {
			break
		}
		if reason := muster.AsError(err).Reason; reason == reasons.RunNotFound || reason == reasons.RunEnded || reason == reasons.NoStatusListener {
			break
		}
		if time.Since(started) > time.Minute {
			failures = 0
		}
		l.server.metrics.RunListenerFaults.Inc()
		log.Warn("status listener of the run closed, it will be reopened", "error", err)
		_ = l.report(d, 0, err.Error())
		select {
		case <-time.After(listen.RetryDelay(failures)):
		case <-d.ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if !l.isClosed() {
		_ = l.sockets.Release(ctx, d.name())
	}
}

func (l *Listeners) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// open serves until the listener is stopped; its error says why it could not.
func (l *Listeners) open(d *statusListener, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(d.ctx, 30*time.Second)
	defer cancel()
	given, err := l.signer.GetStatusListener(ctx, &musterv1.GetStatusListenerRequest{Run: d.run})
	if err != nil {
		return err
	}
	config, brought, err := l.settings(given)
	if err != nil {
		return err
	}
	settings := &l.server.settings
	socket, err := l.sockets.ListenPort(d.ctx, d.name(), settings.Host, int(given.Port), settings.FirstPort, settings.LastPort,
		given.TakenPorts...)
	if err != nil {
		return fmt.Errorf("cannot listen for the run's status: %w", err)
	}
	server := listen.NewServer(&runHandler{l.server, d.run, l.server.keys.Identity().Fleet, brought}, config, log)
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(listen.TLS(socket, config, listen.Options{
			Limits: settings.Connections, PlainHTTP: PlainHelp, TooMany: rest.TooManyConnectionsAnswer(),
			Flooded: rest.TooManyFramesAnswer(), Floods: settings.Floods, Closed: l.server.metrics.ClosedConnection("status", log),
			Shared:  func(*x509.Certificate) bool { return true }, // any clients of the run's CA
			Refused: l.server.metrics.RefusedHandshake("status", log),
			Open:    l.server.metrics.Connections.WithLabelValues("status"), Handshaking: l.server.metrics.Handshakes.WithLabelValues("status"),
		}))
	}()
	defer server.Close()
	port := socket.Addr().(*net.TCPAddr).Port
	if err := l.report(d, port, ""); err != nil {
		return err
	}
	log.Info("status listener of the run open", "port", port)
	select {
	case err := <-served:
		return err
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}

// settings serves the given certificate, and admits clients of the given CA, besides the run's own viewers.
func (l *Listeners) settings(given *musterv1.GetStatusListenerResponse) (*tls.Config, []*x509.Certificate, error) {
	var brought []*x509.Certificate
	if given.ClientCaPem != "" {
		var err error
		if brought, err = fleet.ParseCertificates([]byte(given.ClientCaPem)); err != nil {
			return nil, nil, fmt.Errorf("the run's status client CA: %w", err)
		}
	}
	config := l.server.keys.ServerTLS(tls.RequireAndVerifyClientCert, brought...)
	if given.CertificatePem != "" {
		pair, err := tls.X509KeyPair([]byte(given.CertificatePem), []byte(given.KeyPem))
		if err != nil {
			return nil, nil, fmt.Errorf("the run's status certificate: %w", err)
		}
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return config, brought, nil
}

// report reports the port of the listener, or why it is not open, to the aggregator.
func (l *Listeners) report(d *statusListener, port int, fault string) error {
	ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
	defer cancel()
	_, err := l.signer.ReportStatusListener(ctx, &musterv1.ReportStatusListenerRequest{
		Run: d.run, Port: int32(port), Open: fault == "", Fault: fault[:min(len(fault), 1024)],
	})
	return err
}

// runHandler serves the status listener of one run.
type runHandler struct {
	server  *Server
	run     string
	fleet   string
	brought []*x509.Certificate
}

// ServeHTTP implements http.Handler.
func (h *runHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	counted := rest.NewRecorder(w)
	defer func() {
		h.server.metrics.Requests.WithLabelValues("status", routeOf(r), strconv.Itoa(counted.Code())).Inc()
	}()
	if r.URL.Path != "/status" {
		rest.AnswerProblem(counted, http.StatusNotFound, rest.PathNotFound(r.URL.Path, "GET /status."))
		return
	}
	if h.server.allowOrigin(counted, r) {
		return
	}
	h.server.serveAs(counted, r, h.callerOf(r), func(r *http.Request, _ *caller) { h.server.serveStatus(counted, r, h.run) })
}

// callerOf returns the caller: a viewer of this run, an operator, or a client of the CA that was given with the run;
// such a client sees what the run's viewers see.
func (h *runHandler) callerOf(r *http.Request) *caller {
	leaf := r.TLS.PeerCertificates[0]
	for _, chain := range r.TLS.VerifiedChains {
		root := chain[len(chain)-1]
		for _, authority := range h.brought {
			if root.Equal(authority) {
				id, err := peer.Parse("spiffe://" + h.run + "." + h.fleet + "/viewer")
				if err != nil {
					return nil
				}
				return &caller{id: id, certificate: leaf}
			}
		}
	}
	p := h.server.callerOfCertificate(leaf)
	if p == nil || p.id.Kind == peer.Viewer && p.id.Run != h.run {
		return nil
	}
	return p
}
