package e2e

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// The clock of the root relay, or of the aggregator, is before the start of all certificates, or after the end of most, while
// a job prints and results are delivered. Refusals have reasons, and what is due by that clock ends: the job, a run, and the
// week for which a relay stores ended jobs. No acknowledged result is lost, a revoked identity stays revoked, no program ends,
// and work continues when the clock is right.
func TestWrongClocksOfServersLoseNothing(t *testing.T) {
	t.Parallel()
	for program, listener := range map[string]string{fleet.Relay: relayListener, fleet.Aggregator: aggregatorListener} {
		for name, jump := range map[string]time.Duration{"a day earlier": -24 * time.Hour, "a year later": 365 * 24 * time.Hour} {
			t.Run(program+" "+name, func(t *testing.T) {
				t.Parallel()
				c := newClocked(t)
				committed := run(t, c.Fleet, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
				check(t, submit(t, must(c.Export(committed, "logs", "n1"))(t), committed, "logs", "n1", "acknowledged"))
				stolen := join(t, c.Fleet, "n9", "", nil, nil).identity(t)
				revokedOperator := must(c.WriteFile("second.json", must(c.Muster("operator", "add", "second"))(t)))(t)
				must(c.Muster("operator", "revoke", "second"))(t)
				must(c.Muster("node", "revoke", "n9"))(t)
				callers := newCallers(t, c.Fleet, committed)
				refused := func() bool {
					connection := must(stolen.Dial(callers.listeners[listener], stolen.Certificate, stolen.Key))(t)
					defer connection.Close()
					ctx, cancel := context.WithTimeout(context.Background(), soon)
					defer cancel()
					_, err := musterv1.NewRunServiceClient(connection).GetRun(ctx, &musterv1.GetRunRequest{Run: committed})
					_, operatorErr := c.Muster("runs", "--context", revokedOperator)
					return err != nil && reasonOf(err) != "RUN_NOT_FOUND" && operatorErr != nil
				}
				until(t, "the revoked identities are refused", refused)
				before := c.serviceIDs(t)

				check(t, c.faults.SetClock(program, jump))
				if lines := c.lines(); program == fleet.Aggregator { // a node without a relay may print little
					until(t, "the job prints in the wrong time", func() bool { return c.lines() > lines+150 })
				}
				for _, arguments := range [][]string{{"status", c.run}, {"results", committed}, {"job", "show", c.job}, {"nodes"},
					{"exec", "--node", "n1", "--deadline", "5s", "--ttl", "5s", "--", "/bin/true"}, {"operator", "add", "third"},
					{"run", "-f", must(c.WriteFile("late.yaml", sidecarPlugin("logs", "DaemonSet")))(t), "--node", "n1"}} {
					c.wantAnswer(t, arguments...)
				}
				check(t, os.WriteFile(c.released, nil, 0o600))
				if !refused() {
					t.Error("a revoked identity is accepted in the wrong time")
				}

				check(t, c.faults.SetClock(program, 0))
				if after := c.serviceIDs(t); after != before {
					t.Errorf("the services were %v and are %v", before, after)
				}
				check(t, fleet.Until(withinAMinute, "commands run again", func() bool {
					out, err := c.Muster("exec", "--node", "n1", "--deadline", "10s", "--ttl", "10s", "--", "/bin/echo", "right again")
					return err == nil && strings.Contains(out, "right again")
				}))
				// A final record in the wrong time would be dropped (docs/reliability.md, known gaps).
				check(t, os.WriteFile(c.end, nil, 0o600))
				if program == fleet.Relay && jump > 0 {
					_, err := c.Muster("job", "show", c.job)
					wantExit(t, err, exitCode(err), "JOB_NOT_FOUND")
				} else {
					c.wantJobEnds(t)
				}
				if !refused() {
					t.Error("a revoked identity is accepted when the clock is right again")
				}
				if got := operator(t, c.Fleet).result(t, committed, "logs", "n1"); got.Outcome != musterv1.Outcome_OUTCOME_GENUINE || got.Size != 12 {
					t.Errorf("the acknowledged result is %v", got)
				}
				c.awaitResults(t)
				later := run(t, c.Fleet, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
				check(t, submit(t, must(c.Export(later, "logs", "n1"))(t), later, "logs", "n1", "x"))
				operator(t, c.Fleet).awaitState(t, later, musterv1.RunState_RUN_STATE_COMPLETE)
				_, err := c.Muster("verify")
				check(t, err)
			})
		}
	}
}

// wantJobEnds waits for the end of the job, which may be a time-out, and checks the order of its output.
func (c *clocked) wantJobEnds(t *testing.T) {
	t.Helper()
	check(t, fleet.Until(crashSoon, "the job has ended", func() bool { return c.jobEnd(t) != nil }))
	final := c.jobEnd(t)
	if final["outcome"] != "exited" && final["outcome"] != "timed-out" {
		t.Errorf("the job ended as %v", final)
	}
	t.Logf("the job ended as %v: %v", final["outcome"], final["detail"])
	out, _, _ := machine{fleet: c.Fleet, home: c.Home}.muster(t, nil, "job", "logs", "--node", "n1", c.job)
	wantNumbered(t, out, "n1", final["outcome"] == "exited" || strings.HasSuffix(out, " lines\n"))
}

// jobEnd returns the final record of the job; nil if there is none.
func (c *clocked) jobEnd(t *testing.T) map[string]any {
	t.Helper()
	out, _, _ := machine{fleet: c.Fleet, home: c.Home}.muster(t, nil, "job", "logs", "--json", c.job)
	return finals(t, out)["n1"]
}

// awaitResults waits until both results are delivered, or their run has ended, and checks those that were.
func (c *clocked) awaitResults(t *testing.T) {
	t.Helper()
	api := operator(t, c.Fleet)
	_ = fleet.Until(withinAMinute, "the sender ends", func() bool { return !processRuns(c.sender.PID) })
	if err := c.sender.Wait(); err != nil {
		if !strings.Contains(c.sender.Output.String(), "CERTIFICATE_") && !strings.Contains(c.sender.Output.String(), "RUN_SEALED") {
			t.Errorf("the sender ended with %v: %s", err, c.sender.Output)
		}
		_, err := c.Muster(c.send...)
		t.Logf("sent again: %v", err)
	}
	check(t, fleet.Until(crashSoon, "the run is complete", func() bool {
		return api.result(t, c.run, "logs", "n1").Outcome != musterv1.Outcome_OUTCOME_PENDING &&
			api.result(t, c.run, "logs", "n2").Outcome != musterv1.Outcome_OUTCOME_PENDING
	}))
	for _, s := range []*sent{c.direct, c.collected} {
		switch got := api.result(t, c.run, "logs", s.node); got.Outcome {
		case musterv1.Outcome_OUTCOME_GENUINE:
			if got.Size != s.size || got.Crc32C != s.crc {
				t.Errorf("the result of %s is %v, want %d bytes with CRC %08x", s.node, got, s.size, s.crc)
			}
		case musterv1.Outcome_OUTCOME_TIMED_OUT:
			t.Logf("%s timed out: %s", s.node, got.Error)
		default:
			t.Errorf("the result of %s is %v", s.node, got)
		}
	}
}
