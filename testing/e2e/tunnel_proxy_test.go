package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// inspection is an HTTP proxy that terminates TLS with its own certificate, and speaks HTTP/1.1 alone. It records
// what it can read.
type inspection struct {
	t       *testing.T
	address string
	passes  atomic.Bool  // it forwards bytes, as an ordinary proxy
	cutAt   atomic.Int64 // bytes after which it cuts a connection to a server; 0: it does not
	cuts    atomic.Int32
	tunnels atomic.Int32 // requests that were upgraded

	mu    sync.Mutex
	edges map[string]*httptest.Server // by the address of the server
	open  map[*watched]bool
	read  bytes.Buffer // the first bytes that it decrypted
}

func inspect(t *testing.T) *inspection {
	t.Helper()
	p := &inspection{t: t, edges: map[string]*httptest.Server{}, open: map[*watched]bool{}}
	proxy := httptest.NewServer(connectHandler(func(address string) (net.Conn, error) {
		if !p.passes.Load() {
			address = p.edge(address)
		}
		return net.Dial("tcp", address)
	}))
	p.address = proxy.Listener.Addr().String()
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		p.cut()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, edge := range p.edges {
			edge.CloseClientConnections()
			edge.Close()
		}
	})
	return p
}

// edge returns the address at which the proxy plays a server.
func (p *inspection) edge(server string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	edge := p.edges[server]
	if edge == nil {
		forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: server})
		forward.Transport = &http.Transport{DialTLSContext: p.dial, DisableKeepAlives: true}
		forward.ModifyResponse = func(r *http.Response) error {
			if r.StatusCode == http.StatusSwitchingProtocols {
				p.tunnels.Add(1)
			}
			return nil
		}
		edge = httptest.NewTLSServer(forward)
		p.edges[server] = edge
	}
	return edge.Listener.Addr().String()
}

func (p *inspection) dial(ctx context.Context, network, server string) (net.Conn, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}}
	conn, err := dialer.DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	w := &watched{Conn: conn, proxy: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[w] = true
	return w, nil
}

// cut ends all connections to servers.
func (p *inspection) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.open {
		w.Conn.Close()
	}
}

func (p *inspection) decrypted() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read.String()
}

// environment returns the variables that send a node through the proxy, also to this machine.
func (p *inspection) environment() []string {
	return []string{"https_proxy=http://" + p.address, "no_proxy="}
}

// watched is a decrypted connection to a server.
type watched struct {
	net.Conn
	proxy  *inspection
	passed atomic.Int64
}

func (w *watched) note(b []byte) {
	p := w.proxy
	p.mu.Lock()
	if p.read.Len() < 1<<20 {
		p.read.Write(b)
	}
	p.mu.Unlock()
	if at := p.cutAt.Load(); at > 0 && w.passed.Add(int64(len(b))) > at {
		p.cuts.Add(1)
		w.Conn.Close()
	}
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.note(b[:n])
	return n, err
}

func (w *watched) Write(b []byte) (int, error) {
	w.note(b)
	return w.Conn.Write(b)
}

func (w *watched) Close() error {
	w.proxy.mu.Lock()
	delete(w.proxy.open, w)
	w.proxy.mu.Unlock()
	return w.Conn.Close()
}
