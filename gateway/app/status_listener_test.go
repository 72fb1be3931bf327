package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

// givenFiles holds what an external CA issued: for the server, and for its clients.
type givenFiles struct {
	*mustertest.Authority
	listener *musterv1.GetStatusListenerResponse
}

func newGivenFiles(t *testing.T) givenFiles {
	t.Helper()
	authority := mustertest.NewFleet().Root
	chain, key := mustertest.PEM(authority.Leaf("https://product.example"))
	return givenFiles{authority, &musterv1.GetStatusListenerResponse{ClientCaPem: authority.PEM(), CertificatePem: chain, KeyPem: key}}
}

// statusPort waits until a run's own status listener is open.
func (w *testGateway) statusPort(run string) int32 {
	w.t.Helper()
	mustertest.Await(w.t, "the status listener of run "+run+" is open", func() bool { return w.aggregator.StatusPort(run) != 0 })
	return w.aggregator.StatusPort(run)
}

// askOwn sends a request to a run's own status listener, with the given roots.
func (w *testGateway) askOwn(run string, roots *x509.CertPool, leaf *tls.Certificate, method, path string) (answer, error) {
	settings := &tls.Config{RootCAs: roots}
	if leaf != nil {
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return leaf, nil }
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: settings, DisableKeepAlives: true}
	return try(&http.Client{Transport: transport}, method, fmt.Sprintf("https://127.0.0.1:%d%s", w.statusPort(run), path), nil)
}

func TestOwnStatusListenerAuthorizesCallers(t *testing.T) {
	w, other := startWithStatus(t)
	given := newGivenFiles(t)
	w.aggregator.AddStatusListener(runA, given.listener)
	for _, c := range []struct {
		name, method, path string
		leaf               *tls.Certificate
		code               int // 0: the handshake fails
	}{
		{"a client of the authority", "GET", "/status", ptr(given.Leaf("https://product.example/back-end")), 200},
		{"a client that names its run", "GET", "/status?run=" + runA, ptr(given.Leaf("https://product.example")), 200},
		{"a client that names another run", "GET", "/status?run=" + runB, ptr(given.Leaf("https://product.example")), 403},
		{"a client that calls itself an operator", "GET", "/status", ptr(given.Leaf(alice)), 200},
		{"a client that calls itself an operator and names another run", "GET", "/status?run=" + runB, ptr(given.Leaf(alice)), 403},
		{"the run's viewer", "GET", "/status", ptr(viewer(w.runA)), 200},
		{"the run's viewer that names another run", "GET", "/status?run=" + runB, ptr(viewer(w.runA)), 403},
		{"an operator", "GET", "/status", ptr(w.fleet.Intermediate.Leaf(alice)), 200},
		{"an operator that names another run", "GET", "/status?run=" + runB, ptr(w.fleet.Intermediate.Leaf(alice)), 403},
		{"another run's viewer", "GET", "/status", ptr(viewer(other)), 403},
		{"a sidecar's credential", "GET", "/status", ptr(w.runA.Signed.Leaf(w.runA.URI("plugin/logs"))), 403},
		{"another authority's client", "GET", "/status", ptr(newGivenFiles(t).Leaf("https://product.example")), 0},
		{"an expired one", "GET", "/status", ptr(given.Expired("https://product.example")), 0},
		{"nobody", "GET", "/status", nil, 0},
		{"a POST", "POST", "/status", ptr(given.Leaf("https://product.example")), 405},
		{"the API", "GET", "/api/v1/runs", ptr(given.Leaf("https://product.example")), 404},
		{"the dashboard", "GET", "/", ptr(w.fleet.Intermediate.Leaf(alice)), 404},
		{"a link", "GET", "/login?token=x", ptr(viewer(w.runA)), 404},
	} {
		a, err := w.askOwn(runA, given.Pool(), c.leaf, c.method, c.path)
		if (err == nil) != (c.code != 0) || a.code != c.code {
			t.Errorf("%s: %v, %d %s", c.name, err, a.code, a.body)
		}
		refusal := "ROLE_NOT_ALLOWED"
		if strings.Contains(c.path, "run=") {
			refusal = "NOT_YOURS"
		}
		if a.code == 403 && !strings.Contains(a.body, refusal) { // refused by the listener itself
			t.Errorf("%s: %s", c.name, a.body)
		}
		if a.code == 200 && !strings.Contains(a.body, `"run":"`+runA) {
			t.Errorf("%s sees %s", c.name, a.body)
		}
	}
}

// A run's own status listener serves the given certificate; its CA is not accepted elsewhere.
func TestGivenCertificateAndCAApplyToOneListener(t *testing.T) {
	w, _ := startWithStatus(t)
	given := newGivenFiles(t)
	w.aggregator.AddStatusListener(runA, given.listener)
	if a, err := w.askOwn(runA, w.fleet.Root.Pool(), ptr(viewer(w.runA)), "GET", "/status"); err == nil {
		t.Errorf("it serves the fleet's certificate: %d", a.code)
	}
	if a, err := try(w.statusClient(given.Leaf("https://product.example")), "GET", w.page("/status"), nil); err == nil {
		t.Errorf("the fleet's status listener answers %d %s", a.code, a.body)
	}
}

