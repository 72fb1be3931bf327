// Package listen opens the gateway's sockets and shakes hands on them.
package listen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	handshakeTimeout = 10 * time.Second
	handshakesAtOnce = 256
)

// Options of TLS.
type Options struct {
	// MaxConnections open at a time, those in their handshake included; more wait in the kernel.
	MaxConnections int
	// Refused is told of each handshake that failed, with a word for why: "no_certificate",
	// "other_authority", "expired", "bad_certificate", "plain_http", "timeout", "gone", "other".
	Refused func(reason string, remote net.Addr, err error)
	// PlainHTTP is the line for a client that speaks HTTP without TLS.
	PlainHTTP string
}

// TLS gives a listener whose connections have their handshake behind them: one that is slow or fails
// holds nobody else up, is counted, and never reaches the HTTP server.
func TLS(inner net.Listener, config *tls.Config, options Options) net.Listener {
	l := &listener{
		Listener: inner, config: config, options: options,
		ready: make(chan net.Conn), failed: make(chan error, 1), closed: make(chan struct{}),
		open: make(chan struct{}, options.MaxConnections), shaking: make(chan struct{}, handshakesAtOnce),
	}
	go l.run()
	return l
}

type listener struct {
	net.Listener
	config  *tls.Config
	options Options
	ready   chan net.Conn
	failed  chan error
	open    chan struct{} // one token for each connection
	shaking chan struct{} // one token for each handshake
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.ready:
		return conn, nil
	case err := <-l.failed:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (l *listener) run() {
	for {
		for _, tokens := range []chan struct{}{l.open, l.shaking} {
			select {
			case tokens <- struct{}{}:
			case <-l.closed:
				return
			}
		}
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.open
			<-l.shaking
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() || isTransient(err) {
				time.Sleep(10 * time.Millisecond) // out of file descriptors, say: they come back
				continue
			}
			l.failed <- err
			return
		}
		go l.shake(&counted{Conn: conn, tokens: l.open})
	}
}

// counted gives its token back once, when it is closed.
type counted struct {
	net.Conn
	tokens chan struct{}
	once   sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { <-c.tokens })
	return c.Conn.Close()
}

func (l *listener) shake(raw *counted) {
	conn := tls.Server(raw, l.config)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	err := conn.HandshakeContext(ctx)
	cancel()
	<-l.shaking
	if err != nil {
		reason := refusal(err)
		if reason == "plain_http" {
			l.answerPlain(raw)
		}
		raw.Close()
		l.options.Refused(reason, raw.RemoteAddr(), err)
		return
	}
	select {
	case l.ready <- conn:
	case <-l.closed:
		raw.Close()
	}
}

func refusal(err error) string {
	var header tls.RecordHeaderError
	var unverified *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var network net.Error
	switch {
	case errors.As(err, &header) && looksLikeHTTP(header.RecordHeader):
		return "plain_http"
	case errors.As(err, &unknown):
		return "other_authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "expired"
	case errors.As(err, &unverified), errors.As(err, &invalid):
		return "bad_certificate"
	case strings.Contains(err.Error(), "didn't provide a certificate"):
		return "no_certificate"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.As(err, &network):
		return "gone"
	}
	return "other"
}

func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		return true
	}
	return false
}

// answerPlain reads a little of what the client still sends: closing with unread bytes would reset the
// connection, and the client would never see the answer.
func (l *listener) answerPlain(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"+
		l.options.PlainHTTP+"\n")
	if half, ok := conn.(*counted).Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, conn, 64<<10)
}
