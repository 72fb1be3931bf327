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

// withinAMinute is the time limit for consequences of silence; issue 4 demands a minute.
const withinAMinute = time.Minute

// shortHeartbeats shortens the detection of missing heartbeats to seconds. On a busy machine a shorter interval would make
// heartbeats late, and the service would be in doubt.
func shortHeartbeats(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	check(t, f.Configure("status", map[string]string{"heartbeats.interval": "2s", "heartbeats.grace": "6s"}))
}

// untilReleased returns a plugin that works until its node is released.
func untilReleased(f *fleet.Fleet, name string) string {
	return execPlugin(name, "DaemonSet", `while [ ! -e "`+f.Home+`/go-$NODE_NAME" ]; do sleep 0.1; done
		echo "from $NODE_NAME" > "$RESULTS_DIR/out"; echo "$RESULTS_DIR/out" > "$RESULTS_DIR/done"`)
}

func release(t *testing.T, f *fleet.Fleet, node string) {
	t.Helper()
	must(f.WriteFile("go-"+node, ""))(t)
}

// shown returns the answer of GET /status for the run's credentials file.
func shown(t *testing.T, f *fleet.Fleet, run string) *fleet.Shown {
	t.Helper()
	return must(must(fleet.ReadViewer(f.CredentialsFile(run)))(t).Status())(t)
}

// statusService returns the status API as the operator of this home.
func statusService(t *testing.T, f *fleet.Fleet) musterv1.StatusServiceClient {
	t.Helper()
	connection := must(must(f.Operator())(t).StatusGRPC())(t)
	t.Cleanup(func() { connection.Close() })
	return musterv1.NewStatusServiceClient(connection)
}

// pairs returns the pairs of a run by node, as gRPC reports them.
func pairs(t *testing.T, service musterv1.StatusServiceClient, run string) map[string]*musterv1.PairStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	status := must(service.GetStatus(ctx, &musterv1.GetStatusRequest{Run: run, PageSize: 100}))(t)
	found := map[string]*musterv1.PairStatus{}
	for _, pair := range status.Pairs {
		found[pair.Node] = pair
	}
	return found
}

// startAgent starts an agent for a pair; it is killed at the end of the test.
func startAgent(t *testing.T, f *fleet.Fleet, on *fleet.Host, run, plugin, node string, environment ...string) *fleet.RunningProgram {
	t.Helper()
	agent := must(f.StartAgent(must(f.Export(run, plugin, node))(t), on, environment...))(t)
	t.Cleanup(func() {
		agent.End()
		if t.Failed() {
			t.Logf("agent on %s: %s", node, agent.Output)
		}
	})
	return agent
}

// awaitReasons waits until all three interfaces report these reasons: "not-responding" by node.
func awaitReasons(t *testing.T, f *fleet.Fleet, run, plugin string, want map[string]string) {
	t.Helper()
	service := statusService(t, f)
	var last string
	reported := func() bool {
		var all strings.Builder
		good := true
		text, err := f.Muster("status", run)
		if code := exitCode(err); code != 7 {
			t.Fatalf("muster status ended with %d (%v), want 7: the run is still running", code, err)
		}
		status, grpc := shown(t, f, run), pairs(t, service, run)
		for node, reason := range want {
			pair := status.Pair(plugin, node)
			name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(grpc[node].GetReason().String(), "REASON_")), "_", "-")
			fmt.Fprintf(&all, "%s: /status %q, gRPC %q (%s)\n", node, pair.Reason, name, grpc[node])
			good = good && pair.Reason == reason && name == reason && (reason == "running" || lineContains(text, node, reason))
		}
		last = all.String() + text
		return good
	}
	if err := fleet.Until(withinAMinute, "the reasons are reported", reported); err != nil {
		t.Fatalf("%v: want %v, got\n%s", err, want, last)
	}
}

// lineContains reports whether one line has the node and the reason, in words for people.
func lineContains(text, node, reason string) bool {
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, node) && (strings.Contains(line, reason) ||
			strings.Contains(line, strings.ReplaceAll(reason, "-", " "))) {
			return true
		}
	}
	return false
}

// exitCode returns the exit code of a command of the CLI.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := err.(*fleet.CommandError); ok {
		return exit.ExitCode
	}
	return -1
}

// inOwnNetwork reports whether the test runs in its own network; otherwise it runs the test in one, and returns how
// that ended.
func inOwnNetwork(t *testing.T) bool {
	t.Helper()
	if fleet.InOwnNetwork() {
		return true
	}
	check(t, fleet.RunInOwnNetwork(t.Name()))
	return false
}

// agentsOnThreeNodes creates a run with an agent on n1 and n2 here, and one on n3 on a separate host.
func agentsOnThreeNodes(t *testing.T, f *fleet.Fleet, host *fleet.Host, arguments ...string) (run string, agents map[string]*fleet.RunningProgram) {
	t.Helper()
	file := must(f.WriteFile("plan.yaml", untilReleased(f, "work")))(t)
	run = must(f.CreateRun(append([]string{"-f", file, "--node", "n1,n2,n3"}, arguments...)...))(t)
	agents = map[string]*fleet.RunningProgram{}
	for _, node := range []string{"n1", "n2", "n3"} {
		on := host
		if node != "n3" {
			on = nil
		}
		agents[node] = startAgent(t, f, on, run, "work", node)
	}
	awaitReasons(t, f, run, "work", map[string]string{"n1": "running", "n2": "running", "n3": "running"})
	return run, agents
}

// One agent is stopped, one is killed, one is disconnected: each interface reports which is which. An agent that
// returns is running.
func TestStatusDistinguishesStoppedKilledAndDisconnected(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	host := must(fleet.NewHost())(t)
	t.Cleanup(func() { check(t, host.Close()) })
	f := up(t, "--advertise", host.Address+",127.0.0.1")
	shortHeartbeats(t, f)
	run, agents := agentsOnThreeNodes(t, f, host)

	check(t, agents["n1"].Stop())
	agents["n2"].Kill()
	check(t, host.Cut())
	awaitReasons(t, f, run, "work", map[string]string{"n1": "not-responding", "n2": "crashed", "n3": "network-lost"})

	check(t, agents["n1"].Continue())
	check(t, host.Mend())
	startAgent(t, f, nil, run, "work", "n2")
	awaitReasons(t, f, run, "work", map[string]string{"n1": "running", "n2": "running", "n3": "running"})
	for _, node := range []string{"n1", "n2", "n3"} {
		release(t, f, node)
	}
	operator(t, f).awaitState(t, run, musterv1.RunState_RUN_STATE_COMPLETE)
	until(t, "the status service has received the end", func() bool { return shown(t, f, run).Status == "complete" })
	if at := shown(t, f, run); *at.PercentComplete != 1 || at.Counts.Genuine != 3 {
		t.Errorf("at the end /status has %+v", at)
	}
}
