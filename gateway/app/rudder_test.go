package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.example/gateway/listen"
	"muster.example/services/client/go/mustertest"
)

// relaying adds a listener for Rudder's API with a nodes list to the gateway.
func relaying(w *testGateway) {
	leaf := w.fleet.Intermediate.Leaf(alice)
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &w.config.Rudder
	c.Listen, c.NodeID = "127.0.0.1:0", "root"
	c.CertificateFile = write(w.t, "own.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]})))
	c.KeyFile = write(w.t, "own.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	c.NodesListFile = write(w.t, "nodeslist.json", `{"n1":{"hostname":"one.example","policy-server":"root"}}`)
	c.NodesCertsFile, c.ClientCAFile = "", ""
	c.SharedFiles, c.SharedFolder = filepath.Join(w.t.TempDir(), "files"), w.t.TempDir()
	c.RemoteRunCommand = []string{"echo", "ran"}
}

func TestRudderListenerReloadsNodesList(t *testing.T) {
	w := start(t, relaying)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	run := func() string {
		return call(t, client, "POST", "https://"+w.gateway.Addresses.Rudder+"/rudder/relay-api/remote-run/all",
			strings.NewReader("keep_output=true")).body
	}
	if got := run(); got != "ran -- one.example\n" {
		t.Error(got)
	}
	if err := os.WriteFile(w.config.Rudder.NodesListFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.gateway.Reload(); err == nil || run() != "ran -- one.example\n" {
		t.Error("a malformed list was accepted", err)
	}
	if err := os.WriteFile(w.config.Rudder.NodesListFile, []byte(`{"n2":{"hostname":"two.example","policy-server":"root"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.gateway.Reload(); err != nil || run() != "ran -- two.example\n" {
		t.Error("the new list was not loaded", err)
	}
	if got := w.metric("requests_total", `code="200",listener="rudder",route="remote-run"`); got != 3 {
		t.Error(got)
	}
}

func TestRudderListenerIsOffByDefault(t *testing.T) {
	w := start(t)
	if w.gateway.Addresses.Rudder != "" || w.gateway.Reload() == nil {
		t.Error(w.gateway.Addresses)
	}
}

func TestRudderReachesAttachedNodesOverStreams(t *testing.T) {
	let := make(chan struct{})
	close(let)
	w := start(t, relaying, func(w *testGateway) {
		w.config.Rudder.Dialect, w.config.Rudder.SharedFilesNodes = "extended", filepath.Join(w.t.TempDir(), "files")
		w.relay.AddNode("one.example", printer("by stream\n", let))
	})
	own, err := tls.LoadX509KeyPair(w.config.Rudder.CertificateFile, w.config.Rudder.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{own}}}}
	run := func(nodes string) answer {
		return call(t, client, "GET", "https://"+w.gateway.Addresses.Rudder+"/rudder/relay-api/remote-run/nodes?nodes="+nodes, nil)
	}
	got := run("n1")
	if want := `{"node":"n1","event":"start"}` + "\nn1: by stream\n" + `{"node":"n1","event":"end","code":3,`; got.code != 200 || !strings.HasPrefix(got.body, want) {
		t.Error(got)
	}
	signed := w.relay.Signed()
	if len(signed) != 1 {
		t.Fatal(len(signed))
	}
	if sent, uri, err := w.aggregator.Commands.Check(signed[0]); err != nil || !strings.HasSuffix(uri, "/service/gateway/g1") || sent.Action != "rudder" {
		t.Error(sent, uri, err)
	}
	for _, caller := range w.relay.Callers() {
		if caller != "[]" {
			t.Error("the gateway called for", caller)
		}
	}
	// The longest list that a query may have.
	many := strings.Repeat("0123456789abcdef0123456789abcdef0123,", 20_000) + "n1"
	if got := run(many); got.code != 200 || strings.Count(got.body, "unknown") != 1 || !strings.Contains(got.body, "n1: by stream") {
		t.Error(got.code, len(got.body))
	}
	if got := run(many + "," + many); got.code != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(got.code)
	}
}

// A stranger's body is not read: the answer and the end of the connection come immediately.
func TestSilentBodyOfStrangerAtRudderListenerIsAnswered(t *testing.T) {
	w := start(t, relaying)
	var all sync.WaitGroup
	for kind, head := range silentBodies {
		conn, err := tls.Dial("tcp", w.gateway.Addresses.Rudder, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		all.Go(func() {
			if code, body := sendSilently(t, kind, conn, "GET /rudder/relay-api/shared-folder/x", head); code != 403 {
				t.Errorf("%s: %d %s", kind, code, body)
			}
		})
	}
	all.Wait()
}

// Slow senders do not hold the places of uploads.
func TestSlowSenderAtRudderListenerIsDisconnected(t *testing.T) {
	usual := listen.DefaultPace
	listen.DefaultPace = listen.Pace{Window: 300 * time.Millisecond, Bytes: 1 << 20}
	t.Cleanup(func() { listen.DefaultPace = usual })
	w := start(t, relaying)
	conn, err := tls.Dial("tcp", w.gateway.Addresses.Rudder, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, _ = io.WriteString(conn, "POST /rudder/relay-api/remote-run/all HTTP/1.1\r\nHost: x\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100000\r\n\r\n")
	mustertest.Await(t, "it is disconnected", func() bool {
		_, err := io.WriteString(conn, "x") // never silent
		return err != nil
	})
}
