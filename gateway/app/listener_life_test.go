package app_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

func isOpen(port int32) bool {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		conn.Close()
	}
	return err == nil
}

func (w *testGateway) endRun(id string, at time.Time) {
	w.aggregator.Tell(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Run{Run: ended(id, at)}})
}

func ended(id string, at time.Time) *musterv1.Run {
	return &musterv1.Run{Id: id, State: musterv1.RunState_RUN_STATE_COMPLETE, EndTime: timestamppb.New(at),
		Plugins: []*musterv1.Plugin{{Name: "logs"}}, StatusListener: &musterv1.StatusListener{}}
}

// deleteRunCA reports that the CA of a run that has just ended was deleted, because another run needs its port.
func (w *testGateway) deleteRunCA(id string) {
	run := ended(id, time.Now())
	run.RunCaDeleted = true
	w.aggregator.Tell(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Run{Run: run}})
}

func TestListenersCloseWhenTheRunCAIsDeletedEarly(t *testing.T) {
	w, _ := startWithStatus(t)
	w.aggregator.AddStatusListener(runA, newGivenFiles(t).listener)
	legacy, status := w.aggregator.Port(runA), w.statusPort(runA)
	w.endRun(runA, time.Now())
	w.deleteRunCA(runA)
	for name, port := range map[string]int32{"legacy": legacy, "status": status} {
		mustertest.Await(t, "the "+name+" listener is closed", func() bool { return !isOpen(port) })
	}
}

// The run CA is deleted an hour after the run; until then late sidecars get the reason.
func TestListenerClosesAnHourAfterRun(t *testing.T) {
	w := start(t)
	other := w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
	portA, portB := w.aggregator.Port(runA), w.aggregator.Port(other.ID)
	w.endRun(runB, time.Now().Add(-10*time.Minute))
	w.endRun(runA, time.Now().Add(-time.Hour))
	mustertest.Await(t, "the listener of the run that ended an hour ago is closed", func() bool { return !isOpen(portA) })
	if !isOpen(portB) {
		t.Error("the listener of the run that has just ended is closed")
	}
	before := w.metric("feed_events_total", "")
	w.endRun(runA, time.Now().Add(-2*time.Hour))
	mustertest.Await(t, "the gateway receives another change", func() bool { return w.metric("feed_events_total", "") > before })
	if n := w.metric("run_listeners", ""); n != 1 {
		t.Errorf("%v listeners", n)
	}
}

func TestRunWithoutFreePortWaitsForOne(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := socket.Addr().(*net.TCPAddr).Port
	w := start(t, func(w *testGateway) { w.config.LegacyPorts = fmt.Sprintf("%d-%d", port, port) })
	mustertest.Await(t, "the failure is counted", func() bool { return w.metric("run_listener_faults_total", "") > 0 })
	socket.Close()
	if got := w.aggregator.Port(runA); int(got) != port {
		t.Errorf("it opened %d, not %d", got, port)
	}
	w.aggregator.Stop() // its fields may be read now
	if len(w.aggregator.Faults) == 0 || !strings.Contains(w.aggregator.Faults[0], "address already in use") {
		t.Errorf("reported faults: %q", w.aggregator.Faults)
	}
}

// withPorts lets the gateway choose from `count` free ports.
func withPorts(t *testing.T, count int) func(*testGateway) {
	t.Helper()
	for range 100 {
		first := 20000 + rand.IntN(12000)
		free := true
		for port := first; port < first+count; port++ {
			socket, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			free = free && err == nil
			if err == nil {
				socket.Close()
			}
		}
		if free {
			return func(w *testGateway) { w.config.LegacyPorts = fmt.Sprintf("%d-%d", first, first+count-1) }
		}
	}
	t.Fatal("no free ports")
	return nil
}

