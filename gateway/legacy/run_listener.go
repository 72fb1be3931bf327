package legacy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"muster.example/gateway/fleet"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
	"muster.example/gateway/runs"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/reasons"
)

// Reasons for which a listener closes.
var (
	errAuthorityDeleted = errors.New("the run CA was deleted")
	errRestarting       = errors.New("the gateway is stopping")
)

// answerTime is the time for the active requests of a run to end after its run CA was deleted.
const answerTime = 5 * time.Second

const plainHTTPHelp = "This port speaks HTTPS only: use https:// and the client certificate of the run " +
	"(muster credentials export)."

// runListener is the listener of one run, from its first certificate until the run CA is deleted.
type runListener struct {
	run     string
	m       *Manager
	log     *slog.Logger
	ctx     context.Context
	stop    context.CancelCauseFunc
	plugins atomic.Pointer[map[string]bool]
	end     *time.Timer

	done chan struct{} // closed when its socket is released

	// These are guarded by the manager's lock.
	endTime     time.Time    // of the run; zero: it has not ended
	port        int          // 0: not chosen yet, or shared
	releasedFor *runListener // the new run that gets the port, or nil

	certificate atomic.Pointer[tls.Certificate]
	listening   atomic.Bool
	refused     func(reason string, remote net.Addr, err error)
}

func newRunListener(m *Manager, run string) *runListener {
	d := &runListener{run: run, m: m, log: m.log.With("run", run), done: make(chan struct{})}
	d.ctx, d.stop = context.WithCancelCause(context.Background())
	d.end = time.AfterFunc(time.Hour, func() { d.stop(errAuthorityDeleted) })
	d.refused = m.metrics.RefusedHandshake("run", d.log)
	return d
}

// update sets the current state of the run. The manager's lock is held.
func (d *runListener) update(run *musterv1.Run) {
	plugins := make(map[string]bool, len(run.Plugins))
	for _, plugin := range run.Plugins {
		plugins[plugin.Name] = true
	}
	d.plugins.Store(&plugins)
	if end, ended := runs.Ended(run); ended {
		d.endTime = end
	}
	d.end.Reset(time.Until(runs.AuthorityEnd(run)))
}

func (d *runListener) planned(plugin string) bool { return (*d.plugins.Load())[plugin] }

// maintain opens the listener repeatedly until it is stopped.
func (d *runListener) maintain() {
	defer d.m.forget(d)
	defer d.end.Stop()
	for failures := 0; d.ctx.Err() == nil; failures++ {
		started := time.Now()
		err := d.open()
		if d.ctx.Err() != nil {
			break
		}
		if answer := muster.AsError(err); answer.Reason == reasons.RunNotFound || answer.Reason == reasons.RunEnded {
			d.log.Info("listener of the run not opened", "error", err)
			d.stop(errAuthorityDeleted)
			break
		}
		if time.Since(started) > time.Minute {
			failures = 0
		}
		d.m.metrics.RunListenerFaults.Inc()
		d.log.Warn("listener of the run closed, it will be reopened", "error", err)
		d.report(0, err.Error())
		select {
		case <-time.After(listen.RetryDelay(failures)):
		case <-d.ctx.Done():
		}
	}
	if errors.Is(context.Cause(d.ctx), errAuthorityDeleted) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := d.m.sockets.Release(ctx, d.name()); err != nil {
			d.log.Warn("the supervisor did not release the socket", "error", err)
		}
	}
}

// name returns the socket's name for the supervisor.
func (d *runListener) name() string { return "legacy/" + d.run }

// open serves until the listener is stopped; its error says why it could not.
func (d *runListener) open() error {
	signed, renew, err := d.sign()
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(signed.RunCaPem)) {
		return errors.New("the aggregator sent no run CA")
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  clients, // only this run CA: another run's leaf fails in the handshake
		// Old workers offer no ALPN; other clients get HTTP/1.1, which is faster for bulk data.
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return d.certificate.Load(), nil
		},
		// A resumed session would not be verified against the run CA again.
		SessionTicketsDisabled: true,
	}
	listener, err := d.listen(signed, config)
	if err != nil {
		return err
	}
	d.listening.Store(true)
	defer d.listening.Store(false)
	return d.serve(listener, renew)
}

