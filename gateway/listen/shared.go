package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
)

// Shared is a socket with several listeners, each under its own name: the server name in the client's hello selects the
// listener that performs the handshake. A client with an unknown name is refused in the handshake. Safe for concurrent
// use.
type Shared struct {
	*acceptor
	awaited func(name string) bool

	mu      sync.Mutex
	names   map[string]*named
	changed chan struct{} // closed and replaced when a name is added
}

// named is the listener of one name.
type named struct {
	shared  *Shared
	name    string
	config  *tls.Config
	refused func(reason string, remote net.Addr, err error)
	ready   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// Share begins to accept. `awaited` reports whether an unknown name will have a listener soon: its clients wait as long
// as a handshake may take.
func Share(socket net.Listener, options Options, awaited func(name string) bool) *Shared {
	s := &Shared{
		acceptor: newAcceptor(socket, options), awaited: awaited,
		names: map[string]*named{}, changed: make(chan struct{}),
	}
	go s.run(s.receive)
	return s
}

// Listen returns the listener of a name, with its own TLS settings, until it is closed. Names are case-insensitive.
// `refused` is called for handshakes that failed after the name was known.
func (s *Shared) Listen(name string, config *tls.Config,
	refused func(reason string, remote net.Addr, err error)) (net.Listener, error) {
	n := &named{
		shared: s, name: strings.ToLower(name), config: config, refused: refused,
		ready: make(chan net.Conn), closed: make(chan struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[n.name] != nil {
		return nil, fmt.Errorf("%s already has a listener", n.name)
	}
	s.names[n.name] = n
	close(s.changed)
	s.changed = make(chan struct{})
	return n, nil
}

// Port returns the bound port.
func (s *Shared) Port() int { return s.socket.Addr().(*net.TCPAddr).Port }

// Closed reports whether the socket has stopped accepting.
func (s *Shared) Closed() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// Close stops accepting for all names.
func (s *Shared) Close() error { return s.end(net.ErrClosed) }

// receive determines the listener of a connection, and delivers it after the handshake.
func (s *Shared) receive(raw *counted) {
	var found *named
	unknown, name := "", "" // why no listener has the client's name
	conn, reason, err := s.handshake(raw, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			hasHello(hello)
			if found = s.find(hello.Context(), hello.ServerName); found != nil {
				return found.config, nil
			}
			unknown, name = "unknown_name", hello.ServerName
			if hello.ServerName == "" {
				unknown = "no_name"
			}
			// Settings without a certificate end the handshake with the alert "unrecognized name".
			return &tls.Config{}, nil
		},
	})
	switch {
	case err == nil:
		found.deliver(conn, raw)
	case found != nil:
		found.refused(reason, raw.RemoteAddr(), err)
	case unknown != "":
		s.options.Refused(unknown, raw.RemoteAddr(), unknownName(name))
	default:
		s.options.Refused(reason, raw.RemoteAddr(), err)
	}
}

// unknownName names the server name, which contains the run: it may have ended.
func unknownName(name string) error {
	if name == "" {
		return errors.New("the client sent no server name (SNI)")
	}
	return &RefusedPeer{Subject: shorten(name), Err: errors.New("no run has this server name")}
}

// find waits for the listener of an awaited name.
func (s *Shared) find(ctx context.Context, name string) *named {
	name = strings.ToLower(name)
	for {
		s.mu.Lock()
		found, changed := s.names[name], s.changed
		s.mu.Unlock()
		if found != nil || name == "" || !s.awaited(name) {
			return found
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-s.over:
			return nil
		}
	}
}

// deliver delivers a connection to Accept.
func (n *named) deliver(conn *tls.Conn, raw *counted) {
	select {
	case n.ready <- conn:
	case <-n.closed:
		raw.Close()
	case <-n.shared.over:
		raw.Close()
	}
}

// Accept implements net.Listener.
func (n *named) Accept() (net.Conn, error) {
	select {
	case conn := <-n.ready:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-n.shared.over:
		return nil, n.shared.failure
	}
}

// Close releases the name; the socket remains open.
func (n *named) Close() error {
	n.once.Do(func() {
		close(n.closed)
		n.shared.mu.Lock()
		defer n.shared.mu.Unlock()
		delete(n.shared.names, n.name)
	})
	return nil
}

// Addr implements net.Listener.
func (n *named) Addr() net.Addr { return n.shared.socket.Addr() }
