package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// A full disk refuses each kind of delivery with the same reason; accepted results are kept; when space is available
// again, waiting deliveries continue automatically.
func TestFullDiskRefusesDeliveriesAndLosesNothing(t *testing.T) {
	t.Parallel()
	f, disk, err := fleet.NewOnSmallDisk()
	check(t, err)
	closeAtEnd(t, f)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "before", "large", "small", "old")
	credentials := map[string]*fleet.Credential{}
	for _, node := range []string{"before", "large", "small", "old"} {
		credentials[node] = must(f.Export(id, "logs", node))(t)
	}
	// Files of the senders are on another disk.
	file := filepath.Join(t.TempDir(), "large")
	check(t, os.WriteFile(file, []byte(strings.Repeat("no room for this. ", 1<<20)), 0o600))
	credentials["large"].StateDir = t.TempDir()
	config := must(f.WriteCredential("large.json", credentials["large"]))(t)
	check(t, submit(t, credentials["before"], id, "logs", "before", "accepted before"))
	a := operator(t, f)
	checkBefore := func() {
		t.Helper()
		if got := a.result(t, id, "logs", "before"); got.Outcome != musterv1.Outcome_OUTCOME_GENUINE || got.Generation != 1 {
			t.Errorf("the earlier result is now %v", got)
		}
	}

	// Space for the database, but not for a large result.
	check(t, disk.Fill(6<<20))
	delivered := make(chan error, 1)
	go func() {
		_, err := f.Muster("submit", file, "--config", config)
		delivered <- err
	}()
	until(t, "the upload is refused", func() bool { return refusedForSpace(t, f) > 0 })
	select {
	case err := <-delivered:
		t.Fatalf("`muster submit` gave up: %v", err)
	default:
	}
	refused := func(file string) {
		t.Helper()
		code, body := curl(t, credentials["old"], "--max-time", "30", // the gateway waits longer for an unreachable aggregator
			"-T", file, credentials["old"].AggregatorURL+"/api/v1/results/by-node/old/logs")
		if code != "507" || !strings.Contains(body, "DISK_FULL") || !strings.Contains(body, "ree space") || strings.Contains(body, f.Home) {
			t.Errorf("a PUT was answered %q %q, want 507, the reason and a next step, without a path of the server", code, body)
		}
	}
	refused(file)
	checkBefore()

	// No space at all, not even for a row.
	check(t, disk.Fill(0))
	content := strings.Repeat("x", 60<<10)
	err = submit(t, credentials["small"], id, "logs", "small", content)
	wantError(t, err, codes.ResourceExhausted, "DISK_FULL")
	if strings.Contains(err.Error(), f.Home) {
		t.Errorf("the error has a path of the server: %v", err)
	}
	small := filepath.Join(t.TempDir(), "small")
	check(t, os.WriteFile(small, []byte(content), 0o600))
	refused(small)
	checkBefore()

	check(t, disk.Free())
	check(t, submit(t, credentials["small"], id, "logs", "small", "at last"))
	check(t, putFile(must(credentials["old"].HTTP())(t), credentials["old"].AggregatorURL+"/api/v1/results/by-node/old/logs", file))
	check(t, <-delivered)
	a.awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	files := archive(t, f, id)
	wantFile(t, files, "plugins/logs/results/before/result", "accepted before")
	wantFile(t, files, "plugins/logs/results/small/result", "at last")
	for _, node := range []string{"large", "old"} {
		if got := a.result(t, id, "logs", node); got.Size != int64(len("no room for this. ")<<20) || got.Generation != 1 {
			t.Errorf("%s: %v", node, got)
		}
	}
}

// refusedForSpace returns how many calls the aggregator has answered with RESOURCE_EXHAUSTED.
func refusedForSpace(t *testing.T, f *fleet.Fleet) (sum int) {
	t.Helper()
	text := must(metrics(f, "aggregator"))(t)
	return len(regexp.MustCompile(`muster_rpc_calls_total\{[^}]*RESOURCE_EXHAUSTED[^}]*\} [1-9]`).FindAllString(text, -1))
}