// listen opens the run's own port, or registers the run's name on the shared port.
func (d *runListener) listen(signed *musterv1.SignListenerCertificateResponse, config *tls.Config) (net.Listener, error) {
	if signed.ServerName != "" {
		shared, err := d.m.ports.at(d.ctx, int(signed.Port))
		if err != nil {
			return nil, err
		}
		return shared.Listen(signed.ServerName, config, d.refused)
	}
	settings := &d.m.settings
	socket, err := d.m.sockets.ListenPort(d.ctx, d.name(), settings.Host, int(signed.Port), settings.FirstPort, settings.LastPort,
		signed.TakenPorts...)
	if signed.Port == 0 && errors.Is(err, listen.ErrNoPort) {
		socket, err = d.listenAtReleased(err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the run: %w", err)
	}
	d.m.setPort(d, socket.Addr().(*net.TCPAddr).Port)
	return listen.TLS(socket, config, d.m.options(d.refused)), nil
}

// listenAtReleased opens the port of a run that has ended, because no other port is free.
func (d *runListener) listenAtReleased(noPort error) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
	defer cancel()
	port, err := d.m.releaseFor(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("%w; cannot release the port of a run that has ended: %w", noPort, err)
	}
	if port == 0 {
		return nil, fmt.Errorf("%w; ports are held %s", noPort, d.m.holders())
	}
	return d.m.sockets.ListenPort(ctx, d.name(), d.m.settings.Host, port, 0, 0)
}

// serve answers requests until the listener fails or is stopped, and renews the certificate.
func (d *runListener) serve(listener net.Listener, renew time.Time) error {
	port := listener.Addr().(*net.TCPAddr).Port
	server := listen.NewServer(rest.RefuseCrossSite(&handler{
		run: d.run, planned: d.planned, deliver: d.m.deliver, heartbeats: d.m.heartbeats, revoked: d.m.revoked, metrics: d.m.metrics,
		log: d.log, hold: d.m.settings.Hold, limit: d.m.settings.MaxResultBytes, living: d.m.living,
	}), nil, d.log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	d.m.metrics.RunListeners.Inc()
	defer d.m.metrics.RunListeners.Dec()

	d.log.Info("listener of the run open", "port", port)
	err := d.watch(served, port, renew)
	if d.ctx.Err() == nil {
		server.Close()
		return err
	}
	// Active requests may end, until Manager.Close has waited long enough. No result can be stored after the deletion of
	// the run CA.
	ending, cancel := context.WithCancel(d.m.living)
	if errors.Is(context.Cause(d.ctx), errAuthorityDeleted) {
		ending, cancel = context.WithTimeout(d.m.living, answerTime)
	}
	defer cancel()
	if server.Shutdown(ending) != nil {
		server.Close()
	}
	return context.Cause(d.ctx)
}

// watch reports the listener to the aggregator, renews its certificate, and waits until it has to close. It remains open
// while the aggregator is unreachable: legacy clients wait for their answers.
func (d *runListener) watch(served <-chan error, port int, renew time.Time) error {
	reported, next := false, time.Now()
	for failures := 0; ; {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-d.ctx.Done():
			timer.Stop()
			return context.Cause(d.ctx)
		case err := <-served:
			timer.Stop()
			return err
		case <-timer.C:
		}
		var err error
		if !reported {
			err = d.report(port, "")
			reported, next = err == nil, renew
		} else {
			_, next, err = d.sign()
		}
		if err == nil {
			failures = 0
			continue
		}
		if answer := muster.AsError(err); !answer.Retryable() {
			return err
		}
		d.log.Warn("cannot report the run's listener to the aggregator", "error", err)
		next = time.Now().Add(listen.RetryDelay(failures))
		failures++
	}
}

// sign requests a certificate of the run CA, and returns it with the time of its renewal.
func (d *runListener) sign() (*musterv1.SignListenerCertificateResponse, time.Time, error) {
	key, csr, err := fleet.NewKey()
	if err != nil {
		return nil, time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(d.ctx, 30*time.Second)
	defer cancel()
	signed, err := d.m.listeners.SignListenerCertificate(ctx,
		&musterv1.SignListenerCertificateRequest{Run: d.run, CsrPem: string(csr)})
	if err != nil {
		return nil, time.Time{}, err
	}
	pair, err := tls.X509KeyPair([]byte(signed.CertificatePem), key)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("the aggregator signed no certificate for the listener: %w", err)
	}
	d.certificate.Store(&pair)
	left := time.Until(pair.Leaf.NotAfter)
	return signed, time.Now().Add(max(left/2, time.Minute)), nil
}

// report reports the port of the listener, or why it is not open, to the aggregator.
func (d *runListener) report(port int, fault string) error {
	ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
	defer cancel()
	_, err := d.m.listeners.ReportListener(ctx, &musterv1.ReportListenerRequest{
		Run: d.run, Port: int32(port), Open: fault == "", Fault: fault[:min(len(fault), 1024)],
	})
	return err
}
