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

// Shared is a socket behind which several parties listen, each under a name of its own: the server name
// in the client's hello decides which of them shakes hands. A client that names nobody here is refused
// in the handshake. Safe for concurrent use.
type Shared struct {
	*acceptor
	awaited func(name string) bool

	mu      sync.Mutex
	names   map[string]*named
	changed chan struct{} // closed, and made anew, when a name is added
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

// Share begins to accept. `awaited` tells of a name that nobody has yet but somebody will have soon: who
// asks for it waits as long as a handshake may take.
func Share(socket net.Listener, options Options, awaited func(name string) bool) *Shared {
	s := &Shared{
		acceptor: newAcceptor(socket, options), awaited: awaited,
		names: map[string]*named{}, changed: make(chan struct{}),
	}
	go s.run(s.receive)
	return s
}

// Listen gives the listener of a name, with TLS settings of its own, until it is closed. Letter case
// does not matter. `refused` is told of handshakes that failed after the name was known.
func (s *Shared) Listen(name string, config *tls.Config,
	refused func(reason string, remote net.Addr, err error)) (net.Listener, error) {
	n := &named{
		shared: s, name: strings.ToLower(name), config: config, refused: refused,
		ready: make(chan net.Conn), closed: make(chan struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[n.name] != nil {
		return nil, fmt.Errorf("%s is listened for already", n.name)
	}
	s.names[n.name] = n
	close(s.changed)
	s.changed = make(chan struct{})
	return n, nil
}

// Port is the one that was bound.
func (s *Shared) Port() int { return s.socket.Addr().(*net.TCPAddr).Port }

// Over tells whether nothing is accepted any more.
func (s *Shared) Over() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// Close accepts nothing more for any name.
func (s *Shared) Close() error { return s.end(net.ErrClosed) }

var strangers = map[string]error{
	"no_name":      errors.New("the client named no server (SNI)"),
	"unknown_name": errors.New("the client asked for a server that is not here"),
}

// receive finds out whom a connection is for, and hands it over after that one's handshake.
func (s *Shared) receive(raw *counted) {
	var whose *named
	stranger := "" // why the client's name is nobody's
	conn, reason, err := s.shake(raw, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if whose = s.find(hello.Context(), hello.ServerName); whose != nil {
				return whose.config, nil
			}
			stranger = "unknown_name"
			if hello.ServerName == "" {
				stranger = "no_name"
			}
			// Settings without a certificate make the handshake end with the alert "unrecognized name".
			return &tls.Config{}, nil
		},
	})
	switch {
	case err == nil:
		whose.take(conn, raw)
	case whose != nil:
		whose.refused(reason, raw.RemoteAddr(), err)
	case stranger != "":
		s.options.Refused(stranger, raw.RemoteAddr(), strangers[stranger])
	default:
		s.options.Refused(reason, raw.RemoteAddr(), err)
	}
}

// find waits for a name that is awaited.
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

// take passes a connection on to whoever accepts.
func (n *named) take(conn *tls.Conn, raw *counted) {
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

// Close gives the name up; the socket stays.
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
