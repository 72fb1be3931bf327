package e2e

import (
	"context"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// A silent agent's pair times out, and its result still replaces the time-out.
func TestKilledAgentTimesOutAndItsResultReplacesTimeout(t *testing.T) {
	t.Parallel()
	f := up(t)
	shortHeartbeats(t, f)
	file := must(f.WriteFile("plan.yaml", untilReleased(f, "work")))(t)
	run := must(f.CreateRun("-f", file, "--node", "n1,n2", "--lost-after", "10s"))(t)
	killed := startAgent(t, f, nil, run, "work", "n1")
	startAgent(t, f, nil, run, "work", "n2")
	awaitReasons(t, f, run, "work", map[string]string{"n1": "running", "n2": "running"})
	killed.Kill()

	awaitPair(t, f, run, "n1", "the pair is timed out", func(pair fleet.ShownPair) bool { return pair.Status == "timed_out" })
	if text, err := f.Muster("status", run); exitCode(err) != 7 || !lineContains(text, "n1", "without a goodbye") {
		t.Errorf("muster status does not say why n1 has no result (%v):\n%s", err, text)
	}
	if pair := shown(t, f, run).Pair("work", "n2"); pair.Status != "running" {
		t.Errorf("n2 is %+v, want it running", pair)
	}
	release(t, f, "n1")
	startAgent(t, f, nil, run, "work", "n1")
	awaitPair(t, f, run, "n1", "the result has replaced the time-out", func(pair fleet.ShownPair) bool { return pair.Status == "complete" })
	release(t, f, "n2")
	operator(t, f).awaitState(t, run, musterv1.RunState_RUN_STATE_COMPLETE)
	wantFile(t, archive(t, f, run), "plugins/work/results/n1/out", "from n1\n")
	_, err := f.Muster("wait", run)
	wantExit(t, err, 0)
}

// awaitPair waits until /status has this state of the pair of plugin "work" on a node.
func awaitPair(t *testing.T, f *fleet.Fleet, run, node, what string, says func(fleet.ShownPair) bool) {
	t.Helper()
	var last *fleet.Shown
	if err := fleet.Until(withinAMinute, node+": "+what, func() bool {
		last = shown(t, f, run)
		return says(last.Pair("work", node))
	}); err != nil {
		t.Fatalf("%v; /status has %+v", err, last)
	}
}

func TestFailFastEndsRunAtFirstLostAgent(t *testing.T) {
	t.Parallel()
	f := up(t)
	shortHeartbeats(t, f)
	file := must(f.WriteFile("plan.yaml", untilReleased(f, "work")))(t)
	run := must(f.CreateRun("-f", file, "--node", "n1,n2", "--lost-after", "10s", "--fail-fast"))(t)
	killed := startAgent(t, f, nil, run, "work", "n1")
	startAgent(t, f, nil, run, "work", "n2")
	awaitReasons(t, f, run, "work", map[string]string{"n1": "running", "n2": "running"})
	killed.Kill()
	_, err := f.Muster("wait", run, "--until", "failed")
	wantExit(t, err, 0)
	if at := shown(t, f, run); at.Status != "failed" || !strings.Contains(at.StateReason, "n1") {
		t.Errorf("/status has %q: %q, want a failure because of n1", at.Status, at.StateReason)
	}
	text, err := f.Muster("status", run)
	wantExit(t, err, 4)
	if !lineContains(text, "n1", "failed") {
		t.Errorf("muster status does not name n1:\n%s", text)
	}
}

// A run without any reachable node fails automatically, with the known facts of each node.
func TestRunWithoutAgentsFailsAfterStartGrace(t *testing.T) {
	t.Parallel()
	f := up(t)
	shortHeartbeats(t, f)
	file := must(f.WriteFile("plan.yaml", untilReleased(f, "work")))(t)
	run := must(f.CreateRun("-f", file, "--node", "n1,n2", "--start-grace", "15s"))(t)
	astray := must(f.Export(run, "work", "n1"))(t)
	away := "127.0.0.1:" + freePort(t)
	astray.GRPCTargets = []string{away}
	astray.File = must(f.WriteCredential("astray.json", astray))(t)
	agent := must(f.StartAgent(astray, nil))(t)
	t.Cleanup(func() { agent.End() })

	awaitPair(t, f, run, "n1", "the fault is shown", func(pair fleet.ShownPair) bool {
		return strings.Contains(pair.Detail, away)
	})
	_, err := f.Muster("wait", run)
	wantExit(t, err, 4)
	reason := shown(t, f, run).StateReason
	for _, part := range []string{"n1", away, "n2"} {
		if !strings.Contains(reason, part) {
			t.Errorf("the run failed with %q, which does not contain %q", reason, part)
		}
	}
}

// Old sidecars are silent until they deliver: their runs have a start grace only on request.
func TestOnlyRunsWithAgentsHaveStartGrace(t *testing.T) {
	t.Parallel()
	f := up(t)
	a := operator(t, f)
	for name, c := range map[string]struct {
		plan string
		want int64
	}{
		"agents": {execPlugin("p", "DaemonSet", "true"), 300},
		"image":  {sidecarPlugin("p", "DaemonSet"), 0},
	} {
		id := run(t, f, []string{c.plan}, "n1")
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		planned := must(a.runs.GetRun(ctx, &musterv1.GetRunRequest{Run: id}))(t)
		if got := planned.StartGrace.GetSeconds(); got != c.want {
			t.Errorf("%s: the start grace is %d s, want %d", name, got, c.want)
		}
	}
}
