package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

type auditRecord struct {
	Sequence          int64
	Time, Kind, Actor string
	VouchedBy         string `json:"vouched_by"`
	Run, Plugin, Node string
	Subject           string
	Text              string
	Count             int64
	LastTime          string `json:"last_time"`
}

func TestAuditListsWhatHappenedWithFilters(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "p", "n1"))(t)
	must(put(t, credential, "n1", "first"))(t)
	must(f.Muster("operator", "add", "ann"))(t)
	must(f.Muster("cancel", id))(t)
	file := token(t, f, "--node", "n1")
	must(f.Muster("node", "join", "--token-file", file, "--dir", filepath.Join(t.TempDir(), "n1")))(t)
	list := func(arguments ...string) []auditRecord {
		t.Helper()
		var records []auditRecord
		check(t, f.JSON(&records, append([]string{"audit", "--json"}, arguments...)...))
		return records
	}
	all := list()
	if len(all) == 0 || all[0].Sequence <= all[len(all)-1].Sequence || all[0].Time == "" || all[0].Count < 1 {
		t.Fatalf("the records are not listed newest first: %+v", all)
	}
	for _, record := range list("--kind", "credential") {
		if record.Kind != "credential" {
			t.Errorf("--kind credential lists %+v", record)
		}
	}
	of := list("--run", id[:8], "--kind", "run")
	if len(of) == 0 {
		t.Error("no record of the run")
	}
	for _, record := range of {
		if record.Run != id {
			t.Errorf("--run lists %+v", record)
		}
	}
	byAdmin := list("--actor", "admin")
	if len(byAdmin) == 0 {
		t.Error("no record of the operator")
	}
	for _, record := range byAdmin {
		if !strings.HasSuffix(record.Actor, "/user/admin") {
			t.Errorf("--actor admin lists %+v", record)
		}
	}
	if limited := list("--limit", "1"); len(limited) != 1 || limited[0].Sequence != all[0].Sequence {
		t.Errorf("--limit 1 lists %+v, want the newest", limited)
	}
	if since := list("--since", "1d"); len(since) != len(all) {
		t.Errorf("--since 1d lists %d of %d records", len(since), len(all))
	}
	if since := list("--since", "2999-01-01"); len(since) != 0 {
		t.Errorf("records of the future: %+v", since)
	}
	if out := must(f.Muster("audit"))(t); !strings.HasPrefix(out, "TIME") || !strings.Contains(out, "user/admin") {
		t.Errorf("muster audit prints %s", out)
	}
	for _, wrong := range [][]string{{"--kind", "nonsense"}, {"--since", "yesterday"}, {"--run", "nothex"}, {"--limit", "0"}} {
		_, err := f.Muster(append([]string{"audit"}, wrong...)...)
		wantExit(t, err, 2)
	}
	_, err := f.Muster("audit", "--actor", "node/../x")
	if err == nil && len(list("--actor", "node/../x")) != 0 {
		t.Error("an actor that does not exist has records")
	}
}

// A command, a completed run, and the subject of credentials and revocations are in the log.
func TestAuditNamesJobsSubjectsAndCompleteRuns(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	list := func(arguments ...string) (records []auditRecord) {
		t.Helper()
		check(t, f.JSON(&records, append([]string{"audit", "--json"}, arguments...)...))
		return records
	}
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--detach", "--", "/bin/sleep", "600"))(t))
	must(f.Muster("job", "cancel", job))(t)
	until(t, "the job is recorded", func() bool { return len(list("--kind", "job")) == 2 })
	records := list("--subject", job)
	if len(records) != 2 || !strings.HasPrefix(records[0].Text, "cancelled at 20") ||
		!strings.HasPrefix(records[1].Text, "submitted at 20") ||
		!strings.HasSuffix(records[1].Text, "Z for 1 node: exec /bin/sleep 600") ||
		!strings.HasSuffix(records[1].Actor, "/user/admin") {
		t.Errorf("the records of the job: %+v", records)
	}
	if out := must(f.Muster("audit", "--kind", "job"))(t); !strings.Contains(out, "job "+job) {
		t.Errorf("muster audit prints %s", out)
	}

	must(f.Muster("operator", "add", "bob", "-o", filepath.Join(t.TempDir(), "bob")))(t)
	must(f.Muster("operator", "revoke", "bob", "--reason", "left"))(t)
	records = list("--subject", "bob")
	if len(records) != 2 || records[0].Text != "revoked: left" || records[1].Kind != "credential" || !strings.HasSuffix(records[0].Subject, "/user/bob") {
		t.Errorf("the records of bob: %+v", records)
	}

	must(f.Muster("node", "label", "n1", "rack=b1"))(t)
	records = list("--subject", "node/n1")
	if len(records) != 2 || records[0].Text != "labels changed" || !strings.HasPrefix(records[1].Text, "joined with token ") {
		t.Errorf("the records of node n1: %+v", records)
	}

	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	must(put(t, must(f.Export(id, "p", "n1"))(t), "n1", "x"))(t)
	must(f.Muster("wait", id))(t)
	records = list("--run", id, "--kind", "run")
	if !strings.HasPrefix(records[0].Text, "complete: 1 of 1 results genuine; SHA-256 of the archive: ") ||
		!strings.Contains(records[0].Actor, "/service/aggregator/") {
		t.Errorf("the records of the run: %+v", records)
	}
}

func TestAuditFollowsTheLog(t *testing.T) {
	t.Parallel()
	f := up(t)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	command := f.Command(ctx, "audit", "--follow", "--json", "--kind", "run", "--limit", "1")
	stdout := must(command.StdoutPipe())(t)
	first := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	check(t, command.Start())
	lines := bufio.NewScanner(stdout)
	next := func() (record auditRecord) {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the command ended")
		}
		check(t, json.Unmarshal(lines.Bytes(), &record))
		return record
	}
	if record := next(); record.Run != first {
		t.Errorf("begins with %+v, want run %s", record, first)
	}
	second := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	if record := next(); record.Run != second {
		t.Errorf("continues with %+v, want run %s", record, second)
	}
	check(t, command.Process.Signal(syscall.SIGINT))
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}
