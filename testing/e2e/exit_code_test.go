package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// inBackground starts a command of the CLI.
func inBackground(t *testing.T, f *fleet.Fleet, arguments ...string) (command *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
	t.Cleanup(cancel)
	command, stdout, stderr = f.Command(ctx, arguments...), new(bytes.Buffer), new(bytes.Buffer)
	command.Stdout, command.Stderr = stdout, stderr
	check(t, command.Start())
	return command, stdout, stderr
}

// interrupt sends the signal once the program handles it, and returns the exit code.
func interrupt(t *testing.T, command *exec.Cmd, signal syscall.Signal) int {
	t.Helper()
	until(t, "the program waits for the signal", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
		if err != nil {
			return false
		}
		_, after, _ := strings.Cut(string(text), "SigBlk:") // one of its threads handles the signals that the others block
		var blocked uint64
		_, err = fmt.Sscanf(after, "%x", &blocked)
		return err == nil && blocked&(1<<(signal-1)) != 0
	})
	check(t, command.Process.Signal(signal))
	_ = command.Wait()
	return command.ProcessState.ExitCode()
}

// Exit codes for outcomes of an awaited run.
func TestExitCodesOfAwaitedRun(t *testing.T) {
	t.Parallel()
	f := up(t)
	a := operator(t, f)
	good := execPlugin("p", "DaemonSet", `echo x > "$RESULTS_DIR/x"; echo "$RESULTS_DIR/x" > "$RESULTS_DIR/done"`)
	deliver := func(t *testing.T, id string, code int) {
		t.Helper()
		wantExit(t, f.Agent(context.Background(), must(f.Export(id, "p", "n1"))(t)), code)
	}
	for _, c := range []struct {
		name string
		code int
		plan string
		end  func(t *testing.T, id string)
	}{
		{"every result is committed", 0, good, func(t *testing.T, id string) { deliver(t, id, 0) }},
		{"some are errors", 3, execPlugin("p", "DaemonSet", "exit 1"), func(t *testing.T, id string) { deliver(t, id, 10) }},
		{"cancelled", 5, good, func(t *testing.T, id string) { must(f.Muster("cancel", id))(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := must(f.WriteFile("plan.yaml", c.plan))(t)
			waiting, stdout, stderr := inBackground(t, f, "run", "-f", file, "--node", "n1", "--title", c.name, "--wait")
			var id string
			until(t, "the run is planned", func() bool {
				var runs []struct{ ID, Title string }
				check(t, f.JSON(&runs, "runs", "--limit", "1"))
				if len(runs) == 0 || runs[0].Title != c.name {
					return false
				}
				id = runs[0].ID
				return true
			})
			c.end(t, id)
			_ = waiting.Wait()
			if code := waiting.ProcessState.ExitCode(); code != c.code || stdout.String() != id+"\n" {
				t.Errorf("muster run --wait: exit code %d, stdout %q; want %d and the id alone; %s", code, stdout, c.code, stderr)
			}
			_, err := f.Muster("status", id, "--watch")
			wantExit(t, err, c.code)
		})
	}
	t.Run("some are late", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		late := must(a.runs.CreateRun(ctx, &musterv1.CreateRunRequest{Plugins: []string{good}, Nodes: []string{"n1"},
			Timeout: durationpb.New(time.Second), SealGrace: durationpb.New(0)}))(t)
		_, err := f.Muster("status", late.Id, "--watch")
		wantExit(t, err, 6)
	})
	t.Run("interrupted", func(t *testing.T) {
		id := run(t, f, []string{good}, "n1")
		watching, _, stderr := inBackground(t, f, "status", id, "--watch")
		if code := interrupt(t, watching, syscall.SIGINT); code != 130 {
			t.Errorf("exit code %d, want 130; %s", code, stderr)
		}
	})
}

