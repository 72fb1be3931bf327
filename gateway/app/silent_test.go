package app_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

const nodeOne = "spiffe://" + mustertest.Domain + "/node/n1"

// silentBodies are the heads of requests whose body never comes.
var silentBodies = map[string]string{
	"part of a body":   "Content-Length: 100000\r\n\r\n{",
	"chunks":           "Transfer-Encoding: chunked\r\n\r\n",
	"100-continue":     "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n",
	"100, with chunks": "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
}

// connect opens a connection of HTTP/1.1 with a leaf, or none.
func (w *testGateway) connect(address string, leaf *tls.Certificate) (*tls.Conn, error) {
	settings := &tls.Config{RootCAs: w.fleet.Root.Pool(), NextProtos: []string{"http/1.1"}}
	if leaf != nil {
		settings.Certificates = []tls.Certificate{*leaf}
	}
	conn, err := tls.Dial("tcp", address, settings)
	if err == nil {
		w.t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	}
	return conn, err
}

// sendSilently sends the head of a request, and returns the answer; the connection has to be closed after it.
func sendSilently(t *testing.T, name string, conn *tls.Conn, line, head string) (code int, body string) {
	t.Helper()
	if _, err := io.WriteString(conn, line+" HTTP/1.1\r\nHost: x\r\n"+head); err != nil {
		t.Errorf("%s: %v", name, err)
		return 0, ""
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return 0, ""
	}
	content, _ := io.ReadAll(response.Body)
	if !response.Close {
		t.Errorf("%s: %v", name, response)
	}
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Errorf("%s: the connection is not closed: %v", name, err)
	}
	return response.StatusCode, string(content)
}

// The role and the path are decided before the body: no client is asked for a body that it may not send.
func TestSilentBodyOfRefusedCallerIsAnsweredAtOnce(t *testing.T) {
	w, _ := startWithStatus(t)
	node, viewer := w.fleet.Intermediate.Leaf(nodeOne), viewer(w.runA)
	legacy := w.leaf("logs", "n1")
	var all sync.WaitGroup
	for _, c := range []struct {
		name, address, line string
		leaf                *tls.Certificate
		code                int
		reason              string
	}{
		{"a node", w.gateway.Addresses.Gateway, "POST /api/v1/runs", &node, 403, "ROLE_NOT_ALLOWED"},
		{"a node that adds an operator", w.gateway.Addresses.Gateway, "POST /api/v1/operators", &node, 403, "through a gateway"},
		{"a node that wants a link", w.gateway.Addresses.Gateway, "POST /api/v1/dashboard-links", &node, 403, "ROLE_NOT_ALLOWED"},
		{"a node at an unknown path", w.gateway.Addresses.Gateway, "POST /api/v1/nothing", &node, 404, "PATH_NOT_FOUND"},
		{"another fleet's name", w.gateway.Addresses.Gateway, "POST /api/v1/runs", ptr(w.fleet.Intermediate.Leaf("spiffe://other/user/a")), 403, "IDENTITY_UNKNOWN"},
		{"a stranger", w.gateway.Addresses.Status, "POST /api/v1/runs", nil, 401, "CERTIFICATE_MISSING"},
		{"a stranger's status", w.gateway.Addresses.Status, "POST /status", nil, 401, "CERTIFICATE_MISSING"},
		{"a stranger's logout", w.gateway.Addresses.Status, "GET /logout", nil, 405, ""},
		{"a stranger's page", w.gateway.Addresses.Status, "POST /", nil, 405, "METHOD_NOT_ALLOWED"},
		{"a stranger's unknown page", w.gateway.Addresses.Status, "GET /nosuch", nil, 404, "PATH_NOT_FOUND"},
		{"a viewer", w.gateway.Addresses.Status, "POST /api/v1/runs", &viewer, 405, "METHOD_NOT_ALLOWED"},
		{"a viewer's status", w.gateway.Addresses.Status, "POST /status", &viewer, 405, "METHOD_NOT_ALLOWED"},
		{"a legacy client of another node", w.address(), "PUT /api/v1/results/by-node/n2/logs", &legacy, 403, ""},
		{"a legacy client at an unknown path", w.address(), "PUT /nothing", &legacy, 404, ""},
	} {
		for kind, head := range silentBodies {
			var conn *tls.Conn
			var err error
			if c.leaf == &legacy {
				conn = w.dial(legacy)
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			} else if conn, err = w.connect(c.address, c.leaf); err != nil {
				t.Fatal(err)
			}
			name := c.name + ", " + kind
			all.Go(func() {
				if code, body := sendSilently(t, name, conn, c.line, head); code != c.code || !strings.Contains(body, c.reason) {
					t.Errorf("%s: answered %d %s", name, code, body)
				}
			})
		}
	}
	all.Wait()
}

