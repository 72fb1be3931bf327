package app_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.example/gateway/app"
	"muster.example/gateway/config"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

const (
	runA = "00000000000000aa"
	runB = "00000000000000bb"
)

// testGateway is a gateway with an in-memory aggregator.
type testGateway struct {
	t          *testing.T
	fleet      *mustertest.Fleet
	aggregator *mustertest.Aggregator
	relay      *mustertest.Relay
	config     *config.Config
	gateway    *app.App
	runA       *mustertest.Run
	log        io.Writer // nil: none, or stderr with -v
}

// start starts everything, with one run: plugins logs and e2e, nodes n1, n2 and global.
func start(t *testing.T, change ...func(*testGateway)) *testGateway {
	t.Helper()
	fleet := mustertest.NewFleet()
	w := &testGateway{t: t, fleet: fleet, aggregator: mustertest.NewAggregator(t, fleet), relay: mustertest.NewRelay(t, fleet), config: config.Default()}
	w.config.Listen, w.config.LegacyPorts, w.config.LegacyPort = "127.0.0.1:0", "0", 0
	w.config.StatusListen, w.config.StatusPorts = "127.0.0.1:0", "0"
	w.config.StateFolder = filepath.Dir(fleet.Folder(t, fleet.Service("gateway", "g1")))
	w.config.AggregatorTargets = []string{w.aggregator.Start()}
	w.config.StatusTargets = []string{w.aggregator.StartStatus()}
	w.config.RelayTargets = []string{w.relay.Start()}
	w.config.Hold, w.config.Drain = 20*time.Second, 5*time.Second
	for _, c := range change {
		c(w)
	}
	w.runA = w.aggregator.AddRun(runA, []string{"logs", "e2e", "p.json"}, []string{"n1", "n2", "global"})
	w.startGateway()
	t.Cleanup(func() { w.gateway.Stop() })
	return w
}

// supervised keeps the gateway's sockets open in a supervisor.
func supervised(w *testGateway) { w.config.SupervisorSocket = mustertest.StartSupervisor(w.t) }

func (w *testGateway) startGateway() {
	w.t.Helper()
	var out io.Writer = io.Discard
	if testing.Verbose() {
		out = os.Stderr
	}
	if w.log != nil {
		out = w.log
	}
	gateway, err := app.Start(w.config, slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		w.t.Fatal(err)
	}
	w.gateway = gateway
}

func key(plugin, node string) mustertest.Key {
	return mustertest.Key{Run: runA, Plugin: plugin, Node: node}
}

// leaf returns the credential of a pair of run A.
func (w *testGateway) leaf(plugin, node string) tls.Certificate {
	return w.runA.SelfSigned.Leaf(w.runA.URI("plugin/" + plugin + "/node/" + node))
}

func (w *testGateway) address() string {
	return "127.0.0.1:" + strconv.Itoa(int(w.aggregator.Port(runA)))
}

// oldClient behaves as old workers: no ALPN, no server name, a new connection for each request.
func oldClient(run *mustertest.Run, leaf ...tls.Certificate) *http.Client {
	settings := &tls.Config{RootCAs: run.SelfSigned.Pool()}
	if len(leaf) > 0 { // sent whatever the server requests
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &leaf[0], nil }
	}
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: settings},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type answer struct {
	code   int
	body   string
	header http.Header
}

// call sends a request. A body that is an io.Reader but not a *strings.Reader is sent chunked.
func call(t *testing.T, client *http.Client, method, url string, body io.Reader, header ...string) answer {
	t.Helper()
	a, err := try(client, method, url, body, header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

func try(client *http.Client, method, url string, body io.Reader, header ...string) (answer, error) {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(content), response.Header}, err
}

// put delivers to run A with the pair's credential.
func (w *testGateway) put(plugin, node, content string, header ...string) answer {
	w.t.Helper()
	return call(w.t, oldClient(w.runA, w.leaf(plugin, node)), "PUT",
		"https://"+w.address()+"/api/v1/results/by-node/"+node+"/"+plugin, strings.NewReader(content), header...)
}

// dial opens a TLS connection to run A's listener.
func (w *testGateway) dial(leaf tls.Certificate) *tls.Conn {
	w.t.Helper()
	conn, err := tls.Dial("tcp", w.address(), &tls.Config{RootCAs: w.runA.SelfSigned.Pool(), Certificates: []tls.Certificate{leaf}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	return conn
}

func readAnswer(t *testing.T, conn net.Conn) answer {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, _ := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(content), response.Header}
}

// metric sums a metric over all labels that contain a text.
func (w *testGateway) metric(name, labels string) (sum float64) {
	w.t.Helper()
	a := call(w.t, http.DefaultClient, "GET", "http://"+w.gateway.Addresses.Inspection+"/metrics", nil)
	for _, line := range strings.Split(a.body, "\n") {
		if strings.HasPrefix(line, "muster_gateway_"+name) && strings.Contains(line, labels) {
			value, _ := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
			sum += value
		}
	}
	return sum
}

// operator returns a client of the main listener.
func (w *testGateway) operator(uri string) *http.Client {
	leaf := w.fleet.Intermediate.Leaf(uri)
	roots := x509.NewCertPool()
	roots.AddCert(w.fleet.Root.Certificate)
	return &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{leaf}},
	}}
}

func (w *testGateway) url(path string) string { return "https://" + w.gateway.Addresses.Gateway + path }

const alice = "spiffe://" + mustertest.Domain + "/user/alice"

func decode(t *testing.T, text string) (members map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return members
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pattern generates bytes that differ by position.
type pattern struct{ at, size int64 }

func (p *pattern) Read(b []byte) (int, error) {
	n := int(min(int64(len(b)), p.size-p.at))
	if n == 0 {
		return 0, io.EOF
	}
	for i := range b[:n] {
		at := p.at + int64(i)
		b[i] = byte(at>>16) ^ byte(at>>8) ^ byte(at)
	}
	p.at += int64(n)
	return n, nil
}

func request(method, path, header, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n%s", method, path, header, body)
}

func (w *testGateway) deleteRun(id string) {
	w.aggregator.Tell(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_RunDeleted_{
		RunDeleted: &musterv1.FollowChangesResponse_RunDeleted{Run: id}}})
}
