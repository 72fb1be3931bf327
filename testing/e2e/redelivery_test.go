package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// redelivery is a run with a committed result of n1, which is attached to a relay; n2 has not delivered.
type redelivery struct {
	*fleet.Fleet
	api   api
	relay *relay
	n1    *node
	run   string

	aggregator fleet.Process // set by suspendAggregator
}

// newRedelivery collects a result of `blobSize` bytes, which is not in the database. `more` is shell text of the plugin.
func newRedelivery(t *testing.T, more string) *redelivery {
	t.Helper()
	f := up(t)
	r := &redelivery{Fleet: f, api: operator(t, f)}
	var address string
	r.relay, address = localRelay(t, f, "r1", "")
	r.n1 = joinAt(t, f, "n1", address)
	r.n1.agent.End()
	check(t, os.WriteFile(filepath.Join(r.n1.folder(), "policy.yaml"), []byte(collectPolicy), 0o600))
	r.n1.attach(t)
	r.run = run(t, f, []string{execPlugin("work", "DaemonSet", `yes blob | head -c 300000 > "$RESULTS_DIR/r"
		`+more+`
		echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`)}, "n1", "n2")
	until(t, "the result is kept", func() bool { return len(filesBelow(r.kept())) == 2 })
	if got := r.result(t); got.Outcome != musterv1.Outcome_OUTCOME_GENUINE || got.Size != blobSize {
		t.Fatalf("the result is %v", got)
	}
	return r
}

func (r *redelivery) kept() string { return filepath.Join(r.n1.folder(), "kept") }

func (r *redelivery) result(t *testing.T) *musterv1.Result {
	t.Helper()
	return r.api.result(t, r.run, "work", "n1")
}

// damage damages the stored result, and verifies the run.
func (r *redelivery) damage(t *testing.T) (printed string) {
	t.Helper()
	flip(t, blobOf(t, r.Fleet, "/results/"))
	printed, err := r.Muster("verify", r.run)
	wantExit(t, err, damagedExit, "1 damaged", "requested from the nodes again")
	return printed
}

// wantRestored waits until the result was delivered again, completes the run and checks its archive.
func (r *redelivery) wantRestored(t *testing.T) {
	t.Helper()
	check(t, fleet.Until(withinAMinute, "the result is restored", func() bool { return r.result(t).Damage == "" }))
	if got := r.result(t); got.Generation != 1 || got.Redelivery != "" {
		t.Errorf("the restored result: %v", got)
	}
	must(r.Muster("verify", r.run))(t)
	if text := must(metrics(r.Fleet, "aggregator"))(t); !strings.Contains(text, "\nmuster_restored_results_total 1\n") ||
		!strings.Contains(text, "\nmuster_damaged_results 0\n") {
		t.Error("the metrics do not show the restored result")
	}
	for _, text := range []string{"is damaged: the CRC32C differs", "the same content was delivered again"} {
		if out := must(r.Muster("audit", "--run", r.run))(t); !strings.Contains(out, text) {
			t.Errorf("the audit log has no %q: %s", text, out)
		}
	}
	check(t, submit(t, must(r.Export(r.run, "work", "n2"))(t), r.run, "work", "n2", "other"))
	r.api.awaitState(t, r.run, musterv1.RunState_RUN_STATE_COMPLETE)
	wantFile(t, archive(t, r.Fleet, r.run), "plugins/work/results/n1/r", strings.Repeat("blob\n", blobSize/5))
}

// wantDeclined waits until the node has declined with the reason, and checks that the operator sees it.
func (r *redelivery) wantDeclined(t *testing.T, reason string) {
	t.Helper()
	until(t, "the node declines", func() bool { return strings.HasPrefix(r.result(t).Redelivery, "declined: "+reason+": ") })
	if got := r.result(t); got.Damage != "the CRC32C differs" {
		t.Errorf("the damaged result: %v", got)
	}
	until(t, "status shows the reason", func() bool {
		out, _ := r.Muster("status", r.run) // its exit code is the state of the run
		return strings.Contains(out, reason)
	})
	if out := must(r.Muster("audit", "--run", r.run))(t); !strings.Contains(out, "cannot deliver the damaged result again: "+reason) {
		t.Errorf("the audit log does not have the reason: %s", out)
	}
}

// A result that is found damaged is delivered again by its agent, through a relay, while the services run.
func TestDamagedResultIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	r := newRedelivery(t, "")
	if printed := r.damage(t); !strings.Contains(printed, "requested") {
		t.Errorf("verify printed %q", printed)
	}
	r.wantRestored(t)
}

// The request waits for an agent that was killed, at an aggregator that was killed too.
func TestDamagedResultIsDeliveredAgainAfterKills(t *testing.T) {
	t.Parallel()
	r := newRedelivery(t, "")
	r.n1.agent.End()
	r.damage(t)
	kill(t, r.Fleet)
	if got := r.result(t); got.Redelivery != "requested" {
		t.Errorf("after the kill: %v", got)
	}
	r.n1.attach(t)
	r.wantRestored(t)
}

