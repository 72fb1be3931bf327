package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// lease is longer than each time after which a silent program of these tests counts as lost.
const lease = 12 * time.Second

// suspendFor suspends a program for a time.
func suspendFor(t *testing.T, process fleet.Process, limit time.Duration) {
	t.Helper()
	check(t, process.Stop())
	began := time.Now()
	check(t, fleet.Until(2*limit, "the suspension is over", func() bool { return time.Since(began) > limit }))
	check(t, process.Continue())
}

// A relay, an agent, the status service and the aggregator are suspended, one after the other, for longer than their
// leases: each state is reported while it holds, and nothing is lost.
func TestProgramsSuspendedPastTheirLeaseContinue(t *testing.T) {
	t.Parallel()
	f := up(t)
	shortHeartbeats(t, f)
	check(t, f.Configure("relay", map[string]string{"interval": "1s"}))
	r1, address := localRelay(t, f, "r1", "")
	n1 := joinAt(t, f, "n1", address)
	n2 := join(t, f, "n2", "", nil, nil)
	for _, n := range []*node{n1, n2} {
		if n.agent != nil {
			n.agent.End()
		}
		check(t, os.WriteFile(filepath.Join(n.folder(), "policy.yaml"), []byte(collectPolicy), 0o600))
		n.attach(t)
	}
	id := run(t, f, []string{untilReleased(f, "work")}, "n1", "n2")
	running := map[string]string{"n1": "running", "n2": "running"}
	awaitReasons(t, f, id, "work", running)

	check(t, r1.program.Stop())
	awaitReasons(t, f, id, "work", map[string]string{"n1": "segment-lost", "n2": "running"})
	check(t, r1.program.Continue())
	awaitReasons(t, f, id, "work", running)

	check(t, n1.agent.Stop())
	awaitReasons(t, f, id, "work", map[string]string{"n1": "not-responding", "n2": "running"})
	check(t, n1.agent.Continue())
	awaitReasons(t, f, id, "work", running)

	for _, name := range []string{fleet.Status, fleet.Aggregator} {
		before := must(f.Process(name))(t)
		suspendFor(t, before, lease)
		check(t, fleet.Until(withinAMinute, name+" responds", func() bool {
			_, err := f.Muster("status", id)
			return exitCode(err) == 7
		}))
		awaitReasons(t, f, id, "work", running)
		if after := must(f.Process(name))(t); after.PID != before.PID {
			t.Errorf("%v was restarted as %v", before, after)
		}
	}
	release(t, f, "n1")
	release(t, f, "n2")
	wantAllComplete(t, f, id, 2)
	for _, node := range []string{"n1", "n2"} {
		if got := operator(t, f).result(t, id, "work", node); got.Generation != 1 {
			t.Errorf("the result of %s is %v", node, got)
		}
	}
}

// A copied machine has the identity of the first: the relay serves the one that attached last, the other learns why, and
// each result is committed once.
func TestCopiedMachineDeliversEachResultOnce(t *testing.T) {
	t.Parallel()
	f := up(t)
	n1 := join(t, f, "n1", collectPolicy, nil, nil)
	copied := &node{machine: newMachine(t, f), name: "the copy of n1"}
	if out, err := exec.Command("cp", "-a", n1.home+"/.", copied.home).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n1.attach(t)
	copied.start(t)
	var ids []string
	for range 3 {
		id := run(t, f, []string{execPlugin("logs", "DaemonSet", `echo of n1 > "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`)}, "n1")
		wantAllComplete(t, f, id, 1)
		ids = append(ids, id)
	}
	a := operator(t, f)
	for _, id := range ids {
		if got := a.result(t, id, "logs", "n1"); got.Generation != 1 {
			t.Errorf("the result is %v", got)
		}
		wantFile(t, archive(t, f, id), "plugins/logs/results/n1/r", "of n1\n")
	}
	n1.agent.End()
	copied.agent.End()
	if said := n1.agent.Output.String() + copied.agent.Output.String(); !strings.Contains(said, "TAKEN_OVER") {
		t.Errorf("neither agent logs that another one has its identity: %s", said)
	}
}
