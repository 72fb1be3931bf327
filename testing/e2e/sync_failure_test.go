package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/testing/fleet"
)

const mostSyncs = 100 // of one delivery

// upWithFaults starts a fleet of which system calls can fail.
func upWithFaults(t *testing.T, arguments ...string) (*fleet.Fleet, *fleet.Faults) {
	t.Helper()
	f := must(fleet.New(""))(t)
	closeAtEnd(t, f)
	faults := must(f.NewFaults())(t)
	check(t, f.Up(arguments...))
	return f, faults
}

// eachSync calls `deliver` with a failure of the first fsync of a program, of a later one and so on, until it makes fewer.
func eachSync(t *testing.T, faults *fleet.Faults, program string, step int, deliver func()) {
	t.Helper()
	eachSyncFrom(t, faults, program, 1, step, deliver)
}

// eachSyncFrom begins at a later sync.
func eachSyncFrom(t *testing.T, faults *fleet.Faults, program string, first, step int, deliver func()) {
	t.Helper()
	for nth := first; nth <= mostSyncs; nth += step {
		check(t, faults.FailSync(program, nth))
		deliver()
		if !faults.EndFailSync(program) {
			t.Logf("%s makes fewer than %d syncs", program, nth)
			if nth == 1 {
				t.Errorf("%s makes no sync", program)
			}
			return
		}
	}
	t.Errorf("%s makes more than %d syncs", program, mostSyncs)
}

// persevere repeats a call that fails for a failed fsync, and fails without a reason.
func persevere(t *testing.T, what string, call func() error) {
	t.Helper()
	until(t, what, func() bool {
		err := call()
		var exit *fleet.CommandError
		if errors.As(err, &exit) {
			if exit.Stderr == "" || exit.ExitCode < 0 {
				t.Fatalf("%s: no reason is shown: %v", what, err)
			}
		} else if err != nil && status.Code(err) != codes.Unavailable && reason(err) == "" {
			t.Fatalf("%s: no reason is shown: %v", what, err)
		}
		return err == nil
	})
}

// Each fsync of the aggregator fails once while runs are created, delivered and sealed: it reports an error or ends and
// starts again, and what it accepted survives a kill.
func TestFailedSyncOfAggregatorLosesNothing(t *testing.T) {
	t.Parallel()
	f, faults := upWithFaults(t)
	// After a failure of the database the aggregator ends, and waits for open streams as at any stop.
	check(t, f.Configure("aggregator", map[string]string{"drain": "0s"}))
	check(t, f.Configure("supervisor", map[string]string{"longest_pause": "1s"}))
	random, runs, objects := seeded(t), map[string][]*sent{}, int64(0)
	eachSync(t, faults, fleet.Aggregator, 1, func() {
		var id string
		plan := must(f.WriteFile("plan.yaml", sidecarPlugin("logs", "DaemonSet")))(t)
		persevere(t, "a run is created", func() (err error) {
			id, err = f.CreateRun("-f", plan, "--node", "small,large")
			return err
		})
		tiny, large := newSent(t, f, random, id, "small", 1000), newSent(t, f, random, id, "large", 300_000)
		credentials := map[string]*fleet.Credential{}
		for _, node := range []string{"small", "large"} {
			persevere(t, "a credential is exported", func() (err error) {
				credentials[node], err = f.Export(id, "logs", node)
				return err
			})
		}
		content := string(must(os.ReadFile(tiny.file))(t))
		persevere(t, "a small result is accepted", func() error { return submit(t, credentials["small"], id, "logs", "small", content) })
		persevere(t, "a large result is accepted", func() error {
			_, err := f.Muster("submit", large.file, "--config", credentials["large"].File)
			return err
		})
		wantAllComplete(t, f, id, 2)
		runs[id] = []*sent{tiny, large}
	})
	kill(t, f)
	for id, all := range runs {
		wantCommittedOnce(t, f, id, all)
		objects += int64(len(all)) + 1
	}
	wantSoundStore(t, f, objects)
}