// The aggregator does not answer, and the root relay has noticed: it spools the result that the node delivers again.
func TestDamagedResultIsDeliveredAgainThroughTheSpool(t *testing.T) {
	t.Parallel()
	r := newRedelivery(t, "")
	r.n1.agent.End()
	r.damage(t)
	r.awaitRoot(t, "the root relay has the request", "muster_relay_redelivery_requests 1")
	r.suspendAggregator(t)
	r.awaitRoot(t, "the root relay is disconnected", "muster_relay_upstream_connected 0")
	r.n1.start(t) // without the aggregator nothing shows that it is attached
	r.wantRestoredFromSpool(t)
}

// The aggregator stops to answer just before the delivery: the root relay still takes it for connected.
func TestRedeliveryToAnAggregatorThatStopsToAnswerIsSpooled(t *testing.T) {
	t.Parallel()
	r := newRedelivery(t, "")
	r.n1.agent.End()
	r.damage(t)
	r.awaitRoot(t, "the root relay has the request", "muster_relay_redelivery_requests 1")
	r.suspendAggregator(t)
	r.n1.start(t)
	r.wantRestoredFromSpool(t)
}

// awaitRoot waits until the metrics of the root relay have this line.
func (r *redelivery) awaitRoot(t *testing.T, what, line string) {
	t.Helper()
	check(t, fleet.Until(withinAMinute, what, func() bool {
		text, err := metrics(r.Fleet, "relay")
		return err == nil && strings.Contains(text, "\n"+line+"\n")
	}))
}

func (r *redelivery) suspendAggregator(t *testing.T) {
	t.Helper()
	r.aggregator = must(r.Process(fleet.Aggregator))(t)
	check(t, r.aggregator.Stop())
	t.Cleanup(func() { _ = r.aggregator.Continue() })
}

// wantRestoredFromSpool waits until the root relay has spooled the result, ends the node, and continues the aggregator.
func (r *redelivery) wantRestoredFromSpool(t *testing.T) {
	t.Helper()
	results := filepath.Join("spool", "blobs", "blobs")
	check(t, fleet.Until(2*withinAMinute, "the result is spooled", func() bool {
		return len(filesBelow(filepath.Join(r.Home, "relay", results))) > 0
	}))
	// A relay whose parent answers forwards.
	if files := filesBelow(filepath.Join(r.relay.home, results)); len(files) > 0 {
		t.Errorf("the relay of the node spooled %v", files)
	}
	r.n1.agent.End()
	check(t, r.aggregator.Continue())
	r.wantRestored(t)
	check(t, fleet.Until(withinAMinute, "the spool is empty", func() bool {
		return len(filesBelow(filepath.Join(r.Home, "relay", results))) == 0
	}))
}

func TestNodeWithoutKeptResultDeclines(t *testing.T) {
	t.Parallel()
	r := newRedelivery(t, "")
	r.n1.agent.End()
	check(t, os.RemoveAll(r.kept()))
	r.n1.attach(t)
	r.damage(t)
	r.wantDeclined(t, "RESULT_NOT_KEPT")
	// The same content restores it, from wherever the operator has it.
	file := filepath.Join(t.TempDir(), "r")
	check(t, os.WriteFile(file, []byte(strings.Repeat("blob\n", blobSize/5)), 0o600))
	credential := must(r.Export(r.run, "work", "n1"))(t)
	credential.StateDir = t.TempDir()
	must(r.Muster("submit", file, "--config", must(r.WriteCredential("again.json", credential))(t)))(t)
	r.wantRestored(t)
}

// The seal finds the damage, and ends with the answer of the node, long before its grace.
func TestSealEndsWithTheAnswerOfANodeThatDeclines(t *testing.T) {
	t.Parallel()
	r := newRedelivery(t, "")
	r.n1.agent.End()
	check(t, os.RemoveAll(r.kept()))
	flip(t, blobOf(t, r.Fleet, "/results/"))
	check(t, submit(t, must(r.Export(r.run, "work", "n2"))(t), r.run, "work", "n2", "other"))
	until(t, "the seal requests the result", func() bool { return r.result(t).Redelivery == "requested" })
	r.n1.attach(t)
	r.wantDeclined(t, "RESULT_NOT_KEPT")
	r.api.awaitState(t, r.run, musterv1.RunState_RUN_STATE_COMPLETE)
	if got := r.result(t).Redelivery; !strings.HasPrefix(got, "declined: ") {
		t.Errorf("after the seal: %q", got)
	}
}

// The plugin has another name for its file, and writes to it after the commit.
func TestChangedKeptResultIsNotDelivered(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other")
	r := newRedelivery(t, `ln "$RESULTS_DIR/r" '`+other+`'`)
	flip(t, other)
	before := must(os.ReadFile(other))(t)
	r.damage(t)
	r.wantDeclined(t, "KEPT_RESULT_CHANGED")
	if after := must(os.ReadFile(other))(t); string(after) != string(before) {
		t.Error("the file of the user was changed")
	}
	until(t, "the changed copy is removed", func() bool { return len(filesBelow(r.kept())) == 0 })
}
