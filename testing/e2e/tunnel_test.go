package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"muster.example/testing/fleet"
)

// behind returns a node that joined through the proxy and is attached through it.
func behind(t *testing.T, f *fleet.Fleet, p *inspection) *branch {
	t.Helper()
	b := &branch{Fleet: f, n1: join(t, f, "n1", collectPolicy, nil, p.environment())}
	b.n1.attach(t)
	return b
}

func (b *branch) linkOf(t *testing.T, node string) string {
	t.Helper()
	return fmt.Sprint(must(listNodes(b.Fleet))(t)[node]["link"])
}

func (b *branch) awaitLink(t *testing.T, node, begin string) {
	t.Helper()
	check(t, fleet.Until(2*time.Minute, node+" has a link "+begin, func() bool {
		all, err := listNodes(b.Fleet)
		return err == nil && strings.HasPrefix(fmt.Sprint(all[node]["link"]), begin)
	}))
}

// tunnelAddress returns the address of the gateway's tunnels, as a join token has it.
func tunnelAddress(t *testing.T, f *fleet.Fleet) string {
	t.Helper()
	var content struct {
		Targets []string `json:"join_targets"`
	}
	check(t, json.Unmarshal(must(os.ReadFile(token(t, f, "--node", "other")))(t), &content))
	last := content.Targets[len(content.Targets)-1]
	if !strings.HasPrefix(last, "wss://") {
		t.Fatalf("the token has no tunnel: %v", content.Targets)
	}
	return strings.TrimPrefix(last, "wss://")
}

// A node joins, attaches, runs commands and delivers behind a proxy that reads all TLS. The proxy reads ciphertext, and
// the node says why it uses a tunnel.
func TestNodeBehindInspectingProxyUsesTunnel(t *testing.T) {
	t.Parallel()
	f, p := up(t), inspect(t)
	file := token(t, f, "--node", "n0")
	_, stderr, code := newMachine(t, f).muster(t, p.environment(), "node", "join", "--token-file", file)
	if code != 0 || !strings.Contains(stderr, "a tunnel is used") {
		t.Fatalf("join: exit %d: %s", code, stderr)
	}
	b := behind(t, f, p)
	link := b.linkOf(t, "n1")
	for _, part := range []string{"websocket wss://" + tunnelAddress(t, f), "through the proxy " + p.address, "ended without HTTP/2",
		"TLS not verified: issued by"} {
		if !strings.Contains(link, part) {
			t.Errorf("the link is %q, without %q", link, part)
		}
	}
	if shown := must(f.Muster("node", "show", "n1"))(t); !strings.Contains(shown, "websocket wss://") {
		t.Errorf("muster node show prints %s", shown)
	}
	job := execDetached(t, f, "/bin/echo", "text-of-the-command")
	awaitFinal(t, f, job, "n1")
	if out := must(f.Muster("job", "logs", job))(t); out != "n1: text-of-the-command\n" {
		t.Errorf("the job printed %q", out)
	}
	c := b.collect(t, 50<<20)
	c.release(t)
	c.wantComplete(t)
	b.n1.must(t, "share", filepath.Join(b.n1.folder(), "node.json"), "--to", "n1", "--id", "own", "--wait", "1s")
	read := p.decrypted()
	for _, secret := range []string{"text-of-the-command", "spiffe://", "muster.v1.AttachService", "BEGIN CERTIFICATE"} {
		if strings.Contains(read, secret) {
			t.Errorf("the proxy reads %q", secret)
		}
	}
	if !strings.Contains(read, "GET /tunnel/join HTTP/1.1") || !strings.Contains(read, "GET /tunnel/relay HTTP/1.1") {
		t.Error("the proxy does not read the upgrades: it is not in the way")
	}
}

// The proxy cuts each connection after 4 MiB, and the gateway is killed in between.
func TestResultPassesTunnelThatIsCut(t *testing.T) {
	t.Parallel()
	f, p := up(t), inspect(t)
	b := behind(t, f, p)
	p.cutAt.Store(12 << 20)
	c := b.collect(t, 50<<20)
	c.release(t)
	until(t, "the proxy has cut two connections", func() bool { return p.cuts.Load() > 1 })
	killUntilRestart(t, f, fleet.Gateway)
	c.wantComplete(t)
}

// The direct way works again: a node that has lost its tunnel tries that first.
func TestNodeReturnsToDirectConnection(t *testing.T) {
	t.Parallel()
	f, p := up(t), inspect(t)
	b := behind(t, f, p)
	b.awaitLink(t, "n1", "websocket ")
	p.passes.Store(true)
	p.cut()
	b.awaitLink(t, "n1", "direct")
}

// Neither a relay that is unreachable nor a fleet that has revoked the node makes it use a tunnel.
func TestRefusedOrLostNodeUsesNoTunnel(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := attached(t, f, "n1")
	must(f.Muster("node", "revoke", "n1"))(t)
	until(t, "the node is refused", func() bool { return strings.Contains(n.agent.Output.String(), "not attached") })
	n.agent.End()
	if log := n.agent.Output.String(); strings.Contains(log, "tunnel") {
		t.Errorf("the log of the revoked node: %s", log)
	}
}

// joinBy joins a node with --link.
func joinBy(t *testing.T, f *fleet.Fleet, link string, environment ...string) (n *node, stderr string, code int) {
	t.Helper()
	n = &node{machine: newMachine(t, f), name: "n1", extra: environment}
	_, stderr, code = n.muster(t, environment, "node", "join", "--link", link, "--token-file", token(t, f, "--node", "n1"))
	return n, stderr, code
}

