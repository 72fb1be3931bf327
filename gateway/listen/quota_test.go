package listen

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http2"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

// limitedSocket is a TLS socket with limits whose connections remain open.
type limitedSocket struct {
	t        *testing.T
	fleet    *mustertest.Fleet
	listener net.Listener
	mu       sync.Mutex
	refusals []string
}

func openLimitedSocket(t *testing.T, options Options, change ...func(*tls.Config)) *limitedSocket {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &limitedSocket{t: t, fleet: mustertest.NewFleet()}
	options.Refused = func(reason string, _ net.Addr, _ error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refusals = append(s.refusals, reason)
	}
	options.TooMany = Answer{Code: http.StatusTooManyRequests, ContentType: "text/plain", Body: "TOO_MANY\n"}
	config := &tls.Config{
		Certificates: []tls.Certificate{s.fleet.Service("gateway", "g1")}, ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs: s.fleet.Root.Pool(), NextProtos: []string{"h2", "http/1.1"},
	}
	for _, c := range change {
		c(config)
	}
	s.listener = TLS(socket, config, options)
	t.Cleanup(func() { s.listener.Close() })
	go func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the client's close
				_, _ = io.WriteString(conn, "admitted\n")
				_, _ = io.Copy(io.Discard, conn)
				conn.Close()
			}()
		}
	}()
	return s
}

// dial returns a connection and the first bytes of the server.
func (s *limitedSocket) dial(leaf *tls.Certificate, protocols ...string) (conn *tls.Conn, text string) {
	s.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: protocols} // the server's name is not part of these tests
	if leaf != nil {
		config.Certificates = []tls.Certificate{*leaf}
	}
	conn, err := tls.Dial("tcp", s.listener.Addr().String(), config)
	if err != nil {
		return nil, ""
	}
	s.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if len(protocols) > 0 {
		return conn, ""
	}
	text, _ = bufio.NewReader(conn).ReadString('\n')
	return conn, text
}

// awaitAdmitted dials until a place is free.
func (s *limitedSocket) awaitAdmitted(leaf *tls.Certificate) {
	s.t.Helper()
	mustertest.Await(s.t, "a closed connection does not count", func() bool {
		_, text := s.dial(leaf)
		return text == "admitted\n"
	})
}

func (s *limitedSocket) wantRefusal(reason string) {
	s.t.Helper()
	mustertest.Await(s.t, "a refusal "+reason, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(s.refusals, reason)
	})
}

const nodeURI = "spiffe://" + mustertest.Domain + "/node/"

func TestIdentityWithTooManyConnectionsIsRefused(t *testing.T) {
	s := openLimitedSocket(t, Options{Limits: Limits{Connections: 100, PerAddress: 50, PerIdentity: 2}})
	// A renewal changes the key, and not the identity.
	first, second := s.fleet.Intermediate.Leaf(nodeURI+"n1"), s.fleet.Intermediate.Leaf(nodeURI+"n1")
	held, text := s.dial(&first)
	_, again := s.dial(&second)
	if text != "admitted\n" || again != "admitted\n" {
		t.Fatalf("%q %q", text, again)
	}
	if _, text := s.dial(&second); text != "HTTP/1.1 429 Too Many Requests\r\n" {
		t.Errorf("the third connection: %q", text)
	}
	s.wantRefusal("identity_limit")
	other := s.fleet.Intermediate.Leaf(nodeURI + "n2")
	for name, leaf := range map[string]*tls.Certificate{"another node": &other, "a client without a certificate": nil} {
		if _, text := s.dial(leaf); text != "admitted\n" {
			t.Errorf("%s: %q", name, text)
		}
	}
	held.Close()
	s.awaitAdmitted(&first)
}

// A listener may request certificates without verifying them.
func TestForgedCertificateDoesNotUseLimitOfIdentity(t *testing.T) {
	s := openLimitedSocket(t, Options{Limits: Limits{Connections: 100, PerIdentity: 1}},
		func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert })
	forged := mustertest.NewFleet().Intermediate.Leaf(nodeURI+"n1", func(c *x509.Certificate) {
		c.AuthorityKeyId = s.fleet.Intermediate.Certificate.SubjectKeyId
	})
	genuine := s.fleet.Intermediate.Leaf(nodeURI + "n1")
	for _, leaf := range []*tls.Certificate{&forged, &genuine} {
		if _, text := s.dial(leaf); text != "admitted\n" {
			t.Errorf("%q", text)
		}
	}
}

func TestRefusedHTTP2ConnectionGetsGoAway(t *testing.T) {
	s := openLimitedSocket(t, Options{Limits: Limits{Connections: 100, PerIdentity: 1}})
	leaf := s.fleet.Intermediate.Leaf(nodeURI + "n1")
	s.dial(&leaf)
	conn, _ := s.dial(&leaf, "h2")
	framer := http2.NewFramer(io.Discard, conn)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := frame.(*http2.GoAwayFrame); ok {
			if end.ErrCode != http2.ErrCodeEnhanceYourCalm || string(end.DebugData()) != "TOO_MANY\n" {
				t.Errorf("%v %q", end, end.DebugData())
			}
			return
		}
	}
}

