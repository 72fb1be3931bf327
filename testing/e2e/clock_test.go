package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// The programs with a wrong clock, by their names for fleet.Faults.
var clocks = []string{fleet.Aggregator, fleet.Relay, fleet.Status, "agent"}

// clocked is a fleet with a clock for each program, while a job prints and two results are in transit.
type clocked struct {
	*fleet.Fleet
	faults               *fleet.Faults
	job, printed, end    string // the last two: the file of its lines, and the file that ends it
	run                  string
	direct, collected    *sent
	sender               *fleet.RunningProgram
	send                 []string // its command
	released, collecting string   // files: releases the collected result; it is in progress
}

func newClocked(t *testing.T) *clocked {
	t.Helper()
	f := must(fleet.New(""))(t)
	closeAtEnd(t, f)
	c := &clocked{Fleet: f, faults: must(f.NewFaults())(t)}
	for _, program := range clocks {
		check(t, c.faults.SetClock(program, 0))
	}
	check(t, f.Up())
	n1 := join(t, f, "n1", collectPolicy, nil, []string{c.faults.Environment("agent")})
	n1.attach(t)
	folder := t.TempDir()
	c.printed, c.end, c.released, c.collecting = filepath.Join(folder, "printed"), filepath.Join(folder, "end"),
		filepath.Join(folder, "go"), filepath.Join(folder, "collecting")
	c.job = strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--deadline", "10m", "--detach", "--", "/bin/sh", "-c",
		fmt.Sprintf(`i=0; until [ -e %[1]s ]; do echo line $i; echo >> %[2]s; i=$((i+1)); sleep 0.02; done; echo $i lines`, c.end, c.printed)))(t))
	plan := must(f.WriteFile("plan.yaml", execPlugin("logs", "DaemonSet", fmt.Sprintf(`touch %s; until [ -e %s ]; do sleep 0.1; done; `+
		`cp %s/content "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`, c.collecting, c.released, folder))))(t)
	c.run = must(f.CreateRun("-f", plan, "--node", "n1,n2", "--timeout", "720h"))(t)
	random := seeded(t)
	c.direct, c.collected = newSent(t, f, random, c.run, "n2", 1<<20), newSent(t, f, random, c.run, "n1", 1<<20)
	check(t, os.Rename(c.collected.file, filepath.Join(folder, "content")))
	credential := must(f.Export(c.run, "logs", "n2"))(t)
	l := linkOn(t, nil, "127.0.0.1:0", credential.GRPCTargets[0])
	l.Slow(0, linkRate)
	credential.GRPCTargets = []string{l.Address}
	file := must(f.WriteCredential("n2.json", credential))(t)
	c.send = []string{"submit", c.direct.file, "--config", file}
	c.sender = must(f.Start(nil, []string{c.faults.Environment("agent")}, fleet.Muster, c.send...))(t)
	t.Cleanup(func() { endAndLog(t, "the sender", c.sender) })
	until(t, "everything is in progress", func() bool {
		return c.lines() > 10 && fileExists(c.collecting) && l.Passed(fleet.Up) > 100_000
	})
	return c
}

func (c *clocked) lines() int64 {
	info, err := os.Stat(c.printed)
	if err != nil {
		return 0
	}
	return info.Size()
}

// serviceIDs returns the process of each service.
func (c *clocked) serviceIDs(t *testing.T) (ids [4]int) {
	t.Helper()
	for i, name := range []string{fleet.Aggregator, fleet.Status, fleet.Gateway, fleet.Relay} {
		ids[i] = must(c.Process(name))(t).PID
	}
	return ids
}

// awaitDelivery waits for the sender. If its certificate was refused, it ends with that reason, and delivers when it is
// started again.
func (c *clocked) awaitDelivery(t *testing.T) {
	t.Helper()
	check(t, fleet.Until(crashSoon, "the sender ends", func() bool { return !processRuns(c.sender.PID) }))
	if err := c.sender.Wait(); err == nil {
		return
	} else if !strings.Contains(c.sender.Output.String(), "CERTIFICATE_") {
		t.Errorf("the sender ended with %v", err)
	}
	must(c.Muster(c.send...))(t)
}

