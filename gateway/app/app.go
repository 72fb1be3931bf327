// Package app puts the gateway together: start, serve, stop in order.
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
	musterv1 "muster.example/gateway/gen/muster/v1"
	"muster.example/gateway/inspect"
	"muster.example/gateway/legacy"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
	"muster.example/gateway/runs"
	"muster.example/services/client/go"
	"muster.example/services/client/go/channel"
)

// App is a running gateway. Not safe for concurrent use.
type App struct {
	// Addresses that were really bound.
	Addresses Addresses

	config     *config.Config
	log        *slog.Logger
	metrics    *inspect.Metrics
	probes     *inspect.Probes
	keys       *fleet.Keystore
	sockets    *listen.Sockets
	main       *http.Server
	inspection *http.Server
	manager    *legacy.Manager
	deliveries *muster.Client
	upstream   []*grpc.ClientConn

	cancel  context.CancelFunc // of everything in the background
	working sync.WaitGroup
	failed  chan error
}

// Addresses is what stands in the addresses file.
type Addresses struct {
	Gateway    string `json:"gateway"`
	Inspection string `json:"inspection"`
}

const (
	// deliveryMemory bounds what all deliveries keep of bytes that the aggregator has not written yet.
	deliveryMemory = 32 << 20

	feedProbe = "changes of the aggregator"
	plainHelp = "This port speaks HTTPS only: use https:// and a client certificate of the fleet (muster operator add)."
)

// Start opens all listeners and returns; what needs the aggregator goes on in the background.
func Start(c *config.Config, log *slog.Logger) (*App, error) {
	a := &App{
		config: c, log: log, metrics: inspect.NewMetrics(), probes: inspect.NewProbes(feedProbe),
		sockets: &listen.Sockets{Supervisor: c.SupervisorSocket}, failed: make(chan error, 2), cancel: func() {},
	}
	if err := a.start(); err != nil {
		a.Stop()
		return nil, err
	}
	return a, nil
}

func (a *App) start() (err error) {
	if a.keys, err = fleet.Open(a.config.TLSFolder()); err != nil {
		return err
	}
	aggregator, err := a.dial("aggregator", a.config.AggregatorTargets)
	if err != nil {
		return err
	}
	status := aggregator // without a status service its calls are answered UNIMPLEMENTED
	if len(a.config.StatusTargets) > 0 {
		if status, err = a.dial("status", a.config.StatusTargets); err != nil {
			return err
		}
	}
	a.deliveries, err = muster.Dial(muster.Options{
		AggregatorTargets: a.config.AggregatorTargets, StatusTargets: a.config.StatusTargets,
		Roots: a.keys.Roots, Certificate: a.keys.Certificate, Connections: a.config.DeliveryConnections, InFlight: deliveryMemory,
	})
	if err != nil {
		return err
	}
	revoked := fleet.NewRevoked()
	api, err := rest.New(aggregator, status, a.keys, revoked, a.metrics, a.log)
	if err != nil {
		return err
	}
	first, last, err := a.config.PortRange()
	if err != nil {
		return err
	}
	a.manager = legacy.NewManager(legacy.Settings{
		Host: a.config.LegacyBind, FirstPort: first, LastPort: last, SharedPort: a.config.LegacyPort, Hold: a.config.Hold,
		MaxResultBytes: a.config.ResultBytes, MaxConnections: a.config.Connections,
	}, musterv1.NewListenerServiceClient(aggregator), a.deliveries, a.sockets, revoked, a.metrics, a.probes, a.log)
	if err := a.serve(api); err != nil {
		return err
	}
	if err := a.writeAddresses(); err != nil {
		return err
	}
	a.background(aggregator)
	return nil
}

func (a *App) dial(role string, targets []string) (*grpc.ClientConn, error) {
	connection, err := channel.Dial(role, targets, a.keys.Roots, a.keys.Certificate, rest.Interceptors()...)
	if err == nil {
		a.upstream = append(a.upstream, connection)
	}
	return connection, err
}

func (a *App) serve(api *rest.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	socket, err := a.sockets.Listen(ctx, "gateway", a.config.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	a.Addresses.Gateway = socket.Addr().String()
	settings := api.TLS()
	a.main = &http.Server{
		Handler: api, TLSConfig: settings.Clone(), // the server writes into its own
		ReadHeaderTimeout: 15 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	inspection, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.config.InspectionPort)))
	if err != nil {
		return errors.Join(fmt.Errorf("inspection_port: %w", err), socket.Close())
	}
	a.Addresses.Inspection = inspection.Addr().String()
	a.inspection = inspect.Server(a.metrics, a.probes)
	go a.run(a.main, listen.TLS(socket, settings, listen.Options{
		MaxConnections: a.config.Connections, PlainHTTP: plainHelp,
		Refused: func(reason string, remote net.Addr, err error) {
			a.metrics.RefusedHandshakes.WithLabelValues("main", reason).Inc()
			a.log.Debug("connection refused in the handshake", "reason", reason, "remote", remote.String(), "error", err)
		},
	}))
	go a.run(a.inspection, inspection)
	return nil
}

func (a *App) run(server *http.Server, listener net.Listener) {
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		a.failed <- err
	}
}

func (a *App) background(aggregator *grpc.ClientConn) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.working.Add(2)
	go func() {
		defer a.working.Done()
		runs.Follow(ctx, musterv1.NewChangeServiceClient(aggregator), a.manager, a.log)
	}()
	go func() {
		defer a.working.Done()
		a.keys.Maintain(ctx, musterv1.NewIdentityServiceClient(aggregator), a.log, fleet.Events{
			Expires: func(t time.Time) { a.metrics.CertificateExpires.Set(float64(t.Unix())) },
			Failed:  a.metrics.CertificateFailures.Inc,
		})
	}()
}

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

// Failed gives an error if a listener stops by itself.
func (a *App) Failed() <-chan error { return a.failed }

// Stop ends in order: accept nothing new; let deliveries and downloads end, up to the time that the
// configuration gives them; close what leads to the services.
func (a *App) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Drain)
	defer cancel()
	a.probes.Set("stopping", "the gateway was told to stop")
	a.cancel()
	a.working.Wait()
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
