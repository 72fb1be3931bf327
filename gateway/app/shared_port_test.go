package app_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"muster.example/services/client/go/mustertest"
)

// startNamed starts a gateway whose runs have host names, with two runs.
func startNamed(t *testing.T) (*testGateway, *mustertest.Run) {
	t.Helper()
	w := start(t, supervised, func(w *testGateway) { w.aggregator.LegacyHost = "{run}.collect.example.org" })
	return w, w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1", "n2"})
}

// hostClient returns an old client whose URL has a host name.
func (w *testGateway) hostClient(run *mustertest.Run, leaf tls.Certificate) *http.Client {
	client := oldClient(run, leaf)
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(address)
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	}
	return client
}

func (w *testGateway) hostURL(run string) string {
	return fmt.Sprintf("https://%s.collect.example.org:%d/api/v1/results/by-node/n1/logs", run, w.aggregator.Port(run))
}

func credential(run *mustertest.Run) tls.Certificate {
	return run.SelfSigned.Leaf(run.URI("plugin/logs/node/n1"))
}

func TestRunsWithHostNamesShareOnePort(t *testing.T) {
	w, other := startNamed(t)
	if a, b := w.aggregator.Port(runA), w.aggregator.Port(runB); a != b {
		t.Fatalf("they listen on %d and %d", a, b)
	}
	for _, run := range []*mustertest.Run{w.runA, other} {
		a := call(t, w.hostClient(run, credential(run)), "PUT", w.hostURL(run.ID), strings.NewReader("of "+run.ID))
		got := w.aggregator.Get(mustertest.Key{Run: run.ID, Plugin: "logs", Node: "n1"})
		if a.code != 200 || got == nil || string(got.Data) != "of "+run.ID {
			t.Errorf("run %s: answered %d %s, stored %v", run.ID, a.code, a.body, got)
		}
	}
	if n := w.metric("run_listeners", ""); n != 2 {
		t.Errorf("%v listeners of runs", n)
	}
}

func TestLeafOfAnotherRunIsRefusedUnderHostName(t *testing.T) {
	w, other := startNamed(t)
	w.aggregator.Port(runA)
	if a, err := try(w.hostClient(other, credential(w.runA)), "PUT", w.hostURL(runB), strings.NewReader("x")); err == nil {
		t.Errorf("answered %d %s", a.code, a.body)
	}
	mustertest.Await(t, "the refusal is counted", func() bool { return w.metric("refused_handshakes_total", "other_authority") == 1 })
	// The Host header has no effect: a connection belongs to the run of its handshake.
	client := w.hostClient(w.runA, credential(w.runA))
	request, _ := http.NewRequest("PUT", w.hostURL(runA), strings.NewReader("mine"))
	request.Host = runB + ".collect.example.org"
	response, err := client.Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(err, response)
	}
	response.Body.Close()
	if w.aggregator.Get(mustertest.Key{Run: runB, Plugin: "logs", Node: "n1"}) != nil || w.aggregator.Get(key("logs", "n1")) == nil {
		t.Error("the result went to another run")
	}
}

func TestHelloWithUnknownNameIsRefused(t *testing.T) {
	w, _ := startNamed(t)
	address := fmt.Sprintf("127.0.0.1:%d", w.aggregator.Port(runA))
	for name, reason := range map[string]string{"": "no_name", "00000000000000cc.collect.example.org": "unknown_name", "localhost": "unknown_name"} {
		_, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, InsecureSkipVerify: true,
			Certificates: []tls.Certificate{credential(w.runA)}})
		if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("%q: %v", name, err)
		}
		mustertest.Await(t, reason+" is counted", func() bool { return w.metric("refused_handshakes_total", reason) >= 1 })
	}
}

// Neither the end of a run nor a restart of the gateway moves a run to another port. A deleted run accepts nothing more
// while the other continues.
func TestSharedPortIsKeptOverRunsAndRestarts(t *testing.T) {
	w, other := startNamed(t)
	before := w.aggregator.Port(runA)
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", before), &tls.Config{ServerName: runA + ".collect.example.org",
		RootCAs: w.runA.SelfSigned.Pool(), Certificates: []tls.Certificate{credential(w.runA)}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w.gateway.Stop()
	w.startGateway()
	mustertest.Await(t, "both runs are served again", func() bool {
		for _, run := range []*mustertest.Run{w.runA, other} {
			a, err := try(w.hostClient(run, credential(run)), "PUT", w.hostURL(run.ID), strings.NewReader("x"))
			if err != nil || a.code != 200 {
				return false
			}
		}
		return true
	})
	w.deleteRun(runA)
	mustertest.Await(t, "the deleted run is refused", func() bool {
		_, err := try(w.hostClient(w.runA, credential(w.runA)), "PUT", w.hostURL(runA), strings.NewReader("x"))
		return err != nil && strings.Contains(err.Error(), "unrecognized name")
	})
	if a := call(t, w.hostClient(other, credential(other)), "PUT", w.hostURL(runB), strings.NewReader("x")); a.code != 200 {
		t.Errorf("the other run: answered %d %s", a.code, a.body)
	}
	if _, err := io.ReadAll(conn); err != nil && strings.Contains(err.Error(), "deadline") {
		t.Error("the connection from before is still open")
	}
}

// A run from before host names were configured keeps its own port.
func TestRunsWithAndWithoutHostNamesCoexist(t *testing.T) {
	w := start(t)
	if a := w.put("logs", "n1", "x"); a.code != 200 {
		t.Fatal(a)
	}
	w.aggregator.LegacyHost = "{run}.collect.example.org"
	other := w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
	if a := call(t, w.hostClient(other, credential(other)), "PUT", w.hostURL(runB), strings.NewReader("x")); a.code != 200 {
		t.Errorf("answered %d %s", a.code, a.body)
	}
	if a := w.put("logs", "n1", "x"); a.code != 200 || w.aggregator.Port(runA) == w.aggregator.Port(runB) {
		t.Errorf("the older run: answered %d, ports %d and %d", a.code, w.aggregator.Port(runA), w.aggregator.Port(runB))
	}
}

func TestRunListenersDoNotResumeSessions(t *testing.T) {
	byName, _ := startNamed(t)
	for _, w := range []*testGateway{byName, start(t)} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			cache := tls.NewLRUClientSessionCache(1)
			for range 2 {
				client := w.hostClient(w.runA, credential(w.runA))
				settings := client.Transport.(*http.Transport).TLSClientConfig
				settings.ClientSessionCache, settings.MaxVersion = cache, version
				settings.ServerName, settings.InsecureSkipVerify = runA+".collect.example.org", true
				settings.VerifyConnection = func(state tls.ConnectionState) error {
					if state.DidResume {
						t.Errorf("TLS %x: a session was resumed", version)
					}
					return nil
				}
				if a := call(t, client, "PUT", w.hostURL(runA), strings.NewReader("x")); a.code != 200 {
					t.Errorf("answered %d %s", a.code, a.body)
				}
			}
			if session, ok := cache.Get(runA + ".collect.example.org"); ok && session != nil {
				t.Errorf("TLS %x: a ticket was issued", version)
			}
		}
	}
}