func TestRefusalNamesIdentity(t *testing.T) {
	f := mustertest.NewFleet()
	node, nameless := f.Intermediate.Leaf(nodeURI+"n1"), f.Intermediate.Leaf(nodeURI+"n1", func(c *x509.Certificate) { c.URIs = nil })
	for want, leaf := range map[string]tls.Certificate{nodeURI + "n1": node, `a certificate without a Muster URI, of "CN=leaf" by "CN=fleet intermediate"`: nameless} {
		if got := Describe(leaf.Leaf); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSharedIdentityHasNoLimitOfItsOwn(t *testing.T) {
	s := openLimitedSocket(t, Options{Limits: Limits{Connections: 100, PerAddress: 3, PerIdentity: 1},
		Shared: func(c *x509.Certificate) bool { return strings.HasSuffix(c.URIs[0].Path, "shared") }})
	leaf := s.fleet.Intermediate.Leaf(nodeURI + "shared")
	for i := range 3 {
		if _, text := s.dial(&leaf); text != "admitted\n" {
			t.Errorf("connection %d: %q", i, text)
		}
	}
}

// A client without a certificate cannot take all connections from one address.
func TestAddressWithTooManyConnectionsIsClosed(t *testing.T) {
	s := openLimitedSocket(t, Options{Limits: Limits{Connections: 100, PerAddress: 2}})
	held, _ := s.dial(nil)
	silent, err := net.Dial("tcp", s.listener.Addr().String()) // without a handshake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	if _, text := s.dial(nil); text != "" {
		t.Errorf("the third connection: %q", text)
	}
	s.wantRefusal("address_limit")
	held.Close()
	s.awaitAdmitted(nil)
}

func TestNetworkOfAddress(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7:1": "192.0.2.7/32", "[::ffff:192.0.2.7]:1": "192.0.2.7/32",
		"[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64",
	} {
		if got := networkOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))); got.String() != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// Silent clients at one address take only their share of the handshakes.
func TestSilentHandshakesOfOneAddressDoNotDelayOthers(t *testing.T) {
	a := newAcceptor(nil, Options{Limits: Limits{Connections: 1000}})
	silent, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	release := make(chan struct{})
	var started, ended sync.WaitGroup
	begin := func(address netip.Prefix) {
		a.begin(&counted{}, address, func(raw *counted) {
			started.Done()
			<-release
			raw.finished()
		})
	}
	started.Add(limits.HandshakesOfAddress)
	for range 2 * limits.Handshakes {
		ended.Go(func() { begin(silent) })
	}
	started.Wait()
	started.Add(1)
	ended.Go(func() { begin(other) })
	started.Wait() // for ever if the silent address had all
	started.Add(2*limits.Handshakes - limits.HandshakesOfAddress)
	close(release)
	ended.Wait()
	if len(a.handshakes.all) != 0 || len(a.handshaking) != 0 {
		t.Errorf("%d addresses, %d handshakes remain", len(a.handshakes.all), len(a.handshaking))
	}
}

func TestNameOfStrangerIsShortened(t *testing.T) {
	long := strings.Repeat("é", limits.PeerName)
	var refused *RefusedPeer
	if !errors.As(unknownName(long), &refused) {
		t.Fatal("an unknown server name is not named")
	}
	for _, name := range []string{
		Describe(&x509.Certificate{Subject: pkix.Name{CommonName: long}}),
		Describe(&x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "fleet", Path: long}}}),
		refused.Subject,
	} {
		if len(name) > limits.PeerName || !utf8.ValidString(name) || len(name) < 900 {
			t.Errorf("%d bytes: %q", len(name), name)
		}
	}
}

// A refused client that continues to send is read for a while, so that it sees the answer.
func TestAnswerReadsBoundedRestOfClient(t *testing.T) {
	near, far := net.Pipe()
	server := tls.Server(near, &tls.Config{Certificates: []tls.Certificate{mustertest.NewFleet().Service("gateway", "g1")}})
	go Answer{Code: http.StatusTooManyRequests, ContentType: "text/plain", Body: "x"}.send(server)
	client := tls.Client(far, &tls.Config{InsecureSkipVerify: true})
	go func() { _, _ = io.Copy(io.Discard, client) }()
	var sent int64
	for {
		n, err := client.Write(make([]byte, 4<<10))
		if sent += int64(n); err != nil {
			break
		}
	}
	if sent < limits.CloseBytes || sent > 2*limits.CloseBytes {
		t.Errorf("%d bytes were read", sent)
	}
}