// Without a given certificate it serves the fleet's; without a given CA it admits the run's viewers.
func TestOwnStatusListenerDefaultsToFleetCertificate(t *testing.T) {
	w, other := startWithStatus(t)
	w.aggregator.AddStatusListener(runA, &musterv1.GetStatusListenerResponse{})
	if a, err := w.askOwn(runA, w.fleet.Root.Pool(), ptr(viewer(w.runA)), "GET", "/status"); err != nil || a.code != 200 {
		t.Errorf("the viewer: %v %d %s", err, a.code, a.body)
	}
	if a, err := w.askOwn(runA, w.fleet.Root.Pool(), ptr(viewer(other)), "GET", "/status"); err != nil || a.code != 403 {
		t.Errorf("another run's viewer: %v %d %s", err, a.code, a.body)
	}
}

// neighbours holds a port whose successor is free.
func neighbours(t *testing.T) (held net.Listener, port int) {
	t.Helper()
	for range 100 {
		held, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port = held.Addr().(*net.TCPAddr).Port
		if next, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1)); err == nil {
			next.Close()
			t.Cleanup(func() { held.Close() })
			return held, port
		}
		held.Close()
	}
	t.Fatal("no two free ports")
	return nil, 0
}

func TestStatusListenerKeepsPortOverRestart(t *testing.T) {
	taken, first := neighbours(t)
	w, _ := startWithStatus(t, func(w *testGateway) { w.config.StatusPorts = fmt.Sprintf("%d-%d", first, first+1) })
	given := newGivenFiles(t)
	w.aggregator.AddStatusListener(runA, given.listener)
	port := w.statusPort(runA)
	w.gateway.Stop()
	taken.Close() // a lower port is free now
	w.startGateway()
	mustertest.Await(t, "it answers at the same port", func() bool {
		a, err := w.askOwn(runA, given.Pool(), ptr(given.Leaf("https://product.example")), "GET", "/status")
		return err == nil && a.code == 200
	})
	if now := w.statusPort(runA); now != port {
		t.Errorf("port %d became %d", port, now)
	}
}

func (w *testGateway) endViewed(id string, at time.Time) {
	w.aggregator.Tell(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Run{Run: &musterv1.Run{
		Id: id, State: musterv1.RunState_RUN_STATE_COMPLETE, EndTime: timestamppb.New(at), StatusListener: &musterv1.StatusListener{}}}})
}

func TestStatusListenerClosesAnHourAfterRun(t *testing.T) {
	w, _ := startWithStatus(t)
	given := newGivenFiles(t)
	for _, run := range []string{runA, runB} {
		w.aggregator.AddStatusListener(run, given.listener)
	}
	portA, portB := w.statusPort(runA), w.statusPort(runB)
	w.endViewed(runB, time.Now().Add(-10*time.Minute))
	w.endViewed(runA, time.Now().Add(-time.Hour))
	mustertest.Await(t, "the one of the run that ended an hour ago is closed", func() bool { return !isOpen(portA) })
	if !isOpen(portB) {
		t.Error("the one of the run that has just ended is closed")
	}
	w.deleteRun(runB)
	mustertest.Await(t, "the one of the deleted run is closed", func() bool { return !isOpen(portB) })
}

// Otherwise clients would wait for a listener that never opens.
func TestSocketOfAStatusListenerThatDoesNotExistAnyMoreIsReleased(t *testing.T) {
	w, _ := startWithStatus(t, supervised)
	w.aggregator.AddStatusListener(runA, newGivenFiles(t).listener)
	port := w.statusPort(runA)
	w.gateway.Stop()
	if !isOpen(port) {
		t.Fatal("the supervisor does not hold the socket")
	}
	w.aggregator.RemoveStatusListener(runA)
	w.startGateway()
	mustertest.Await(t, "the socket is closed", func() bool { return !isOpen(port) })
}

func TestStatusListenerWithoutFreePortReportsFault(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := socket.Addr().(*net.TCPAddr).Port
	w, _ := startWithStatus(t, func(w *testGateway) { w.config.StatusPorts = fmt.Sprintf("%d-%d", port, port) })
	w.aggregator.AddStatusListener(runA, newGivenFiles(t).listener)
	mustertest.Await(t, "the fault is reported", func() bool {
		faults := w.aggregator.StatusFaults()
		return len(faults) > 0 && strings.Contains(faults[0], "address already in use")
	})
	if w.metric("run_listener_faults_total", "") == 0 {
		t.Error("the failure is not counted")
	}
	socket.Close()
	if got := w.statusPort(runA); int(got) != port {
		t.Errorf("it opened %d, not %d", got, port)
	}
}