// The gateway's texts are those of the services.
func TestRefusedBodyIsAnsweredAsByService(t *testing.T) {
	w := start(t)
	a := call(t, w.operator(nodeOne), "POST", w.url("/api/v1/runs"), strings.NewReader("{}"))
	got := decode(t, a.body)
	if a.code != 403 || got["message"] != nodeOne+" (node, forwarded by spiffe://"+mustertest.Domain+"/service/gateway/g1) may not call "+musterv1.RunService_CreateRun_FullMethodName ||
		got["next_step"] != "Use the certificate of one of: operator." {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestAllowedCallerIsAskedForBody(t *testing.T) {
	w := start(t)
	conn, err := w.connect(w.gateway.Addresses.Gateway, ptr(w.fleet.Intermediate.Leaf(alice)))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	reader := bufio.NewReader(conn)
	if line, err := reader.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatal(line, err)
	}
	_, _ = reader.ReadString('\n')
	_, _ = io.WriteString(conn, "{}")
	if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != 501 { // the test's aggregator has no CreateRun
		t.Error(response, err)
	}
}

func TestOneIdentityCannotTakeAllConnections(t *testing.T) {
	w := start(t, func(w *testGateway) { w.config.Connections, w.config.PerIdentity = 4, 2 })
	node := w.fleet.Intermediate.Leaf(nodeOne)
	const head = "POST /api/v1/runs/" + runA + "/heartbeats/logs/n1 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n"
	for range 2 {
		conn, err := w.connect(w.gateway.Addresses.Gateway, &node)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, head)
		if line, err := bufio.NewReader(conn).ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" { // now it is counted
			t.Fatal(line, err)
		}
	}
	conn, err := w.connect(w.gateway.Addresses.Gateway, &node)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	content, _ := io.ReadAll(response.Body)
	if response.StatusCode != 429 || decode(t, string(content))["reason"] != "TOO_MANY_CONNECTIONS" {
		t.Errorf("the third connection: %d %s", response.StatusCode, content)
	}
	if a := call(t, w.operator(alice), "GET", w.url("/api/v1/runs"), nil); a.code != 200 {
		t.Errorf("an operator: %d %s", a.code, a.body)
	}
	if w.metric("refused_handshakes_total", `reason="identity_limit"`) == 0 {
		t.Error("the refusal is not counted")
	}
}

// A stranger has one address.
func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	w, _ := startWithStatus(t, func(w *testGateway) { w.config.PerAddress = 2 })
	for range 2 {
		if _, err := w.connect(w.gateway.Addresses.Status, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.connect(w.gateway.Addresses.Status, nil); err == nil {
		t.Error("the third connection is served")
	}
	other := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := tls.DialWithDialer(other, "tcp", w.gateway.Addresses.Status, &tls.Config{RootCAs: w.fleet.Root.Pool()})
	if err != nil {
		t.Fatalf("another address: %v", err)
	}
	conn.Close()
	if w.metric("refused_handshakes_total", `reason="address_limit"`) != 1 {
		t.Error("the refusal is not counted")
	}
}

func TestGatewayErrorsHaveReasonAndNextStep(t *testing.T) {
	w, _ := startWithStatus(t)
	for _, c := range []struct {
		method, url, body string
		code              int
		reason            string
	}{
		{"POST", w.url("/api/v1/runs"), `{"name":"` + strings.Repeat("x", 17<<20) + `"}`, 413, "REQUEST_TOO_LARGE"},
		{"POST", w.url("/api/v1/runs"), `{"nam`, 400, "BAD_REQUEST"},
		{"POST", w.url("/api/v1/runs"), `{} {}`, 400, "BAD_REQUEST"},
		{"POST", w.url("/api/v1/runs"), `{}]`, 400, "BAD_REQUEST"},
		{"POST", w.url("/api/v1/runs"), "{}\n", 501, "UNKNOWN_METHOD"},
		{"POST", w.url("/api/v1/runs"), "", 501, "UNKNOWN_METHOD"},
		{"POST", w.url("/api/v1/runs"), `{}`, 501, "UNKNOWN_METHOD"},
		{"GET", w.url("/api/v1/runs?page_size=x"), "", 400, "BAD_REQUEST"},
		{"GET", w.page("/status?run=nope"), "", 400, "INVALID_NAME"},
		{"GET", w.page("/nosuch"), "", 404, "PATH_NOT_FOUND"},
	} {
		a := call(t, w.operator(alice), c.method, c.url, strings.NewReader(c.body))
		body := decode(t, a.body)
		if next, _ := body["next_step"].(string); a.code != c.code || body["reason"] != c.reason || next == "" {
			t.Errorf("%s %s: %d %.300s", c.method, c.url, a.code, a.body)
		}
	}
}

func TestSilentHTTP2StreamOfStrangerIsAnswered(t *testing.T) {
	w, _ := startWithStatus(t)
	silent, writer := io.Pipe()
	t.Cleanup(func() { writer.Close() })
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: w.fleet.Root.Pool()}}}
	response, err := client.Post(w.page("/api/v1/runs"), "application/json", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 || response.StatusCode != 401 {
		t.Errorf("%v", response)
	}
}