// The configured link is that of another proxy, which plays the gateway, as nginx at the edge of a network does.
func TestConfiguredLinkIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	f, p := up(t), inspect(t)
	edge := "wss://" + p.edge(tunnelAddress(t, f))
	n, stderr, code := joinBy(t, f, edge)
	if code != 0 {
		t.Fatalf("join: exit %d: %s", code, stderr)
	}
	n.attach(t)
	b := &branch{Fleet: f, n1: n}
	if link := b.linkOf(t, "n1"); !strings.HasPrefix(link, "websocket "+edge+" without a proxy") || !strings.Contains(link, "configured link") {
		t.Errorf("the link is %q", link)
	}
	if _, stderr, code := joinBy(t, f, "websocket"); code != 67 || !strings.Contains(stderr, "wss://HOST:PORT") {
		t.Errorf("another link: exit %d: %s", code, stderr)
	}
}

func TestDirectLinkUsesNoTunnel(t *testing.T) {
	t.Parallel()
	f, p := up(t), inspect(t)
	if _, stderr, code := joinBy(t, f, "direct", p.environment()...); code == 0 || !strings.Contains(stderr, "without HTTP/2") {
		t.Errorf("join: exit %d: %s", code, stderr)
	}
	if p.tunnels.Load() != 0 {
		t.Error("a tunnel was used")
	}
}

// A relay behind such a proxy attaches for its nodes.
func TestRelayBehindInspectingProxyUsesTunnel(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	f, p := up(t), inspect(t)
	r := &relay{machine: newMachine(t, f), name: "r1"}
	r.extra = p.environment()
	if _, stderr, code := r.muster(t, r.extra, "relay", "join", "--token-file", token(t, f, "--relay", "r1"), "--dir", r.home,
		"--advertise", at("127.0.0.1")); code != 0 {
		t.Fatalf("the relay joins: exit %d: %s", code, stderr)
	}
	check(t, os.WriteFile(r.config(), fmt.Appendf(nil, "state_folder: %s\nlisten: %s\n", r.home, at("127.0.0.1")), 0o600))
	r.start(t)
	b := &branch{Fleet: f, r1: r, n1: join(t, f, "n1", collectPolicy, nil, nil, "--parent", "r1")}
	b.awaitLink(t, "r1", "websocket ")
	b.n1.attach(t)
	b.awaitParent(t, "n1", "r1")
	c := b.collect(t, 8<<20)
	c.release(t)
	c.wantComplete(t)
}

// A stranger that opens tunnels without end gets the share of its address, no connection to another listener, and
// disturbs no node.
func TestStrangerOpensTunnelsWithoutEnd(t *testing.T) {
	t.Parallel()
	f, p := up(t), inspect(t)
	b := behind(t, f, p)
	address := tunnelAddress(t, f)
	stranger := &http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	open, refused := 0, 0
	for range 1000 {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		conn, response, err := websocket.Dial(ctx, "https://"+address+"/tunnel/relay", &websocket.DialOptions{HTTPClient: stranger,
			Subprotocols: []string{"muster.tunnel.v1"}})
		cancel()
		switch {
		case err == nil:
			open++
			t.Cleanup(func() { conn.CloseNow() })
		case response != nil && response.StatusCode == http.StatusTooManyRequests:
			refused++
		default:
			t.Fatalf("after %d tunnels: %v", open, err)
		}
	}
	if open < 256 || refused == 0 {
		t.Errorf("%d tunnels are open, %d were refused", open, refused)
	}
	job := execDetached(t, f, "/bin/echo", "still here")
	if final := awaitFinal(t, f, job, "n1"); final["outcome"] != "exited" {
		t.Errorf("the command of the node: %v", final)
	}
	p.cut() // the node opens new ones
	b.awaitParent(t, "n1", "root")
}

// A gateway that lies connects tunnels to its own server: the node refuses it, and shows it nothing.
func TestLyingGatewayCannotPlayTheRelay(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := join(t, f, "n1", "", nil, nil)
	var handshakes atomic.Int32
	liar := httptest.NewUnstartedServer(nil)
	liar.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2"}, VerifyConnection: func(tls.ConnectionState) error {
		handshakes.Add(1)
		return errors.New("a node has completed its part")
	}}
	liar.StartTLS()
	t.Cleanup(liar.Close)
	gateway := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"muster.tunnel.v1"}})
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", liar.Listener.Addr().String())
		if err != nil {
			return
		}
		client := websocket.NetConn(context.Background(), conn, websocket.MessageBinary)
		go pipe(server, client)
		pipe(client, server)
	}))
	t.Cleanup(gateway.Close)
	file := filepath.Join(n.folder(), "node.json")
	var member map[string]any
	check(t, json.Unmarshal(must(os.ReadFile(file))(t), &member))
	member["link"] = "wss://" + gateway.Listener.Addr().String()
	check(t, os.WriteFile(file, must(json.Marshal(member))(t), 0o600))
	n.start(t)
	until(t, "the node refuses the server", func() bool {
		return strings.Contains(n.agent.Output.String(), "the certificate of the server")
	})
	if handshakes.Load() != 0 {
		t.Error("the node has sent its certificate to a stranger")
	}
}

// pipe copies until one side ends, and closes both.
func pipe(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_, writeErr := to.Write(buffer[:n])
			err = errors.Join(err, writeErr)
		}
		if err != nil {
			to.Close()
			from.Close()
			return
		}
	}
}
