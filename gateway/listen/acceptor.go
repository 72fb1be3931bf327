package listen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"muster.example/gateway/limits"
)

// Limits of the open connections of one socket, including those in their handshake.
type Limits struct {
	// Connections bounds all; more wait in the kernel.
	Connections int
	// PerAddress bounds those of one address of a client, or of one network of 64 bits with IPv6; 0: no limit. More are
	// closed.
	PerAddress int
	// HandshakesPerAddress bounds the simultaneous handshakes of one address; more of its connections wait for each other.
	HandshakesPerAddress int
	// PerIdentity bounds those of one identity; 0: no limit. More get Options.TooMany after their handshake.
	PerIdentity int
}

// Options of a TLS socket.
type Options struct {
	Limits
	// Shared reports whether several clients have the identity: only their addresses are counted then. Nil: none is shared.
	Shared func(*x509.Certificate) bool
	// TooMany is the answer for a client with too many connections, Flooded for one that has sent too many frames of HTTP/2.
	TooMany, Flooded Answer
	// Floods are those of all listeners of the gateway; nil: of this one.
	Floods *Floods
	// Closed is called for each connection that is closed because its client sends too many frames of HTTP/2, with one of
	// FloodReasons and the name of the source; nil: not called.
	Closed func(reason, source string, remote net.Addr)
	// Refused is called for each failed handshake with a reason: "no_certificate", "other_authority", "expired",
	// "bad_certificate", "no_name", "unknown_name", "plain_http", "timeout", "gone", "other"; and for each connection
	// above a limit: "address_limit", "identity_limit", "flood".
	Refused func(reason string, remote net.Addr, err error)
	// Open and Handshaking count the connections, and those in their handshake; nil: not counted.
	Open, Handshaking Gauge
	// PlainHTTP is the answer to a client that uses HTTP without TLS.
	PlainHTTP string
}

// Gauge is a number that goes up and down.
type Gauge interface {
	Inc()
	Dec()
}

// noGauge counts nothing.
type noGauge struct{}

func (noGauge) Inc() {}
func (noGauge) Dec() {}

// errNoCertificate is the failure of a client that sent none. Clients of Go's library, such as old sidecars, do not send
// the certificate of another CA than those that the server names.
var errNoCertificate = errors.New("the client sent no certificate: it has none, or one of another CA, such as that of an earlier run")

// acceptor accepts connections and performs their handshakes concurrently: a slow or failing one does not delay others.
type acceptor struct {
	socket      net.Listener
	options     Options
	open        chan struct{} // one token for each connection
	handshaking chan struct{} // one token for each handshake
	addresses   quotas[netip.Prefix]
	handshakes  perAddress
	identities  quotas[string]
	once        sync.Once
	over        chan struct{} // closed when it stops accepting
	failure     error         // the reason; set before over is closed
}

func newAcceptor(socket net.Listener, options Options) *acceptor {
	if options.Open == nil {
		options.Open = noGauge{}
	}
	if options.Handshaking == nil {
		options.Handshaking = noGauge{}
	}
	if options.HandshakesPerAddress == 0 {
		options.HandshakesPerAddress = limits.HandshakesOfAddress
	}
	if options.Floods == nil {
		options.Floods = NewFloods()
	}
	if options.Closed == nil {
		options.Closed = func(string, string, net.Addr) {}
	}
	return &acceptor{
		handshakes: perAddress{limit: options.HandshakesPerAddress}, socket: socket, options: options, over: make(chan struct{}),
		open: make(chan struct{}, options.Connections), handshaking: make(chan struct{}, limits.Handshakes),
	}
}

// end stops accepting; the first reason is kept.
func (a *acceptor) end(failure error) (err error) {
	a.once.Do(func() {
		a.failure = failure
		close(a.over)
		err = a.socket.Close()
	})
	return err
}

// run accepts until the end; it calls `handshake` for each connection in a separate goroutine, with a token of `handshaking`.
func (a *acceptor) run(handshake func(*counted)) {
	for {
		select {
		case a.open <- struct{}{}:
		case <-a.over:
			return
		}
		conn, err := a.socket.Accept()
		if err != nil {
			<-a.open
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() || isTransient(err) {
				time.Sleep(10 * time.Millisecond) // for example, out of file descriptors: some will be freed
				continue
			}
			_ = a.end(err)
			return
		}
		a.options.Open.Inc()
		raw := &counted{Conn: conn, release: func() {
			a.options.Open.Dec()
			<-a.open
		}}
		address := networkOf(conn.RemoteAddr())
		if !a.addresses.acquire(address, a.options.PerAddress) {
			raw.Close()
			a.options.Refused("address_limit", conn.RemoteAddr(),
				fmt.Errorf("the address has %d open connections: raise limits.connections_per_address if many clients share it", a.options.PerAddress))
			continue
		}
		raw.onClose(func() { a.addresses.release(address) })
		go a.start(raw, address, handshake)
	}
}

