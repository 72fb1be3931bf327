// Package listen opens the gateway's sockets and performs TLS handshakes on them.
package listen

import (
	"crypto/tls"
	"net"
)

// TLS returns a listener of connections that completed their handshake: a failed one is counted, and never reaches the
// HTTP server.
func TLS(socket net.Listener, config *tls.Config, options Options) net.Listener {
	config = config.Clone()
	choose := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		hasHello(hello)
		if choose == nil {
			return nil, nil
		}
		return choose(hello)
	}
	l := &listener{acceptor: newAcceptor(socket, options), ready: make(chan net.Conn)}
	go l.run(func(raw *counted) {
		conn, reason, err := l.handshake(raw, config)
		if err != nil {
			options.Refused(reason, raw.RemoteAddr(), err)
			return
		}
		select {
		case l.ready <- conn:
		case <-l.over:
			raw.Close()
		}
	})
	return l
}

type listener struct {
	*acceptor
	ready chan net.Conn
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.ready:
		return conn, nil
	case <-l.over:
		return nil, l.failure
	}
}

// Close implements net.Listener.
func (l *listener) Close() error { return l.end(net.ErrClosed) }

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.socket.Addr() }
