package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// killAndHold kills a service as a crash would; it restarts when `back` is called and not before.
func killAndHold(t *testing.T, f *fleet.Fleet, service string, arguments ...string) (back func()) {
	t.Helper()
	supervisor := must(f.Process(fleet.Muster, "supervise"))(t)
	check(t, supervisor.Stop())
	t.Cleanup(func() { _ = supervisor.Continue() })
	must(f.Process(service, arguments...))(t).Kill()
	return func() { check(t, supervisor.Continue()) }
}

// runWithAgents creates a run with a working agent on each node.
func runWithAgents(t *testing.T, f *fleet.Fleet, count int) (run string, nodes []string) {
	t.Helper()
	for i := range count {
		nodes = append(nodes, fmt.Sprintf("n%d", i+1))
	}
	file := must(f.WriteFile("plan.yaml", untilReleased(f, "work")))(t)
	run = must(f.CreateRun("-f", file, "--node", strings.Join(nodes, ","), "--lost-after", "10s"))(t)
	want := map[string]string{}
	for _, node := range nodes {
		startAgent(t, f, nil, run, "work", node)
		want[node] = "running"
	}
	awaitReasons(t, f, run, "work", want)
	return run, nodes
}

// wantAllComplete waits for the end and compares the run in aggregator, /status and gRPC.
func wantAllComplete(t *testing.T, f *fleet.Fleet, run string, nodes int) {
	t.Helper()
	a := operator(t, f)
	check(t, fleet.Until(2*time.Minute, "the run is complete", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		now, err := a.runs.GetRun(ctx, &musterv1.GetRunRequest{Run: run})
		return err == nil && now.State == musterv1.RunState_RUN_STATE_COMPLETE && int(now.Counts.Genuine) == nodes
	}))
	var at *fleet.Shown
	if err := fleet.Until(soon, "status has caught up", func() bool {
		at = shown(t, f, run)
		return at.Status == "complete"
	}); err != nil {
		t.Fatalf("%v: %+v", err, at)
	}
	if at.Counts.Genuine != nodes || at.Counts.Planned != nodes || at.Counts.Pending+at.Counts.Errors+at.Counts.TimedOut != 0 ||
		*at.PercentComplete != 1 || len(at.Plugins) != nodes {
		t.Errorf("/status counts %+v, %v complete, %d pairs; want %d genuine ones", at.Counts, *at.PercentComplete,
			len(at.Plugins), nodes)
	}
	for node, pair := range pairs(t, statusService(t, f), run) {
		if pair.Outcome != musterv1.Outcome_OUTCOME_GENUINE {
			t.Errorf("gRPC: %s is %v", node, pair)
		}
	}
	_, err := f.Muster("status", run)
	wantExit(t, err, 0)
}

func TestStatusIsServedWhileAggregatorIsDownAndCatchesUp(t *testing.T) {
	t.Parallel()
	f := up(t)
	shortHeartbeats(t, f)
	run, nodes := runWithAgents(t, f, 3)
	for i, node := range nodes {
		back := killAndHold(t, f, fleet.Aggregator)
		release(t, f, node) // delivered when the aggregator is available again
		for range 5 {
			if at := shown(t, f, run); at.Status != "running" || at.Counts.Genuine != i || at.Counts.Planned != len(nodes) {
				t.Errorf("without the aggregator /status has %q, %+v; want %d of %d", at.Status, at.Counts, i, len(nodes))
			}
		}
		_, err := f.Muster("status", run)
		wantExit(t, err, 7)
		back()
		awaitPair(t, f, run, node, "the pair is complete", func(pair fleet.ShownPair) bool { return pair.Status == "complete" })
	}
	wantAllComplete(t, f, run, len(nodes))
}

// No agent is reported as lost before the service had time to receive heartbeats: its grace is the usual one.
func TestAgentsAreNotReportedLostAfterStatusServiceRestart(t *testing.T) {
	t.Parallel()
	f := up(t)
	check(t, f.Configure("status", map[string]string{"heartbeats.interval": "2s"}))
	run, nodes := runWithAgents(t, f, 3)
	back := killAndHold(t, f, fleet.Status)
	release(t, f, "n1") // goes to the aggregator, which does not need the status service
	a := operator(t, f)
	until(t, "the result is committed", func() bool {
		return a.result(t, run, "work", "n1").Outcome == musterv1.Outcome_OUTCOME_GENUINE
	})
	_, err := f.Muster("status", run)
	wantExit(t, err, 78, "next:")
	back()
	viewer := must(fleet.ReadViewer(f.CredentialsFile(run)))(t)
	var last *fleet.Shown
	if err := fleet.Until(2*time.Minute, "all agents have reconnected", func() bool {
		at, err := viewer.Status()
		if err != nil {
			return false // it starts, and then catches up
		}
		last = at
		online := 0
		for _, pair := range at.Plugins {
			if pair.Node == "n1" {
				continue
			}
			if pair.Presence == "online" {
				online++
			}
			// An agent whose first heartbeat was not yet on the disk counts as not started until the next.
			if pair.Status != "running" || (pair.Reason != "running" && pair.Reason != "not-started") {
				t.Fatalf("%s was reported as %s, %s", pair.Node, pair.Status, pair.Reason)
			}
		}
		return online == len(nodes)-1 && at.Pair("work", "n1").Status == "complete"
	}); err != nil {
		t.Fatalf("%v: %+v", err, last)
	}
	release(t, f, "n2")
	release(t, f, "n3")
	wantAllComplete(t, f, run, len(nodes))
}
