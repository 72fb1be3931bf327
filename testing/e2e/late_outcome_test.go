package e2e

import (
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// The container ends while its agent is down, and the root relay gives the node up. When the agent is back, its outcome and
// the rest of the output replace that.
func TestOutcomeOfALostNodeArrivesLate(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	id := strings.TrimSpace(must(d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--set", "seconds=15", "--deadline", "20s"))(t))
	until(t, "the container prints", func() bool {
		out, _ := d.Muster("deployment", "logs", id)
		return strings.Contains(out, "n1: line 1\n")
	})
	d.node.agent.End()
	check(t, fleet.Until(2*time.Minute, "the node is given up", func() bool { return d.show(t, id).State == "failed" }))
	if out := must(d.Muster("deployment", "show", id))(t); !strings.Contains(out, "n1: timed out") {
		t.Errorf("muster deployment show prints %s", out)
	}
	// A restarted root relay remembers the node.
	killUntilRestart(t, d.Fleet, fleet.Relay)
	d.node.start(t)
	check(t, fleet.Until(2*time.Minute, "the outcome of the node arrives", func() bool { return d.show(t, id).State == "succeeded" }))
	out := must(d.Muster("deployment", "show", id))(t)
	for _, want := range []string{"n1: succeeded (reported late; before: timed out)", "late ", "hello Ada"} {
		if !strings.Contains(out, want) {
			t.Errorf("muster deployment show prints no %q: %s", want, out)
		}
	}
	if out := must(d.Muster("deployment", "logs", id))(t); strings.Count(out, "n1: line ") != 300 {
		t.Errorf("%d lines arrived, want 300: %s", strings.Count(out, "n1: line "), out)
	}
	noContainers(t, d.docker)
}
