package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster.example/testing/fleet"
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

// Each change by an operator at the jobs service is in the log once. The jobs service is killed while the aggregator does not
// answer, and the aggregator before it has answered.
func TestAuditNamesChangesOfTheJobsService(t *testing.T) {
	t.Parallel()
	f := up(t)
	n1 := attached(t, f, "n1")
	n1.agent.End() // so that its deployment can be cancelled
	n1.awaitAttached(t, false)
	tryList := func(arguments ...string) (records []auditRecord, err error) {
		err = f.JSON(&records, append([]string{"audit", "--kind", "template,deployment,conformance,secret,workspace"}, arguments...)...)
		return records, err
	}
	list := func(arguments ...string) []auditRecord {
		t.Helper()
		return must(tryList(arguments...))(t)
	}
	image := "example/greet@sha256:" + strings.Repeat("1", 64)
	push := func(version string) {
		t.Helper()
		file := must(f.WriteFile("greet.yaml", greetType(version, image)))(t)
		until(t, "the type is stored", func() bool {
			_, err := f.Muster("type", "push", file)
			return err == nil
		})
	}
	isRecorded := func(version string) bool {
		records, err := tryList("--subject", "template/greet@"+version)
		return err == nil && len(records) == 1
	}
	push("1.0.0")
	push("1.0.0") // nothing changes
	must(f.Muster("template", "create", "-f", must(f.WriteFile("hi.yaml", hiTemplate))(t)))(t)
	must(f.Muster("secret", "put", "prod/db", "--file", must(f.WriteFile("value", "a secret value"))(t)))(t)
	must(f.Muster("secret", "delete", "prod/db"))(t)
	deployment := strings.TrimSpace(must(f.Muster("deploy", "hi", "--set", "name=Ada", "--node", "n1", "--skip-conformance"))(t))
	must(f.Muster("deployment", "cancel", deployment))(t)
	until(t, "the changes are recorded", func() bool { return len(list()) >= 6 })
	for subject, wants := range map[string][]string{
		"template/greet@1.0.0": {"template", "stored at 20", "Z: template type, document sha256:"},
		"template/hi@1.4.0":    {"template", "stored at 20", "Z: template, document sha256:"},
		deployment:             {"deployment", "cancelled at 20", "created at 20", "Z: hi@1.4.0, action deploy, for 1 node, without the check of conformance"},
		"secret/prod/db":       {"secret", "deleted at 20", "stored at 20", "Z: version 1"},
	} {
		records := list("--subject", subject)
		text := ""
		for _, record := range records {
			text += record.Text + "\n"
			if record.Kind != wants[0] || !strings.HasSuffix(record.Actor, "/user/admin") || record.Count != 1 {
				t.Errorf("the records of %s: %+v", subject, records)
			}
		}
		for _, want := range wants[1:] {
			if strings.Count(text, want) != 1 {
				t.Errorf("%q is not once in the records of %s: %s", want, subject, text)
			}
		}
		if strings.Contains(text, "a secret value") {
			t.Errorf("the records of %s show a secret: %s", subject, text)
		}
	}

	// The record waits on the disk of the killed jobs service.
	aggregator := must(f.Process(fleet.Aggregator))(t)
	check(t, aggregator.Stop())
	push("1.1.0")
	must(f.Process(fleet.Jobs))(t).Kill()
	push("1.2.0")
	if !aggregator.Kill() {
		t.Error("the aggregator had ended")
	}
	until(t, "the changes before the kills are recorded", func() bool { return isRecorded("1.1.0") && isRecorded("1.2.0") })
	must(f.Process(fleet.Jobs))(t).Kill()
	push("1.3.0")
	until(t, "a change after the kills is recorded", func() bool { return isRecorded("1.3.0") })
	if records := list(); len(records) != 9 {
		t.Errorf("the log has %d records of the jobs service, want 9: %+v", len(records), records)
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
