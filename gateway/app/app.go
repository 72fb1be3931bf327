// Package app assembles the gateway: it starts, serves and stops all parts in order.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"muster.example/gateway/config"
	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/legacy"
	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
	"muster.example/gateway/rudder"
	"muster.example/gateway/runs"
	"muster.example/gateway/tunnel"
	"muster.example/gateway/viewing"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/channel"
	"muster.example/services/client/go/peer"
)

// App is a running gateway. Not safe for concurrent use.
type App struct {
	// The addresses that were bound.
	Addresses Addresses

	config     *config.Config
	log        *slog.Logger
	metrics    *inspect.Metrics
	probes     *inspect.Probes
	keys       *fleet.Keystore
	sockets    *listen.Sockets
	main       *http.Server
	viewing    *http.Server
	statuses   *viewing.Listeners
	inspection *http.Server
	rudder     *rudder.Server
	relaying   *http.Server
	manager    *legacy.Manager
	deliveries *muster.Client
	upstream   []*grpc.ClientConn
	own        ownConnections
	watches    *rest.Watches
	tunnels    *tunnel.Server
	floods     *listen.Floods

	cancel  context.CancelFunc // of all background work
	working sync.WaitGroup
	failed  chan error
}

// ownConnections carry the gateway's own calls; those of clients use the connections of rest.Services.
type ownConnections struct {
	aggregator *grpc.ClientConn
	relay      grpc.ClientConnInterface
}

// Addresses is the content of the addresses file.
type Addresses struct {
	Gateway    string `json:"gateway"`
	Status     string `json:"status_listener"`
	Inspection string `json:"inspection"`
	Rudder     string `json:"rudder,omitempty"`
}

const (
	feedProbe = "changes of the aggregator"
	plainHelp = "This port speaks HTTPS only: use https:// and a client certificate of the fleet (muster operator add)."
)

// Start opens all listeners and returns. Everything that needs the aggregator continues in the background.
func Start(c *config.Config, log *slog.Logger) (*App, error) {
	a := &App{
		config: c, log: log, metrics: inspect.NewMetrics(), probes: inspect.NewProbes(feedProbe),
		sockets: &listen.Sockets{Supervisor: c.SupervisorSocket}, floods: listen.NewFloods(), failed: make(chan error, 4), cancel: func() {},
	}
	if err := a.start(); err != nil {
		a.Stop()
		return nil, err
	}
	return a, nil
}

// start opens the listeners in dependency order.
func (a *App) start() (err error) {
	if a.keys, err = fleet.Open(a.config.TLSFolder()); err != nil {
		return err
	}
	to, err := a.connect()
	if err != nil {
		return err
	}
	revoked := fleet.NewRevoked()
	socket, err := a.bindStatus()
	if err != nil {
		return err
	}
	sessions := viewing.NewSessions(a.config.StatusURL(a.Addresses.Status))
	a.metrics.Sample("sessions", "Browsers that are signed in to the dashboard.", func() float64 { return float64(sessions.Count()) })
	a.watches = rest.NewWatches(a.metrics)
	api, err := rest.New(to, a.keys, revoked, sessions, a.watches, a.metrics, a.log)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	signer := musterv1.NewListenerServiceClient(a.own.aggregator)
	if err := a.view(socket, api, signer, to.Status, sessions, revoked); err != nil {
		return errors.Join(err, socket.Close())
	}
	if err := a.manage(signer, musterv1.NewHeartbeatServiceClient(to.Status), revoked); err != nil {
		return err
	}
	if err := a.serve(api); err != nil {
		return err
	}
	if err := a.relay(); err != nil {
		return err
	}
	if err := a.writeAddresses(); err != nil {
		return err
	}
	a.background()
	return nil
}

