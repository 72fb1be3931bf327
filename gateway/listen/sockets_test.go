package listen

import (
	"context"
	"net"
	"strings"
	"testing"

	"muster.example/services/client/go/mustertest"
)

func TestAConnectionWaitsWhileTheGatewayIsAway(t *testing.T) {
	sockets := &Sockets{Supervisor: mustertest.StartSupervisor(t)}
	first, err := sockets.Listen(t.Context(), "legacy/1", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addr().String()
	first.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	second, err := sockets.Listen(t.Context(), "legacy/1", "127.0.0.1:0")
	if err != nil || second.Addr().String() != address {
		t.Fatalf("%v %v, was %s", err, second.Addr(), address)
	}
	waiting, err := second.Accept()
	if err != nil || waiting.RemoteAddr().String() != conn.LocalAddr().String() {
		t.Fatalf("%v: another connection", err)
	}
	waiting.Close()
	second.Close()
	if err := sockets.Release(t.Context(), "legacy/1"); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("it is still open")
	}
}

// After a change of the configuration the name has another address.
func TestANameMayMove(t *testing.T) {
	sockets := &Sockets{Supervisor: mustertest.StartSupervisor(t)}
	for _, address := range []string{"127.0.0.1:0", "127.0.0.2:0"} {
		l, err := sockets.Listen(t.Context(), "gateway", address)
		if err != nil || !strings.HasPrefix(l.Addr().String(), strings.TrimSuffix(address, "0")) {
			t.Fatalf("%s: %v", address, err)
		}
		l.Close()
	}
}

func TestWithoutASupervisorAnswerThereIsAnError(t *testing.T) {
	path := mustertest.StartSupervisor(t)
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	sockets := &Sockets{Supervisor: path}
	if _, err := sockets.Listen(t.Context(), "x", used.Addr().String()); err == nil || !strings.Contains(err.Error(), "ADDRESS_IN_USE") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sockets.Listen(ctx, "x", "127.0.0.1:0"); err == nil {
		t.Error("no error")
	}
	sockets.Supervisor += "x"
	if _, err := sockets.Listen(t.Context(), "x", "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "cannot reach the supervisor") {
		t.Error(err)
	}
}