// wantAnswer fails unless a command succeeds or prints a reason.
func (c *clocked) wantAnswer(t *testing.T, arguments ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	_, err := c.Run(ctx, arguments...)
	if _, exits := err.(*fleet.CommandError); err != nil && !exits {
		t.Errorf("muster %v: %v", arguments, err)
	} else if err != nil {
		t.Logf("%v", err)
	}
}

// The clock of one program is wrong for some seconds, while a job prints and results are delivered: nothing is lost, and no
// program ends. An expired certificate is refused with a reason; the work continues when the clock is right.
func TestClockJumpsLoseNothing(t *testing.T) {
	t.Parallel()
	all := map[string]time.Duration{"later": 24 * time.Hour, "earlier": -24 * time.Hour, "a year later": 365 * 24 * time.Hour}
	// The known gaps in docs/reliability.md describe other jumps of the aggregator, and jumps of the root relay.
	for program, jumps := range map[string]map[string]time.Duration{
		fleet.Status: all, "agent": all, fleet.Aggregator: {"later": 24 * time.Hour},
	} {
		for name, jump := range jumps {
			t.Run(program+" "+name, func(t *testing.T) {
				t.Parallel()
				c := newClocked(t)
				before := c.serviceIDs(t)
				check(t, c.faults.SetClock(program, jump))
				check(t, os.WriteFile(c.released, nil, 0o600))
				lines := c.lines()
				until(t, "the job prints in the wrong time", func() bool { return c.lines() > lines+150 })
				c.wantAnswer(t, "status", c.run)
				c.wantAnswer(t, "job", "show", c.job)
				c.wantAnswer(t, "nodes")
				check(t, c.faults.SetClock(program, 0))
				if after := c.serviceIDs(t); after != before {
					t.Errorf("the services were %v and are %v", before, after)
				}

				check(t, os.WriteFile(c.end, nil, 0o600))
				var final map[string]any
				check(t, fleet.Until(crashSoon, "the job has ended", func() bool {
					out, _, _ := machine{fleet: c.Fleet, home: c.Home}.muster(t, nil, "job", "logs", "--json", c.job)
					final = finals(t, out)["n1"]
					return final != nil
				}))
				if final["outcome"] != "exited" {
					t.Errorf("the job ended as %v", final)
				}
				out, _, _ := machine{fleet: c.Fleet, home: c.Home}.muster(t, nil, "job", "logs", "--node", "n1", c.job)
				wantNumbered(t, out, "n1", true)
				check(t, fleet.Until(withinAMinute, "the status is served again", func() bool {
					// A program sees the corrected time some seconds later: absl::Now() measures between two looks at the clock.
					_, err := c.Muster("status", c.run)
					return exitCode(err) != 78 && (err == nil || !strings.Contains(err.Error(), "CERTIFICATE_"))
				}))
				c.awaitDelivery(t)
				wantAllComplete(t, c.Fleet, c.run, 2)
				for _, s := range []*sent{c.direct, c.collected} {
					if got := operator(t, c.Fleet).result(t, c.run, "logs", s.node); got.Outcome != musterv1.Outcome_OUTCOME_GENUINE ||
						got.Size != s.size || got.Crc32C != s.crc {
						t.Errorf("the result of %s is %v, want %d bytes with CRC %08x", s.node, got, s.size, s.crc)
					}
				}
				for _, pair := range shown(t, c.Fleet, c.run).Plugins {
					if pair.LastHeartbeat != nil && (*pair.LastHeartbeat < 0 || *pair.LastHeartbeat > int(crashSoon.Seconds())) {
						t.Errorf("the last heartbeat of %s was %d seconds ago", pair.Node, *pair.LastHeartbeat)
					}
				}
				wantSoundStore(t, c.Fleet, 3)
			})
		}
	}
}