// A run that ended keeps its listener for late sidecars only as long as no other run needs the port.
func TestNewRunGetsThePortOfTheRunThatEndedFirst(t *testing.T) {
	for _, kind := range []func(*testGateway){func(*testGateway) {}, supervised} {
		ports := withPorts(t, 2)
		w := start(t, ports, kind)
		portA := w.aggregator.Port(runA)
		w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
		portB := w.aggregator.Port(runB)
		w.endRun(runB, time.Now().Add(-time.Minute))
		w.endRun(runA, time.Now().Add(-2*time.Minute))
		const runC, runD = "cccccccccccccccc", "dddddddddddddddd"
		w.aggregator.AddRun(runC, []string{"logs"}, []string{"n1"})
		if port := w.aggregator.Port(runC); port != portA {
			t.Errorf("the run got port %d, not %d of the run that ended first", port, portA)
		}
		w.aggregator.AddRun(runD, []string{"logs"}, []string{"n1"})
		if port := w.aggregator.Port(runD); port != portB {
			t.Errorf("the run got port %d, not %d", port, portB)
		}
		w.aggregator.Stop() // its fields may be read now
		if want := []string{runA, runB}; !slices.Equal(w.aggregator.Released, want) {
			t.Errorf("released %q, want %q", w.aggregator.Released, want)
		}
	}
}

// A request that does not end keeps the port of its run for seconds at most. Meanwhile no other run loses its port.
func TestOneRunIsReleasedForANewRunWhileItsRequestGoesOn(t *testing.T) {
	t.Parallel()
	w := start(t, withPorts(t, 2), supervised)
	portA := w.aggregator.Port(runA)
	conn := w.dial(w.leaf("logs", "n1"))
	if _, err := conn.Write([]byte(request("PUT", "/api/v1/results/by-node/n1/logs", "Content-Length: 10000000\r\n", strings.Repeat("x", 1_000_000)))); err != nil {
		t.Fatal(err)
	}
	mustertest.Await(t, "the delivery has begun", func() bool { return w.aggregator.Count(key("logs", "n1")) > 0 })
	w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
	w.aggregator.Port(runB)
	w.endRun(runB, time.Now().Add(-time.Minute))
	w.endRun(runA, time.Now().Add(-2*time.Minute))
	const runC = "cccccccccccccccc"
	w.aggregator.AddRun(runC, []string{"logs"}, []string{"n1"})
	if port := w.aggregator.Port(runC); port != portA {
		t.Errorf("the new run got port %d, not %d", port, portA)
	}
	w.aggregator.Stop() // its fields may be read now
	if want := []string{runA}; !slices.Equal(w.aggregator.Released, want) {
		t.Errorf("released %q, want %q", w.aggregator.Released, want)
	}
}

func TestFaultOfAnExhaustedRangeNamesTheRunsThatHoldIt(t *testing.T) {
	ports := withPorts(t, 1)
	w := start(t, ports)
	w.aggregator.Port(runA)
	w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
	mustertest.Await(t, "the failure is counted", func() bool { return w.metric("run_listener_faults_total", "") > 0 })
	w.endRun(runA, time.Now())
	w.aggregator.Port(runB)
	w.aggregator.Stop()
	if len(w.aggregator.Faults) == 0 || !strings.Contains(w.aggregator.Faults[0], "no free port from") ||
		!strings.Contains(w.aggregator.Faults[0], "by the runs "+runA+", which have not ended") {
		t.Errorf("reported faults: %q", w.aggregator.Faults)
	}
}

// After a restart the shared port opens as soon as one run has its certificate: clients of the other runs wait for
// theirs.
func TestClientBeforeItsListenerWaits(t *testing.T) {
	w, other := startNamed(t)
	w.aggregator.Port(runA)
	w.aggregator.Port(runB)
	w.gateway.Stop()
	release := w.aggregator.HoldSigning(runB)
	w.startGateway()
	put := func(id string) (answer, error) {
		run := other
		if id == runA {
			run = w.runA
		}
		return try(w.hostClient(run, credential(run)), "PUT", w.hostURL(id), strings.NewReader("x"))
	}
	mustertest.Await(t, "run A is served again", func() bool {
		a, err := put(runA)
		return err == nil && a.code == 200
	})
	early := make(chan error, 1)
	go func() {
		a, err := put(runB)
		if err == nil && a.code != 200 {
			err = fmt.Errorf("answered %d %s", a.code, a.body)
		}
		early <- err
	}()
	select {
	case err := <-early:
		t.Fatalf("the client did not wait: %v", err)
	case <-time.After(100 * time.Millisecond): // probably in its handshake by now; the test does not depend on it
	}
	release()
	if err := <-early; err != nil {
		t.Error(err)
	}
}
