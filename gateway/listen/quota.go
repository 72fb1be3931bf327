package listen

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"muster.example/gateway/limits"
)

// quotas counts the connections of each client. The zero value is ready for use. Safe for concurrent use.
type quotas[K comparable] struct {
	mu    sync.Mutex
	count map[K]int
}

// acquire counts one more, unless the limit is reached; 0: no limit.
func (q *quotas[K]) acquire(client K, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit > 0 && q.count[client] >= limit {
		return false
	}
	if q.count == nil {
		q.count = map[K]int{}
	}
	q.count[client]++
	return true
}

// release counts one less.
func (q *quotas[K]) release(client K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count[client]--; q.count[client] == 0 {
		delete(q.count, client)
	}
}

// perAddress limits the simultaneous handshakes of each address. Safe for concurrent use.
type perAddress struct {
	limit int
	mu    sync.Mutex
	all   map[netip.Prefix]*addressTokens
}

type addressTokens struct {
	users  int
	tokens chan struct{}
}

// acquire returns the tokens of an address, until release.
func (t *perAddress) acquire(address netip.Prefix) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[netip.Prefix]*addressTokens{}
	}
	one := t.all[address]
	if one == nil {
		one = &addressTokens{tokens: make(chan struct{}, t.limit)}
		t.all[address] = one
	}
	one.users++
	return one.tokens
}

// release ends one use of the tokens of an address.
func (t *perAddress) release(address netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[address]
	if one.users--; one.users == 0 {
		delete(t.all, address)
	}
}

// networkOf returns the NetworkOf a client of TCP.
func networkOf(remote net.Addr) netip.Prefix {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return NetworkOf(tcp.AddrPort().Addr())
}

// NetworkOf returns the address of a client; for IPv6 its network of 64 bits, because a client has all of its addresses.
func NetworkOf(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	bits := 32
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits)
	return network
}

// identityOf returns the URI of a verified certificate with its root CA, because a renewal changes the key. Any other
// certificate is an identity itself: its client could claim the URI of another.
func identityOf(state *tls.ConnectionState) string {
	certificate := state.PeerCertificates[0]
	if len(state.VerifiedChains) == 0 || len(certificate.URIs) != 1 {
		return fmt.Sprintf("%x", sha256.Sum256(certificate.Raw))
	}
	chain := state.VerifiedChains[0]
	return fmt.Sprintf("%x %s", sha256.Sum256(chain[len(chain)-1].Raw), certificate.URIs[0])
}

// Describe returns the identity of a certificate for people. The URI of a run's certificate contains the run.
func Describe(certificate *x509.Certificate) string {
	if len(certificate.URIs) == 1 {
		return shorten(certificate.URIs[0].String())
	}
	return shorten(fmt.Sprintf("a certificate without a Muster URI, of %q by %q", certificate.Subject, certificate.Issuer))
}

// shorten bounds a name that a stranger may have chosen.
func shorten(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), limits.PeerName)], "")
}

// RefusedPeer is the failure of a handshake because of the client's certificate, or of the server name that it sent.
type RefusedPeer struct {
	Subject string // the certificate or the name
	Err     error
}

// Error implements error.
func (r *RefusedPeer) Error() string { return r.Subject + ": " + r.Err.Error() }

// Unwrap returns the reason.
func (r *RefusedPeer) Unwrap() error { return r.Err }

// Answer is a prepared answer of HTTP; its connection is closed.
type Answer struct {
	Code              int
	ContentType, Body string
}

// send answers a connection after its handshake: with HTTP/1.1 before a request, with HTTP/2 by an error for the
// connection.
func (a Answer) send(conn *tls.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limits.CloseDelay))
	if conn.ConnectionState().NegotiatedProtocol == http2.NextProtoTLS {
		framer := http2.NewFramer(conn, nil)
		_ = framer.WriteSettings()
		_ = framer.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte(a.Body))
	} else {
		var text bytes.Buffer
		fmt.Fprintf(&text, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
			a.Code, http.StatusText(a.Code), a.ContentType, len(a.Body), a.Body)
		_, _ = conn.Write(text.Bytes())
	}
	// A close with unread bytes would reset the connection before the client sees the answer.
	_, _ = io.CopyN(io.Discard, conn, limits.CloseBytes)
}
