package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
	"muster.example/testing/fleet"
)

func TestRetentionDeletesRunsBeyondTheNumber(t *testing.T) {
	t.Parallel()
	f := up(t, "--keep", "runs=2")
	finish := func() string {
		t.Helper()
		id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
		credential := must(f.Export(id, "p", "n1"))(t)
		must(put(t, credential, "n1", "result of "+id))(t)
		_, err := f.Muster("wait", id)
		check(t, err)
		return id
	}
	pinned := finish()
	must(f.Muster("pin", pinned))(t)
	first := finish()
	var runs []string
	for range 2 {
		runs = append(runs, finish())
	}
	check(t, fleet.Until(time.Minute, "the first run is deleted", func() bool {
		_, err := f.Muster("status", first)
		return err != nil
	}))
	for _, id := range append(runs, pinned) {
		must(f.Muster("status", id))(t)
	}
	var records []auditRecord
	check(t, f.JSON(&records, "audit", "--json", "--kind", "run", "--run", first))
	if records[0].Text != "deleted by retention: runs=2" || !strings.Contains(records[0].Actor, "/service/aggregator/") {
		t.Errorf("the audit log says %+v", records[0])
	}

	var preview struct {
		Keep        string
		Runs        []struct{ Run, Rule string }
		KeptRuns    int64 `json:"kept_runs"`
		PinnedRuns  int64 `json:"pinned_runs"`
		ExpiredSize int64 `json:"expired_size"`
	}
	check(t, f.JSON(&preview, "retention", "--json", "--keep", "runs=1"))
	if len(preview.Runs) != 1 || preview.Runs[0].Run != runs[0] || preview.Runs[0].Rule != "runs=1" || preview.KeptRuns != 1 || preview.PinnedRuns != 1 ||
		preview.ExpiredSize == 0 {
		t.Errorf("the dry run lists %+v", preview)
	}
	check(t, f.JSON(&preview, "retention", "--json"))
	if preview.Keep != "runs=2" {
		t.Errorf("the configured rules are %q", preview.Keep)
	}
	must(f.Muster("unpin", pinned))(t)
	check(t, fleet.Until(time.Minute, "the run that was pinned is deleted", func() bool {
		_, err := f.Muster("status", pinned)
		return err != nil
	}))
	_, err := f.Muster("up", "--keep", "runs=3")
	if err == nil || !strings.Contains(err.Error(), "other rules of retention") {
		t.Errorf("other rules for running services: %v", err)
	}
	must(f.Muster("up", "--keep", "runs=2"))(t)

	operator := must(f.Operator())(t)
	client := must(operator.HTTP())(t)
	answer := must(client.Get(operator.Gateway[0] + "/api/v1/retention?rules.runs=1"))(t)
	defer answer.Body.Close()
	var rest struct{ Runs []struct{ Run string } }
	check(t, json.NewDecoder(answer.Body).Decode(&rest))
	if answer.StatusCode != http.StatusOK || len(rest.Runs) != 1 || rest.Runs[0].Run != runs[0] {
		t.Errorf("GET /api/v1/retention answers %d %+v", answer.StatusCode, rest)
	}
}

// After retention deleted a run with its own status listener, which is closed, the credentials file of the run is not
// used any more.
func TestStatusOfARunThatRetentionDeletedIsNotFound(t *testing.T) {
	t.Parallel()
	f := up(t, "--keep", "runs=1")
	files := makeCertificates(t)
	first := must(f.CreateRun("--plugin", "hostfacts", "--node", "n1", "--status-client-ca", files("ca.pem")))(t)
	file := f.CredentialsFile(first)
	must(os.Stat(file))(t)
	must(f.Muster("cancel", first))(t)
	second := must(f.CreateRun("--plugin", "hostfacts", "--node", "n1"))(t)
	must(f.Muster("cancel", second))(t)
	until(t, "the run is deleted", func() bool {
		_, err := f.Muster("results", first)
		return err != nil
	})
	_, err := f.Muster("status", first)
	wantExit(t, err, 64+int(codes.NotFound), "RUN_NOT_FOUND")
	if _, err := os.Stat(file); err == nil {
		t.Error("the credentials file is left")
	}
	_, err = f.Muster("wait", first)
	wantExit(t, err, 64+int(codes.NotFound), "RUN_NOT_FOUND")
}

func TestPinIsShown(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := must(f.CreateRun("--plugin", "hostfacts", "--node", "n1"))(t)
	must(f.Muster("pin", id))(t)
	if out := must(f.Muster("runs"))(t); !strings.Contains(out, "pinned") {
		t.Errorf("runs prints %s", out)
	}
	if out, _ := f.Muster("status", id); !strings.Contains(out, "planned (pinned)") { // its exit code is the state of the run
		t.Errorf("status prints %s", out)
	}
	_, stderr, _ := machine{fleet: f, home: f.Home}.muster(t, nil, "unpin", id)
	if !strings.Contains(stderr, "is no longer pinned") {
		t.Errorf("unpin prints %s", stderr)
	}
}

// twoFreePorts returns a range of two ports that are free now.
func twoFreePorts(t *testing.T) string {
	t.Helper()
	for range 100 {
		first, err := strconv.Atoi(freePort(t))
		check(t, err)
		if next, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+1)); err == nil {
			next.Close()
			return fmt.Sprintf("%d-%d", first, first+1)
		}
	}
	t.Fatal("no two free ports")
	return ""
}

func TestRunsBeyondThePortsFollowEachOther(t *testing.T) {
	t.Parallel()
	f := up(t, "--legacy-ports", twoFreePorts(t))
	for range 5 {
		id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
		credential := must(f.Export(id, "p", "n1"))(t)
		must(put(t, credential, "n1", "x"))(t)
		_, err := f.Muster("wait", id)
		check(t, err)
	}
	// Live runs hold both ports: JSON needs no listener, and the fault names the runs.
	first := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	must(f.Export(first, "p", "n1"))(t)
	must(f.Export(run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1"), "p", "n1"))(t)
	third := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	out := must(f.Muster("credentials", "export", third, "--plugin", "p", "--node", "n1"))(t)
	if !strings.Contains(out, "grpc_targets") {
		t.Errorf("the export prints %s", out)
	}
	_, err := f.Muster("credentials", "export", third, "--plugin", "p", "--node", "n1", "--format", "env")
	if err == nil || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), "--legacy-ports") {
		t.Errorf("the export for a legacy sidecar fails with: %v", err)
	}
}

func TestDownAnswersACallThatWaitsForAListener(t *testing.T) {
	t.Parallel()
	f := up(t, "--legacy-ports", twoFreePorts(t))
	for range 2 {
		must(f.Export(run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1"), "p", "n1"))(t)
	}
	third := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	waiting := make(chan error, 1)
	runs, request := operator(t, f).runs, &musterv1.IssueCredentialRequest{Run: third, Plugin: "p", Node: "n1", CsrPem: csr(t)}
	go func() {
		_, err := runs.IssueCredential(context.Background(), request)
		waiting <- err
	}()
	until(t, "the call waits", func() bool {
		text, err := metrics(f, "aggregator")
		return err == nil && strings.Contains(text, "\nmuster_listener_waits 1\n")
	})
	must(f.Muster("down"))(t)
	wantError(t, <-waiting, codes.Unavailable, reasons.AggregatorStopping)
}