// Each fsync of an agent fails once: it delivers an error result with that reason, or ends with it, and delivers the
// genuine result when it is started again.
func TestFailedSyncOfAgentLosesNothing(t *testing.T) {
	t.Parallel()
	f, faults := upWithFaults(t)
	random, objects := seeded(t), int64(0)
	eachSync(t, faults, "agent", 1, func() {
		folder := t.TempDir()
		id := run(t, f, []string{execPlugin("logs", "DaemonSet",
			`cp "`+folder+`/content" "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`)}, "n1", "last")
		s := newSent(t, f, random, id, "n1", 300_000)
		check(t, os.Rename(s.file, filepath.Join(folder, "content")))
		credential := must(f.Export(id, "logs", "n1"))(t)
		for range 3 {
			agent := must(f.StartAgent(credential, nil, faults.Environment("agent")))(t)
			err := agent.Wait()
			if err == nil {
				break
			}
			if !strings.Contains(agent.Output.String(), "nput/output error") {
				t.Errorf("the agent ended without the reason: %v: %s", err, agent.Output)
			}
		}
		check(t, submit(t, must(f.Export(id, "logs", "last"))(t), id, "logs", "last", "the run ends"))
		wantAllComplete(t, f, id, 2)
		if got := operator(t, f).result(t, id, "logs", "n1"); got.Size != s.size || got.Crc32C != s.crc {
			t.Errorf("the result is %v, want %d bytes with CRC %08x", got, s.size, s.crc)
		}
		objects += 3
	})
	wantSoundStore(t, f, objects)
}

// Each fsync of a relay fails once while it spools a result and delivers it later: the agent keeps the result until it
// is committed. A relay whose database has failed ends with that reason, and uses it again when it is started again.
func TestFailedSyncOfRelayLosesNothing(t *testing.T) {
	t.Parallel()
	f, faults := upWithFaults(t)
	r1, address := localRelay(t, f, "r1", "")
	r1.program.End()
	r1.extra = []string{faults.Environment("r1")}
	ends := r1.supervise(t)
	n1 := joinAt(t, f, "n1", address)
	n1.agent.End()
	check(t, os.WriteFile(filepath.Join(n1.folder(), "policy.yaml"), []byte(collectPolicy), 0o600))
	n1.attach(t)
	random, objects := seeded(t), int64(0)
	step := 3 // each takes seconds, until relay and node are attached again
	if thorough(t) {
		step = 1
	}
	deliver := func() {
		folder := t.TempDir()
		id := run(t, f, []string{execPlugin("logs", "DaemonSet", `touch "`+folder+`/begun"; until [ -e "`+folder+`/go" ]; do sleep 0.1; done; `+
			`cp "`+folder+`/content" "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`)}, "n1")
		s := newSent(t, f, random, id, "n1", 2_000_000)
		check(t, os.Rename(s.file, filepath.Join(folder, "content")))
		check(t, fleet.Until(withinAMinute, "the plugin is running", func() bool { return fileExists(filepath.Join(folder, "begun")) }))
		back := killAndHold(t, f, fleet.Relay, "--config", filepath.Join(f.Home, "config", "relay.yaml"))
		check(t, os.WriteFile(filepath.Join(folder, "go"), nil, 0o600))
		check(t, fleet.Until(crashSoon, "the result is spooled, or refused", func() bool {
			return len(filesBelow(filepath.Join(r1.home, "spool", "blobs", "blobs"))) > 0 || faults.SyncFailed("r1")
		}))
		back()
		wantCommittedOnce(t, f, id, []*sent{s})
		objects += 2
	}
	// The steps may leave out all syncs of the database.
	for first := 1; first <= step && ends.Load() == 0; first++ {
		eachSyncFrom(t, faults, "r1", first, step, deliver)
	}
	if ends.Load() == 0 {
		t.Error("the relay never ended: no sync of its database failed")
	}
	wantSoundStore(t, f, objects, filepath.Join(r1.home, "spool"))
}
