package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	handshakeTimeout = 10 * time.Second
	handshakesAtOnce = 256
)

// Options of a TLS socket.
type Options struct {
	// MaxConnections bounds the open connections, including those in their handshake; more wait in the kernel.
	MaxConnections int
	// Refused is called for each failed handshake with a reason: "no_certificate", "other_authority", "expired",
	// "bad_certificate", "no_name", "unknown_name", "plain_http", "timeout", "gone", "other".
	Refused func(reason string, remote net.Addr, err error)
	// PlainHTTP is the answer to a client that uses HTTP without TLS.
	PlainHTTP string
}

// acceptor accepts connections and performs their handshakes concurrently: a slow or failing one does not delay others.
type acceptor struct {
	socket      net.Listener
	options     Options
	open        chan struct{} // one token for each connection
	handshaking chan struct{} // one token for each handshake
	once        sync.Once
	over        chan struct{} // closed when it stops accepting
	failure     error         // the reason; set before over is closed
}

func newAcceptor(socket net.Listener, options Options) *acceptor {
	return &acceptor{
		socket: socket, options: options, over: make(chan struct{}),
		open: make(chan struct{}, options.MaxConnections), handshaking: make(chan struct{}, handshakesAtOnce),
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
		for _, tokens := range []chan struct{}{a.open, a.handshaking} {
			select {
			case tokens <- struct{}{}:
			case <-a.over:
				return
			}
		}
		conn, err := a.socket.Accept()
		if err != nil {
			<-a.open
			<-a.handshaking
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() || isTransient(err) {
				time.Sleep(10 * time.Millisecond) // for example, out of file descriptors: some will be freed
				continue
			}
			_ = a.end(err)
			return
		}
		go handshake(&counted{Conn: conn, tokens: a.open})
	}
}

// handshake returns a connection after its handshake, or the reason for its failure; a failed connection is closed.
func (a *acceptor) handshake(raw *counted, config *tls.Config) (conn *tls.Conn, reason string, err error) {
	conn = tls.Server(raw, config)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	err = conn.HandshakeContext(ctx)
	cancel()
	<-a.handshaking
	if err == nil {
		return conn, "", nil
	}
	reason = refusal(err)
	if reason == "plain_http" {
		answerPlain(raw, a.options.PlainHTTP)
	}
	raw.Close()
	return nil, reason, err
}

// counted is a connection that returns its token once, when it is closed.
type counted struct {
	net.Conn
	tokens chan struct{}
	once   sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { <-c.tokens })
	return c.Conn.Close()
}
