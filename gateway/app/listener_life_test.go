package app_test

import (
	"fmt"
	"net"
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
	w.aggregator.Tell(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Run{Run: &musterv1.Run{
		Id: id, State: musterv1.RunState_RUN_STATE_COMPLETE, EndTime: timestamppb.New(at),
		Plugins: []*musterv1.Plugin{{Name: "logs"}}}}})
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
