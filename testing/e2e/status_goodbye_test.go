package e2e

import (
	"fmt"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// The end of an agent that has delivered its result is no loss, whichever of its last messages arrives first: its
// goodbye, the outcome by the change feed, or the end of its connection.
func TestAgentsThatEndWellAreOffline(t *testing.T) {
	t.Parallel()
	f := up(t)
	shortHeartbeats(t, f)
	const agents = 16
	file := must(f.WriteFile("plan.yaml", execPlugin("work", "DaemonSet",
		`echo done > "$RESULTS_DIR/out"; echo "$RESULTS_DIR/out" > "$RESULTS_DIR/done"`)))(t)
	nodes := ""
	for i := range agents + 1 { // the last one has no agent, so that the run continues
		nodes += fmt.Sprintf("n%d,", i)
	}
	run := must(f.CreateRun("-f", file, "--node", nodes[:len(nodes)-1]))(t)
	var started []*fleet.RunningProgram
	for i := range agents {
		started = append(started, startAgent(t, f, nil, run, "work", fmt.Sprintf("n%d", i)))
	}
	for i, agent := range started {
		if err := agent.Wait(); err != nil {
			t.Errorf("the agent on n%d: %v", i, err)
		}
	}
	count := func(presence string) float64 {
		return counted(t, f, "status", `muster_senders{presence="PRESENCE_`+presence+`"}`)
	}
	if err := fleet.Until(time.Minute, "every agent is offline", func() bool { return count("OFFLINE") == agents }); err != nil {
		t.Errorf("%v: %v offline, %v lost, %v online", err, count("OFFLINE"), count("LOST"), count("ONLINE"))
	}
}
