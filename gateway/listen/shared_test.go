package listen

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster.example/services/client/go/mustertest"
)

// testRun is a run that listens under a name.
type testRun struct {
	run      *mustertest.Run
	host     string
	listener net.Listener
}

// sharedSocket is a shared socket that records refusals as "run reason"; "-" is an unknown run.
type sharedSocket struct {
	t        *testing.T
	fleet    *mustertest.Fleet
	shared   *Shared
	mu       sync.Mutex
	refusals []string
	awaits   map[string]bool

	onAwaited func() // called when a client waits for a name
}

func openSharedSocket(t *testing.T) *sharedSocket {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &sharedSocket{t: t, fleet: mustertest.NewFleet(), awaits: map[string]bool{}}
	h.shared = Share(socket, Options{Limits: Limits{Connections: 100}, PlainHTTP: "speak TLS", Refused: h.note("-")}, func(name string) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.awaits[name] {
			h.onAwaited()
		}
		return h.awaits[name]
	})
	t.Cleanup(func() { h.shared.Close() })
	return h
}

func (h *sharedSocket) note(whose string) func(string, net.Addr, error) {
	return func(reason string, _ net.Addr, _ error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refusals = append(h.refusals, whose+" "+reason)
	}
}

func (h *sharedSocket) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusals = nil
}

func (h *sharedSocket) wantRefusal(want string) {
	h.t.Helper()
	mustertest.Await(h.t, "the refusal is "+want, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.Contains(h.refusals, want)
	})
}

// addRun opens a run's listener; it answers every connection with its host and closes it.
func (h *sharedSocket) addRun(id string) *testRun {
	h.t.Helper()
	p := h.newRun(id)
	h.listen(p)
	return p
}

func (h *sharedSocket) newRun(id string) *testRun {
	return &testRun{run: h.fleet.NewRun(id), host: id + ".example.org"}
}

func (h *sharedSocket) listen(p *testRun) {
	h.t.Helper()
	own := p.run.SelfSigned.Leaf(p.run.URI("listener"), func(c *x509.Certificate) { c.DNSNames = []string{p.host} })
	config := &tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: p.run.SelfSigned.Pool(), SessionTicketsDisabled: true,
	}
	listener, err := h.shared.Listen(p.host, config, h.note(p.run.ID))
	if err != nil {
		h.t.Fatal(err)
	}
	p.listener = listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, p.host)
			conn.Close()
		}
	}()
}

// dial connects to the listener of `whose` with a leaf of `of`, and returns what it reads.
func (h *sharedSocket) dial(whose, of *testRun, change ...func(*tls.Config)) (string, error) {
	leaf := of.run.SelfSigned.Leaf(of.run.URI("plugin/p/node/n"))
	config := &tls.Config{RootCAs: whose.run.SelfSigned.Pool(), ServerName: whose.host,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &leaf, nil }}
	for _, c := range change {
		c(config)
	}
	conn, err := tls.Dial("tcp", h.shared.socket.Addr().String(), config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	return string(text), err
}

func TestServerNameSelectsListener(t *testing.T) {
	h := openSharedSocket(t)
	a, b := h.addRun("a"), h.addRun("b")
	for _, p := range []*testRun{a, b} {
		for _, spelling := range []string{p.host, strings.ToUpper(p.host)} {
			got, err := h.dial(p, p, func(c *tls.Config) { c.ServerName = spelling })
			if err != nil || got != p.host {
				t.Errorf("%s: got %q %v", spelling, got, err)
			}
		}
	}
	if len(h.refusals) > 0 {
		t.Error(h.refusals)
	}
}

func TestLeafOfAnotherRunFailsHandshake(t *testing.T) {
	h := openSharedSocket(t)
	a, b := h.addRun("a"), h.addRun("b")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		h.forget()
		if got, err := h.dial(b, a, func(c *tls.Config) { c.MaxVersion = version }); err == nil || got != "" {
			t.Errorf("TLS %x: got %q %v", version, got, err)
		}
		h.wantRefusal("b other_authority")
	}
}

