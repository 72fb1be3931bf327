package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// One agent is stopped, one killed, one disconnected: within a minute the terminal, /status and the dashboard
// each report which is which.
func TestEachInterfaceDistinguishesStoppedKilledAndDisconnected(t *testing.T) {
	t.Parallel()
	if !fleet.InOwnNetwork() {
		check(t, fleet.RunInOwnNetwork(t.Name()))
		return
	}
	host, err := fleet.NewHost()
	check(t, err)
	t.Cleanup(func() { check(t, host.Close()) })
	f := up(t, "--advertise", host.Address+",127.0.0.1")
	check(t, f.Configure("status", map[string]string{"heartbeats.interval": "2s", "heartbeats.grace": "6s"}))
	run := plan(t, f, "Three failing nodes", []string{"stopped", "killed", "cut-off"}, gated("work", inHome(f, "gate")))
	stopped, killed := agent(t, f, nil, run, "work", "stopped"), agent(t, f, nil, run, "work", "killed")
	agent(t, f, host, run, "work", "cut-off")
	check(t, fleet.Until(soon, "all three are working", func() bool {
		return slices.IndexFunc(status(t, f, run).Plugins, func(pair fleet.ShownPair) bool { return pair.Reason != "running" }) < 0
	}))

	p := newPage(t)
	p.signIn(f)
	p.visit("#/runs/" + run)
	p.untilShown("[data-link=live]")

	check(t, stopped.Stop())
	killed.Kill()
	check(t, host.Cut())
	want := map[string]string{"stopped": "not responding", "killed": "crashed", "cut-off": "network lost"}
	var missing []string
	if err := fleet.Until(time.Minute, "each place shows the right reasons", func() bool {
		missing = missingReasons(t, f, p, run, want)
		return len(missing) == 0
	}); err != nil {
		t.Errorf("%v: %s", err, strings.Join(missing, "; "))
	}
}

// status returns the answer of GET /status.
func status(t *testing.T, f *fleet.Fleet, run string) *fleet.Shown {
	t.Helper()
	viewer, err := fleet.ReadViewer(f.CredentialsFile(run))
	check(t, err)
	shown, err := viewer.Status()
	check(t, err)
	return shown
}

// missingReasons lists what one of the three places does not report of a node.
func missingReasons(t *testing.T, f *fleet.Fleet, p *page, run string, want map[string]string) (missing []string) {
	t.Helper()
	shown := status(t, f, run)
	text, _ := f.Muster("status", run) // the exit code says that the run is still running
	for node, reason := range want {
		if got := shown.Pair("work", node).Reason; got != strings.ReplaceAll(reason, " ", "-") {
			missing = append(missing, fmt.Sprintf("/status reports %q for %s", got, node))
		}
		if !anyLine(text, node, reason) {
			missing = append(missing, fmt.Sprintf("muster status shows for %s:\n%s", node, text))
		}
		row := straggler(node, strings.ReplaceAll(reason, " ", "_"))
		if !script[bool](p, fmt.Sprintf("document.querySelector(%q) !== null", row)) {
			missing = append(missing, fmt.Sprintf("the page has no %s, but:\n%s", row, p.text("body")))
		}
	}
	return missing
}

func anyLine(text string, parts ...string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}