// start waits for the client's first byte, and for the tokens of a handshake: silent connections hold no token, and the
// handshakes of one address do not delay those of others.
func (a *acceptor) start(raw *counted, address netip.Prefix, handshake func(*counted)) {
	if err := raw.awaitFirst(limits.HelloTime); err != nil {
		raw.Close()
		a.options.Refused(refusal(err), raw.RemoteAddr(), err)
		return
	}
	a.begin(raw, address, handshake)
}

// begin waits for the tokens of a handshake, and calls it.
func (a *acceptor) begin(raw *counted, address netip.Prefix, handshake func(*counted)) {
	own := a.handshakes.acquire(address)
	defer a.handshakes.release(address)
	for _, tokens := range []chan struct{}{own, a.handshaking} {
		select {
		case tokens <- struct{}{}:
		case <-a.over:
			raw.Close()
			return
		}
	}
	a.options.Handshaking.Inc()
	raw.finished = func() {
		a.options.Handshaking.Dec()
		<-a.handshaking
		<-own
	}
	handshake(raw)
}

// handshake returns a connection after its handshake, or the reason for its failure; a failed connection is closed.
func (a *acceptor) handshake(raw *counted, config *tls.Config) (conn *tls.Conn, reason string, err error) {
	conn = tls.Server(raw, config)
	raw.hello = time.AfterFunc(limits.HelloTime, func() { _ = raw.SetReadDeadline(time.Now()) })
	ctx, cancel := context.WithTimeout(context.Background(), limits.HandshakeTime)
	err = conn.HandshakeContext(ctx)
	cancel()
	raw.hello.Stop()
	raw.finished()
	if err == nil {
		reason, answer, err := a.admit(conn, raw)
		if err == nil {
			return conn, "", nil
		}
		go answer.send(conn)
		return nil, reason, err
	}
	reason = refusal(err)
	var unverified *tls.CertificateVerificationError
	if errors.As(err, &unverified) && len(unverified.UnverifiedCertificates) > 0 {
		err = &RefusedPeer{Subject: Describe(unverified.UnverifiedCertificates[0]), Err: err}
	}
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "remote error" {
		err = fmt.Errorf("the client refused the certificate of this listener, so it may have the CA of another run: %w", err)
	}
	if reason == "no_certificate" {
		err = errNoCertificate
	}
	if reason == "plain_http" {
		answerPlain(raw, a.options.PlainHTTP)
	}
	raw.Close()
	return nil, reason, err
}

// admit counts a connection for the identity of its certificate, and for the source of its frames.
func (a *acceptor) admit(conn *tls.Conn, raw *counted) (reason string, answer Answer, err error) {
	state := conn.ConnectionState()
	certified := len(state.PeerCertificates) > 0
	shared := certified && a.options.Shared != nil && a.options.Shared(state.PeerCertificates[0])
	source, err := a.options.Floods.join(sourceOf(&state, conn.RemoteAddr(), shared))
	if err != nil {
		return "flood", a.options.Flooded, err
	}
	raw.onClose(func() { a.options.Floods.leave(source) })
	raw.source = source
	raw.flooded = func(reason string) {
		a.options.Floods.refuse(source)
		a.options.Closed(reason, source.name, conn.RemoteAddr())
	}
	if !certified || shared {
		return "", Answer{}, nil
	}
	identity := identityOf(&state)
	if !a.identities.acquire(identity, a.options.PerIdentity) {
		return "identity_limit", a.options.TooMany, fmt.Errorf("%s has %d open connections (limits.connections_per_identity)",
			Describe(state.PeerCertificates[0]), a.options.PerIdentity)
	}
	raw.onClose(func() { a.identities.release(identity) })
	return "", Answer{}, nil
}

// counted is a connection that releases what it holds once, when it is closed.
type counted struct {
	net.Conn
	finished func()      // ends its handshake
	first    []byte      // read before the handshake
	hello    *time.Timer // ends a handshake without the client's first message

	source  *source             // of its frames; set after the handshake
	flooded func(reason string) // counts its end because of too many frames, and refuses new connections of the source

	mu      sync.Mutex
	closed  bool
	release func()
}

// onClose adds a function that is called when the connection is closed, or now if it is.
func (c *counted) onClose(more func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		more()
		return
	}
	first := c.release
	c.release = func() {
		more()
		first()
	}
}

// hasHello ends the limit on the client's first message.
func hasHello(hello *tls.ClientHelloInfo) {
	if raw, ok := hello.Conn.(*counted); ok {
		raw.hello.Stop()
	}
}

// awaitFirst waits for the first byte of the client.
func (c *counted) awaitFirst(limit time.Duration) error {
	var first [1]byte
	_ = c.SetReadDeadline(time.Now().Add(limit))
	if _, err := io.ReadFull(c.Conn, first[:]); err != nil {
		return err
	}
	c.first = first[:]
	return c.SetReadDeadline(time.Time{})
}

// Read implements net.Conn.
func (c *counted) Read(p []byte) (int, error) {
	if len(c.first) > 0 && len(p) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *counted) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.release()
	}
	return c.Conn.Close()
}