func TestUnknownServerNameFailsHandshake(t *testing.T) {
	h := openSharedSocket(t)
	a := h.addRun("a")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, reason := range map[string]string{"": "no_name", "127.0.0.1": "no_name", "b.example.org": "unknown_name", "example.org": "unknown_name"} {
			h.forget()
			_, err := h.dial(a, a, func(c *tls.Config) {
				c.ServerName, c.InsecureSkipVerify, c.MaxVersion = name, true, version
			})
			if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
				t.Errorf("TLS %x, %q: %v", version, name, err)
			}
			h.wantRefusal("- " + reason)
		}
	}
	conn, err := net.Dial("tcp", h.shared.socket.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "PUT / HTTP/1.1\r\nHost: a.example.org\r\n\r\n")
	if text, _ := io.ReadAll(conn); !strings.Contains(string(text), "speak TLS") {
		t.Errorf("plain HTTP was answered %q", text)
	}
	h.wantRefusal("- plain_http")
}

func TestClientThatRejectsTheCertificateDiffersFromOneThatGoesAway(t *testing.T) {
	h := openSharedSocket(t)
	a, b := h.addRun("a"), h.addRun("b")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		h.forget()
		if _, err := h.dial(a, a, func(c *tls.Config) { c.RootCAs, c.MaxVersion = b.run.SelfSigned.Pool(), version }); err == nil {
			t.Error("a certificate of another CA was accepted")
		}
		h.wantRefusal("a other")
	}
	conn, err := net.Dial("tcp", h.shared.socket.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	h.wantRefusal("- gone")
}

func TestReleasedNameIsFree(t *testing.T) {
	h := openSharedSocket(t)
	a, b := h.addRun("a"), h.addRun("b")
	if _, err := h.shared.Listen("A.example.org", &tls.Config{}, h.note("twice")); err == nil {
		t.Error("a name got two listeners")
	}
	a.listener.Close()
	if _, err := h.dial(a, a); err == nil {
		t.Error("a closed listener accepted a connection")
	}
	h.wantRefusal("- unknown_name")
	if got, err := h.dial(b, b); err != nil || got != b.host {
		t.Errorf("the other one: %q %v", got, err)
	}
	h.listen(a)
	if got, err := h.dial(a, a); err != nil || got != a.host {
		t.Errorf("after it came back: %q %v", got, err)
	}
	h.shared.Close()
	if _, err := b.listener.Accept(); err == nil || !h.shared.Closed() {
		t.Error("a listener outlives the socket")
	}
}

// After a restart a client may connect before its listener is open.
func TestClientOfAwaitedNameWaits(t *testing.T) {
	h := openSharedSocket(t)
	h.addRun("a")
	late := h.newRun("late")
	h.awaits[late.host] = true
	asked := make(chan struct{})
	h.onAwaited = sync.OnceFunc(func() { close(asked) })
	got := make(chan string)
	go func() {
		text, err := h.dial(late, late)
		if err != nil {
			text = err.Error()
		}
		got <- text
	}()
	select {
	case text := <-got:
		t.Fatalf("the client did not wait: %s", text)
	case <-asked: // in the handshake
	}
	h.listen(late)
	if text := <-got; text != late.host {
		t.Error(text)
	}
}

// A session of one run would admit its client to another run's listener without a certificate of that run. The client
// cache returns any session.
func TestSessionsAreNotResumed(t *testing.T) {
	h := openSharedSocket(t)
	a, b := h.addRun("a"), h.addRun("b")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cache := &anySession{}
		use := func(c *tls.Config) {
			c.ClientSessionCache, c.MaxVersion, c.InsecureSkipVerify = cache, version, true
			c.VerifyConnection = func(state tls.ConnectionState) error {
				if state.DidResume {
					t.Errorf("TLS %x: a session was resumed at %s", version, state.ServerName)
				}
				return nil
			}
		}
		if got, err := h.dial(a, a, use); err != nil || got != a.host {
			t.Errorf("TLS %x: %q %v", version, got, err)
		}
		if got, err := h.dial(b, a, use); err == nil {
			t.Errorf("TLS %x: run b admitted a client of run a: %q", version, got)
		}
		if got, err := h.dial(a, a, use); err != nil || got != a.host {
			t.Errorf("TLS %x: %q %v", version, got, err)
		}
		if cache.session != nil {
			t.Errorf("TLS %x: a ticket was issued", version)
		}
	}
}

type anySession struct{ session *tls.ClientSessionState }

func (c *anySession) Get(string) (*tls.ClientSessionState, bool) { return c.session, c.session != nil }

func (c *anySession) Put(_ string, session *tls.ClientSessionState) { c.session = session }