// 64 + the gRPC code of the answer.
func TestExitCodesOfAnswers(t *testing.T) {
	t.Parallel()
	f := up(t)
	context := map[string]any{}
	check(t, json.Unmarshal(must(os.ReadFile(filepath.Join(f.Home, "context.json")))(t), &context))
	context["aggregator_targets"] = []string{"127.0.0.1:" + freePort(t)}
	text := must(json.Marshal(context))(t)
	away := must(f.WriteFile("away.json", string(text)))(t)
	_, err := f.Muster("runs", "--context", away)
	wantExit(t, err, 64+14, "127.0.0.1:")

	second := must(f.WriteFile("second.json", must(f.Muster("operator", "add", "second"))(t)))(t)
	must(f.Muster("operator", "revoke", "second"))(t)
	_, err = f.Muster("runs", "--context", second)
	wantExit(t, err, 64+7, "(REVOKED)", "\n next: ")

	id := run(t, f, []string{sidecarPlugin("p", "Job")})
	_, err = f.Muster("retrieve", id, "-o", filepath.Join(f.Home, "x"))
	wantExit(t, err, 64+9, "not complete", "muster status "+id+" --watch")
	_, err = f.Muster("delete", id)
	wantExit(t, err, 64+9, "Cancel the run")
}

// Exit codes on which scripts on a node, or Kubernetes, rely.
func TestExitCodesOfDeliveries(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1", "n2", "n3")
	cancelled := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	file := must(f.WriteFile("result", "the result"))(t)
	other := must(f.WriteFile("other", "another result"))(t)
	var configs int
	// config writes a credential with changes.
	config := func(run, node string, change func(*fleet.Credential)) string {
		t.Helper()
		configs++
		credential := must(f.Export(run, "p", node))(t)
		credential.StateDir = filepath.Join(f.Home, "state")
		if change != nil {
			change(credential)
		}
		return must(f.WriteCredential(fmt.Sprintf("config-%d.json", configs), credential))(t)
	}
	away := func(c *fleet.Credential) { c.GRPCTargets, c.AggregatorURL = []string{"127.0.0.1:" + freePort(t)}, "" }
	ofCancelled := config(cancelled, "n1", nil)
	must(f.Muster("cancel", cancelled))(t)
	for _, c := range []struct {
		name      string
		code      int
		config    string
		arguments []string
		says      string
	}{
		{"committed", 0, config(id, "n1", nil), []string{file}, ""},
		{"the same again", 0, config(id, "n1", nil), []string{file}, ""},
		{"different content", 12, config(id, "n1", nil), []string{other}, "is committed; this one was not stored"},
		{"a delivered error", 10, config(id, "n2", nil), []string{"--error", "there is no journal"}, "there is no journal"},
		{"for another node", 11, config(id, "n1", func(c *fleet.Credential) { c.Node = "n2" }), []string{file}, ""},
		{"the run was cancelled", 13, ofCancelled, []string{file}, "cancelled"},
		{"a missing file", 2, config(id, "n3", nil), []string{file + "-not"}, "result-not"},
		{"no configuration", 2, file + "-not", []string{file}, "result-not"},
		{"a typing error", 2, must(f.WriteFile("typo.json", `{"agregator_url": "https://127.0.0.1:1"}`))(t), []string{file},
			"agregator_url"},
		{"neither file nor error", 2, config(id, "n3", nil), nil, "--help"},
		{"too late", 14, config(id, "n3", func(c *fleet.Credential) {
			away(c)
			c.Deadline = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
		}), []string{file}, "in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := f.Muster(append([]string{"submit", "--config", c.config}, c.arguments...)...)
			wantExit(t, err, c.code, c.says)
			if out != "" {
				t.Errorf("stdout holds %q", out)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		path := config(id, "n3", away)
		command, _, stderr := inBackground(t, f, "submit", file, "--config", path)
		if code := interrupt(t, command, syscall.SIGTERM); code != 15 || !strings.Contains(stderr.String(), "Start again") {
			t.Errorf("exit code %d, want 15; %s", code, stderr)
		}
	})
	t.Run("another process delivers already", func(t *testing.T) {
		locks := must(filepath.Glob(filepath.Join(f.Home, "state", "*.lock")))(t)
		for _, lock := range locks {
			held := must(os.Open(lock))(t)
			defer held.Close()
			check(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
		}
		_, err := f.Muster("submit", file, "--config", config(id, "n3", nil))
		wantExit(t, err, 1, "another process")
	})
}
