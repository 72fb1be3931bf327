package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// sidecar is an old sidecar: testing/sidecar, started as Kubernetes would start the real one.
type sidecar struct {
	folder   string // its results folder
	progress string // where a plugin posts its progress
	output   bytes.Buffer
	command  *exec.Cmd
	done     chan error
}

// sidecarProgram is testing/sidecar, built once for all tests.
var sidecarProgram string

func TestMain(m *testing.M) {
	end, err := fleet.KeepTemporaryFiles()
	if err == nil {
		sidecarProgram, err = buildSidecar()
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if end != nil {
		err = errors.Join(err, end())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildSidecar() (string, error) {
	program := filepath.Join(os.TempDir(), "sidecar")
	output, err := exec.Command("go", "build", "-o", program, "muster.example/testing/sidecar").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return program, nil
}

// startSidecar starts a sidecar for a Job (node "global") or for a node of a DaemonSet.
func startSidecar(t *testing.T, credential *fleet.Credential, node string, arguments ...string) *sidecar {
	t.Helper()
	s := &sidecar{folder: t.TempDir(), done: make(chan error, 1)}
	port := freePort(t)
	s.progress = "http://127.0.0.1:" + port + "/progress"
	kind := "single-node"
	if node == "global" {
		kind = "global"
	}
	s.command = exec.Command(sidecarProgram, append([]string{kind, "--level=trace", "-v=6", "--logtostderr"}, arguments...)...)
	s.command.Env = []string{"TMPDIR=" + os.TempDir(), "AGGREGATOR_URL=" + credential.AggregatorURL, "RESULT_TYPE=" + credential.Plugin,
		"NODE_NAME=" + node, "SONOBUOY_RESULTS_DIR=" + s.folder, "SONOBUOY_PROGRESS_PORT=" + port,
		"SONOBUOY_DONE_FILE_DELAY=0s", "CA_CERT=" + credential.CA, "CLIENT_CERT=" + credential.Certificate,
		"CLIENT_KEY=" + credential.Key}
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	check(t, s.command.Start())
	go func() { s.done <- s.command.Wait() }()
	t.Cleanup(func() {
		_ = s.command.Process.Kill()
		if t.Failed() {
			t.Logf("sidecar for %s: %s", node, s.output.String())
		}
	})
	return s
}

// finish writes the plugin's file and the done file.
func (s *sidecar) finish(t *testing.T, name, content string) {
	t.Helper()
	file := filepath.Join(s.folder, name)
	check(t, errors.Join(os.WriteFile(file, []byte(content), 0o600),
		os.WriteFile(filepath.Join(s.folder, "done"), []byte(file), 0o600)))
}

// wait returns how the sidecar ended.
func (s *sidecar) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.done:
		s.done <- err
		return err
	case <-time.After(2 * soon):
		t.Fatalf("the sidecar did not end: %s", s.output.String())
		return nil
	}
}

// report posts a plugin's progress to the sidecar's relay and returns the answer.
func (s *sidecar) report(t *testing.T, body string) (code int, text string) {
	t.Helper()
	until(t, "the sidecar's progress port is open", func() bool {
		response, err := http.Post(s.progress, "", strings.NewReader(body))
		if err != nil {
			return false
		}
		defer response.Body.Close()
		answer := must(io.ReadAll(response.Body))(t)
		code, text = response.StatusCode, string(answer)
		return true
	})
	return code, text
}

func TestOldSidecarDeliversGlobalAndByNodeResultsWithProgress(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("e2e", "Job"), sidecarPlugin("logs", "DaemonSet")}, "n1")
	a := operator(t, f)
	for plugin, node := range map[string]string{"e2e": "global", "logs": "n1"} {
		s := startSidecar(t, must(f.Export(id, plugin, node))(t), node)
		if code, text := s.report(t, `{"msg":"half way","total":10,"completed":5,"failures":["a"]}`); code != 200 {
			t.Errorf("%s: progress was answered %d %s", plugin, code, text)
		}
		until(t, "the status shows the progress", func() bool {
			status, _ := f.Muster("status", id, "--json") // the exit code says that the run is still running
			return strings.Contains(status, "half way")
		})
		s.finish(t, "report.txt", "result of "+plugin)
		check(t, s.wait(t))
		got := a.result(t, id, plugin, node)
		if got.Outcome != musterv1.Outcome_OUTCOME_GENUINE || got.Delivery.GetVouchedBy() == "" {
			t.Errorf("%s: %v", plugin, got)
		}
	}
	a.awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	files := archive(t, f, id)
	wantFile(t, files, "plugins/e2e/results/global/report.txt", "result of e2e")
	wantFile(t, files, "plugins/logs/results/n1/report.txt", "result of logs")
}

// An empty file is a result.
func TestOldSidecarDeliversEmptyFile(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("e2e", "Job")})
	s := startSidecar(t, must(f.Export(id, "e2e", "global"))(t), "global")
	s.finish(t, "empty", "")
	check(t, s.wait(t))
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	wantFile(t, archive(t, f, id), "plugins/e2e/results/global/empty", "")
}

// A restarted sidecar delivers the same result successfully; one with another result gets 409, which it treats as
// success.
func TestOldSidecarMayDeliverTwice(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	credential := must(f.Export(id, "logs", "n1"))(t)
	for _, content := range []string{"first", "first", "second"} {
		s := startSidecar(t, credential, "n1")
		s.finish(t, "r", content)
		check(t, s.wait(t))
	}
	if got := operator(t, f).result(t, id, "logs", "n1"); got.Size != int64(len("first")) || got.Generation != 1 {
		t.Errorf("the first result was replaced: %v", got)
	}
}

// A sidecar of a DaemonSet never ends unless it is killed: the run must not depend on it.
func TestOldSidecarThatNeverEndsDoesNotBlockRun(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	s := startSidecar(t, must(f.Export(id, "logs", "n1"))(t), "n1", "--sleep=-1")
	s.finish(t, "r", "x")
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	must(f.Muster("delete", id))(t)
	_, err := f.Run(context.Background(), "retrieve", id, "-o", filepath.Join(f.Home, "gone"))
	if err == nil {
		t.Error("a deleted run's archive was retrieved")
	}
}
