package listen

//lint:file-ignore SA1019 net/http itself serves HTTP/2 with its TLS state only on a *tls.Conn, whose bytes cannot be counted

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// errFlood ends a connection whose client sends too many frames.
var errFlood = errors.New("too many frames of HTTP/2")

// meteredConn counts the frames of its client before HTTP/2 reads them.
type meteredConn struct {
	*tls.Conn
	raw     *counted
	meter   *frameMeter
	written atomic.Int64 // since the meter asked
}

func newMeteredConn(conn *tls.Conn) *meteredConn {
	c := &meteredConn{Conn: conn, raw: conn.NetConn().(*counted)} // of TLS
	c.meter = newFrameMeter(c.raw.source, func() int64 { return c.written.Swap(0) })
	return c
}

// Read implements net.Conn.
func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if excess := c.meter.read(p[:n], time.Now()); excess != "" {
		c.raw.flooded(excess)
		_ = c.raw.Close() // without the alert of TLS, which would wait for a client that reads nothing
		return 0, errFlood
	}
	return n, err
}

// Write implements net.Conn.
func (c *meteredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// serveHTTP2 lets a server count the frames of its clients. The HTTP/2 of net/http itself takes only a *tls.Conn, so that
// nothing can read its bytes before.
func serveHTTP2(server *http.Server) {
	protocol := &http2.Server{}
	if err := http2.ConfigureServer(server, protocol); err != nil {
		panic(err) // the settings lack a cipher suite that HTTP/2 needs
	}
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		http2.NextProtoTLS: func(base *http.Server, conn *tls.Conn, handler http.Handler) {
			options := &http2.ServeConnOpts{Handler: handler, BaseConfig: base}
			// net/http passes its context by this method, which its documentation does not mention.
			if with, ok := handler.(interface{ BaseContext() context.Context }); ok {
				options.Context = with.BaseContext()
			}
			protocol.ServeConn(newMeteredConn(conn), options)
		},
	}
}

// offersHTTP2 reports whether clients may choose HTTP/2.
func offersHTTP2(settings *tls.Config) bool {
	return settings != nil && slices.Contains(settings.NextProtos, http2.NextProtoTLS)
}