// connect creates the connections to the services. It does not wait for them.
func (a *App) connect() (to rest.Services, err error) {
	// The window of the connection is for all of its streams: gRPC opens it again before they are read.
	downloads := append(fleet.Interceptors(), grpc.WithInitialWindowSize(int32(limits.DownloadWindow)), grpc.WithInitialConnWindowSize(16<<20))
	if to.Aggregator, err = a.dial(peer.Server{Role: "aggregator"}, a.config.AggregatorTargets, downloads...); err != nil {
		return to, err
	}
	if a.own.aggregator, err = a.dial(peer.Server{Role: "aggregator"}, a.config.AggregatorTargets); err != nil {
		return to, err
	}
	to.Status = to.Aggregator // without a status service its calls fail with UNIMPLEMENTED
	if len(a.config.StatusTargets) > 0 {
		if to.Status, err = a.dial(peer.Server{Role: "status"}, a.config.StatusTargets, fleet.Interceptors()...); err != nil {
			return to, err
		}
	}
	to.Relay, to.Jobs = missing(rest.NoRelay()), missing(rest.NoJobs())
	if len(a.config.RelayTargets) > 0 {
		if to.Relay, err = a.dial(peer.RootRelay, a.config.RelayTargets, fleet.Interceptors()...); err != nil {
			return to, err
		}
		if a.own.relay, err = a.dial(peer.RootRelay, a.config.RelayTargets); err != nil {
			return to, err
		}
	}
	if len(a.config.JobsTargets) > 0 {
		if to.Jobs, err = a.dial(peer.Server{Role: "jobs"}, a.config.JobsTargets, fleet.Interceptors()...); err != nil {
			return to, err
		}
	}
	a.deliveries, err = muster.Dial(muster.Options{
		AggregatorTargets: a.config.AggregatorTargets, StatusTargets: a.config.StatusTargets,
		Roots: a.keys.Roots, Certificate: a.keys.Certificate, Connections: a.config.DeliveryConnections, InFlight: limits.DeliveryBytes,
		Dial: fleet.Interceptors(),
	})
	return to, err
}

// dial creates a connection; Stop closes it.
func (a *App) dial(server peer.Server, targets []string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	options = append(options, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(limits.Response))))
	connection, err := channel.Dial(server, targets, a.keys.Roots, a.keys.Certificate, options...)
	if err == nil {
		a.upstream = append(a.upstream, connection)
	}
	return connection, err
}

// bindStatus opens the socket of the fleet's status listener.
func (a *App) bindStatus() (net.Listener, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	socket, err := a.sockets.Listen(ctx, "status", a.config.StatusListen)
	if err != nil {
		return nil, fmt.Errorf("status_listen: %w", err)
	}
	a.Addresses.Status = socket.Addr().String()
	return socket, nil
}

// manage creates the manager of the runs' listeners for legacy clients.
func (a *App) manage(signer musterv1.ListenerServiceClient, heartbeats musterv1.HeartbeatServiceClient, revoked *fleet.Revoked) error {
	first, last, err := a.config.LegacyPortRange()
	if err != nil {
		return err
	}
	a.manager = legacy.NewManager(legacy.Settings{
		Host: a.config.LegacyBind, FirstPort: first, LastPort: last, SharedPort: a.config.LegacyPort, Hold: a.config.Hold,
		MaxResultBytes: a.config.ResultBytes, Connections: a.limits(),
	}, signer, a.deliveries, heartbeats, a.sockets, revoked, a.metrics, a.probes, a.log)
	return nil
}

// view serves the fleet's status listener, and creates those of runs.
func (a *App) view(socket net.Listener, api *rest.Server, signer musterv1.ListenerServiceClient,
	status *grpc.ClientConn, sessions *viewing.Sessions, revoked *fleet.Revoked) error {
	host, _, err := net.SplitHostPort(a.config.StatusListen)
	if err != nil {
		return err
	}
	first, last, err := a.config.StatusPortRange()
	if err != nil {
		return err
	}
	server := viewing.New(viewing.Settings{Host: host, FirstPort: first, LastPort: last, Connections: a.limits(), Floods: a.floods,
		Origins: a.config.StatusOrigins}, status, api, sessions, a.watches, a.keys, revoked, a.metrics, a.log)
	a.statuses = viewing.NewListeners(server, signer, a.sockets)
	a.tunnels = tunnel.New(tunnel.Settings{Relay: a.config.TunnelRelay, Join: a.config.TunnelJoin, All: a.config.Tunnels,
		Each: a.config.TunnelsPerAddress}, a.metrics, a.log)
	a.viewing = listen.NewServer(a.tunnels.Route(rest.RefuseCrossSite(server)), server.TLS(), a.log)
	go a.run(a.viewing, listen.TLS(socket, server.TLS(), a.http2Options("status", viewing.PlainHelp)))
	return nil
}

