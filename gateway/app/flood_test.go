package app_test

import (
	"crypto/tls"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"muster.example/services/client/go/mustertest"
)

// flood sends pings over HTTP/2 until the connection is closed.
func (w *testGateway) flood(address string, leaves ...tls.Certificate) {
	w.t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: w.fleet.Root.Pool(), Certificates: leaves, NextProtos: []string{"h2"}})
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	gone := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, conn)
		gone <- err
	}()
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, nil)
	for err = framer.WriteSettings(); err == nil; {
		err = framer.WritePing(false, [8]byte{})
	}
	if err := <-gone; err != nil && strings.Contains(err.Error(), "timeout") {
		w.t.Error("the connection is not closed")
	}
}

func TestFloodIsCountedAndRefusedAtAllListeners(t *testing.T) {
	w, _ := startWithStatus(t)
	w.flood(w.gateway.Addresses.Status, w.fleet.Intermediate.Leaf(alice))
	w.flood(w.gateway.Addresses.Status)
	if got := w.metric("closed_connections_total", `listener="status",reason="pings"`); got != 2 {
		t.Errorf("%v connections are counted", got)
	}
	for name, refused := range map[string]func() error{
		"the operator at the main listener": func() error {
			_, err := try(w.operator(alice), "GET", w.url("/api/v1/runs"), nil)
			return err
		},
		"a client without a certificate": func() error {
			_, err := try(w.statusClient(), "GET", w.page("/"), nil)
			return err
		},
	} {
		if err := refused(); err == nil || !strings.Contains(err.Error(), "ENHANCE_YOUR_CALM") {
			t.Errorf("%s: %v", name, err)
		}
	}
	conn, err := w.connect(w.gateway.Addresses.Status, nil) // of HTTP/1.1
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 429 ") || !strings.Contains(string(text), "TOO_MANY_FRAMES") {
		t.Errorf("%v %s", err, text)
	}
	// A client may try again over a new connection, which is refused, too.
	mustertest.Await(t, "both refusals are counted", func() bool {
		return w.metric("refused_handshakes_total", `listener="main",reason="flood"`) >= 1 &&
			w.metric("refused_handshakes_total", `listener="status",reason="flood"`) >= 1
	})
	if a := call(t, w.operator(alice+"2"), "GET", w.url("/api/v1/runs"), nil); a.code != 200 {
		t.Errorf("another operator: %d %s", a.code, a.body)
	}
	if a := call(t, w.statusClient(viewer(w.runA)), "GET", w.page("/status"), nil); a.code != 200 {
		t.Errorf("a viewer at the address: %d %s", a.code, a.body)
	}
	if a := w.put("logs", "n1", "result"); a.code != 200 {
		t.Errorf("a legacy client at the address: %d %s", a.code, a.body)
	}
}
