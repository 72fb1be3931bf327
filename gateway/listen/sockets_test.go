package listen

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.example/services/client/go/mustertest"
)

func TestConnectionWaitsWhileGatewayRestarts(t *testing.T) {
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
		t.Error("the socket is still open")
	}
}

// After a change of the configuration the name has another address.
func TestNameMayChangeAddress(t *testing.T) {
	sockets := &Sockets{Supervisor: mustertest.StartSupervisor(t)}
	for _, address := range []string{"127.0.0.1:0", "127.0.0.2:0"} {
		l, err := sockets.Listen(t.Context(), "gateway", address)
		if err != nil || !strings.HasPrefix(l.Addr().String(), strings.TrimSuffix(address, "0")) {
			t.Fatalf("%s: %v", address, err)
		}
		l.Close()
	}
}

func TestListenWithoutSupervisorAnswerFails(t *testing.T) {
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

func reservedPort(t *testing.T) int {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", mustertest.ReserveAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return address.Port
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func TestListenPortUsesGivenOrFirstFreePort(t *testing.T) {
	const host = "127.0.0.1"
	held, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	taken := portOf(held)
	for kind, sockets := range map[string]*Sockets{
		"alone": {}, "with a supervisor": {Supervisor: mustertest.StartSupervisor(t)},
	} {
		l, err := sockets.ListenPort(t.Context(), "any", host, 0, 0, 0)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if portOf(l) >= 32768 {
			t.Errorf("%s: port %d may be assigned to another program during a restart", kind, portOf(l))
		}
		l.Close()
		l, err = sockets.ListenPort(t.Context(), "range", host, 0, taken, taken+50)
		if err != nil || portOf(l) <= taken || portOf(l) > taken+50 {
			t.Fatalf("%s: %v, not in the range from %d, which is taken", kind, err, taken)
		}
		l.Close()
		l, err = sockets.ListenPort(t.Context(), "others", host, 0, taken, taken+50, int32(taken+1), int32(taken+2))
		if err != nil || portOf(l) <= taken+2 {
			t.Fatalf("%s: %v, a port of another run", kind, err)
		}
		l.Close()
		given := reservedPort(t)
		if l, err = sockets.ListenPort(t.Context(), "given", host, given, taken, taken); err != nil || portOf(l) != given {
			t.Fatalf("%s: %v, the given port lies outside of the range", kind, err)
		}
		l.Close()
		if _, err := sockets.ListenPort(t.Context(), "taken", host, taken, 0, 0); err == nil {
			t.Errorf("%s: another port than the given one", kind)
		}
		if _, err := sockets.ListenPort(t.Context(), "empty", host, 0, 2, 1); err == nil {
			t.Errorf("%s: a port of an empty range", kind)
		}
	}
	if _, err := (&Sockets{}).ListenPort(t.Context(), "", host, 0, taken, taken); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the last port's fault is %v", err)
	}
	supervised := &Sockets{Supervisor: mustertest.StartSupervisor(t)}
	if _, err := supervised.ListenPort(t.Context(), "", host, 0, taken, taken); !errors.Is(err, ErrNoPort) {
		t.Errorf("with a supervisor, a port in use is %v", err)
	}
	const elsewhere = "192.0.2.1" // no address of this machine
	for kind, sockets := range map[string]*Sockets{"alone": {}, "with a supervisor": supervised} {
		if _, err := sockets.ListenPort(t.Context(), "", elsewhere, 0, taken, taken+1); err == nil || errors.Is(err, ErrNoPort) {
			t.Errorf("%s: another failure than a port in use is %v", kind, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := (&Sockets{}).ListenPort(ctx, "", host, 0, taken, 65535); err == nil {
		l.Close()
		t.Error("the next port was tried although the context had ended")
	}
}

func TestRetryDelayIsJitteredAndBounded(t *testing.T) {
	for failures, limit := range map[int]time.Duration{
		0: 200 * time.Millisecond, 1: 400 * time.Millisecond, 3: 1600 * time.Millisecond, 5: 5 * time.Second, 1000: 5 * time.Second,
	} {
		shortest, longest := time.Hour, time.Duration(0)
		for range 1000 {
			delay := RetryDelay(failures)
			shortest, longest = min(shortest, delay), max(longest, delay)
		}
		if shortest < 0 || shortest > limit/10 || longest >= limit || longest < limit-limit/10 {
			t.Errorf("after %d failures it waits from %v to %v, want 0 to %v", failures, shortest, longest, limit)
		}
	}
}