// options returns the options of a listener; `name` is its label in the metrics.
func (a *App) options(name, plainHelp string) listen.Options {
	return listen.Options{Limits: a.limits(), PlainHTTP: plainHelp, TooMany: rest.TooManyConnectionsAnswer(),
		Shared: peer.IsShared, Refused: a.metrics.RefusedHandshake(name, a.log),
		Open: a.metrics.Connections.WithLabelValues(name), Handshaking: a.metrics.Handshakes.WithLabelValues(name)}
}

// http2Options returns the options of a listener that offers HTTP/2.
func (a *App) http2Options(name, plainHelp string) listen.Options {
	options := a.options(name, plainHelp)
	options.Floods, options.Flooded, options.Closed = a.floods, rest.TooManyFramesAnswer(), a.metrics.ClosedConnection(name, a.log)
	return options
}

// limits returns the limits of each port.
func (a *App) limits() listen.Limits {
	return listen.Limits{Connections: a.config.Connections, PerAddress: a.config.PerAddress,
		HandshakesPerAddress: a.config.HandshakesPerAddress, PerIdentity: a.config.PerIdentity}
}

// serve opens the main listener and the one for metrics and probes.
func (a *App) serve(api *rest.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	socket, err := a.sockets.Listen(ctx, "gateway", a.config.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	a.Addresses.Gateway = socket.Addr().String()
	a.main = listen.NewServer(rest.RefuseCrossSite(api), api.TLS(), a.log)
	inspection, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.config.InspectionPort)))
	if err != nil {
		return errors.Join(fmt.Errorf("inspection_port: %w", err), socket.Close())
	}
	a.Addresses.Inspection = inspection.Addr().String()
	a.inspection = inspect.Server(a.metrics, a.probes)
	go a.run(a.main, listen.TLS(socket, api.TLS(), a.http2Options("main", plainHelp)))
	go a.run(a.inspection, inspection)
	return nil
}

// run serves until the server is closed; any other end fails the gateway.
func (a *App) run(server *http.Server, listener net.Listener) {
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		a.failed <- err
	}
}

// background follows the runs and keeps the certificate fresh, until a.cancel is called.
func (a *App) background() {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.working.Add(2)
	go func() {
		defer a.working.Done()
		runs.Follow(ctx, musterv1.NewChangeServiceClient(a.own.aggregator), runs.Fan{a.manager, a.statuses}, a.log)
	}()
	go func() {
		defer a.working.Done()
		a.keys.Maintain(ctx, musterv1.NewIdentityServiceClient(a.own.aggregator), a.log, fleet.Events{
			Expires: func(t time.Time) { a.metrics.CertificateExpires.Set(float64(t.Unix())) },
			Failed:  a.metrics.CertificateFailures.Inc,
		})
	}()
}

// writeAddresses replaces the addresses file atomically, if one is configured.
func (a *App) writeAddresses() error {
	if a.config.AddressesFile == "" {
		return nil
	}
	content, err := json.Marshal(a.Addresses)
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(a.config.AddressesFile), "."+filepath.Base(a.config.AddressesFile)+".new")
	if err := os.WriteFile(temporary, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("addresses_file: %w", err)
	}
	return os.Rename(temporary, a.config.AddressesFile)
}

// Failed delivers an error if a listener stops unexpectedly.
func (a *App) Failed() <-chan error { return a.failed }

// Stop ends the parts in order: it accepts nothing new, waits for deliveries and downloads up to the configured time,
// and closes the connections to the services.
func (a *App) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Drain)
	defer cancel()
	a.probes.Set("stopping", "the gateway is stopping")
	a.cancel()
	a.working.Wait()
	if a.watches != nil {
		a.watches.End()
	}
	var draining sync.WaitGroup
	if a.manager != nil {
		draining.Go(func() { a.manager.Close(ctx) })
	}
	if a.main != nil {
		draining.Go(func() {
			if a.main.Shutdown(ctx) != nil {
				a.main.Close()
			}
		})
	}
	draining.Go(func() { a.stopRelay(ctx) })
	if a.statuses != nil {
		draining.Go(a.statuses.Close)
	}
	if a.tunnels != nil {
		draining.Go(a.tunnels.Close)
	}
	if a.viewing != nil {
		a.viewing.Close() // clients of the status reconnect
	}
	draining.Wait()
	if a.inspection != nil {
		a.inspection.Close()
	}
	if a.deliveries != nil {
		a.deliveries.Close()
	}
	for _, connection := range a.upstream {
		connection.Close()
	}
}
