package e2e

import (
	"fmt"
	"math/rand"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// The earlier schemas of the databases, as SQL that undoes the later steps. The programs of an earlier version cannot be
// built within the time of a test run.
var earlierSchemas = map[string]struct{ file, sql, version string }{
	"aggregator": {"aggregator/state.db", `
		ALTER TABLE audit DROP COLUMN vouched_by;
		ALTER TABLE uploads DROP COLUMN proven;
		DROP INDEX audit_by_subject;
		ALTER TABLE audit DROP COLUMN subject;
		DROP INDEX runs_finished;
		ALTER TABLE runs DROP COLUMN pinned;
		ALTER TABLE runs DROP COLUMN result_bytes;
		DROP TABLE damaged;`, "7"},
	"jobs": {"jobs/jobs.db", `
		DROP TABLE template_files;
		DROP INDEX documents_of_creator;
		DROP INDEX deployments_unsettled;
		ALTER TABLE deployments DROP COLUMN unsettled;
		DROP TABLE conformance_reports;
		DROP TABLE conformance_baseline;
		DROP TABLE contents;
		DROP TABLE content_uploads;
		DROP TABLE content_usage;
		DROP INDEX deployment_contents_of;
		DROP TABLE deployment_contents;
		DROP TABLE secrets;
		DROP TABLE secret_versions;
		DROP TABLE secret_reads;
		DROP TABLE deleted_workspaces;
		DROP TABLE workspaces;
		DROP TABLE workspace_versions;
		DROP TABLE workspace_uploads;
		DROP TABLE audit_outbox;
		DROP INDEX deployments_retry_of;
		DROP INDEX deployments_destroys;
		ALTER TABLE deployments DROP COLUMN retry_of;
		ALTER TABLE deployments DROP COLUMN destroys;
		DROP INDEX deployments_of_creator;
		ALTER TABLE deployments DROP COLUMN cancelled;
		ALTER TABLE deployments DROP COLUMN attempted;`, "1"},
	"status": {"status/status.db", `ALTER TABLE senders DROP COLUMN evidence;`, "1"},
}

// sql runs SQL in a database that no program has open.
func sql(t *testing.T, file, text string) string {
	t.Helper()
	out, err := exec.Command("sqlite3", file, text).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", file, err, out)
	}
	return strings.TrimSpace(string(out))
}

// The stores of an earlier schema are migrated while senders have begun uploads, and the services are killed again and
// again during the start: the uploads are resumed, and what was committed before stays.
func TestUpgradeOfTheStoresContinuesUploads(t *testing.T) {
	t.Parallel()
	f, random := up(t), seeded(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "before", "n1", "n2", "n3")
	var all []*sent
	link := linkOn(t, nil, "127.0.0.1:0", must(f.Operator())(t).Aggregator[0])
	link.Slow(0, 2<<20)
	ended := make(chan error, 3)
	for _, node := range []string{"before", "n1", "n2", "n3"} {
		s := newSent(t, f, random, id, node, 6<<20)
		all = append(all, s)
		credential := must(f.Export(id, "logs", node))(t)
		if node == "before" {
			must(f.Muster("submit", s.file, "--config", credential.File))(t)
			continue
		}
		credential.GRPCTargets = []string{link.Address}
		file := must(f.WriteCredential("credential-"+node, credential))(t)
		go func() {
			_, err := f.Muster("submit", s.file, "--config", file)
			ended <- err
		}()
	}
	until(t, "uploads are in progress", func() bool { return link.Passed(fleet.Up) > 4<<20 })
	must(f.Muster("down"))(t)
	versions := map[string]string{}
	for name, earlier := range earlierSchemas {
		file := filepath.Join(f.Home, earlier.file)
		versions[name] = sql(t, file, "SELECT version FROM schema_version")
		sql(t, file, earlier.sql+"UPDATE schema_version SET version = "+earlier.version)
	}

	over := make(chan struct{})
	kills := killDuringStart(f, random, over)
	err := f.Up()
	for again := 0; err != nil && again < 5; again++ {
		t.Logf("a start that was disturbed failed: %v", err)
		err = f.Up()
	}
	check(t, err)
	close(over)
	t.Logf("%d kills", <-kills)
	link.Slow(0, 0)
	for range 3 {
		check(t, <-ended)
	}
	wantCommittedOnce(t, f, id, all)
	wantSoundStore(t, f, int64(len(all))+1)
	must(f.Muster("down"))(t)
	for name, earlier := range earlierSchemas {
		if now := sql(t, filepath.Join(f.Home, earlier.file), "SELECT version FROM schema_version"); now != versions[name] {
			t.Errorf("the store of %s has version %s, not %s", name, now, versions[name])
		}
	}
	if bytes := sql(t, filepath.Join(f.Home, earlierSchemas["aggregator"].file), "SELECT result_bytes FROM runs"); bytes != fmt.Sprint(4*6<<20) {
		t.Errorf("the run has %s bytes of results", bytes)
	}
}

// killDuringStart kills services with a store, each at a random moment after it was started, and returns how often.
func killDuringStart(f *fleet.Fleet, random *rand.Rand, over <-chan struct{}) <-chan int {
	const (
		kills = 6
		start = 150 * time.Millisecond // of a service
	)
	total := make(chan int, 1)
	go func() {
		count, seen := 0, map[int]bool{}
		for {
			select {
			case <-over:
				total <- count
				return
			case <-time.After(time.Millisecond):
			}
			for _, process := range f.Processes() {
				hasStore := slices.Contains([]string{fleet.Aggregator, fleet.Status, fleet.Jobs}, process.Name)
				if !hasStore || seen[process.PID] || count == kills {
					continue
				}
				seen[process.PID] = true
				time.Sleep(time.Duration(random.Int63n(int64(start)))) // the random moment
				if process.Kill() {
					count++
				}
			}
		}
	}()
	return total
}
