package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestSubmitOfStdinCreatesTheStateFolder(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "p", "n1"))(t)
	command := f.Command(context.Background(), "submit", "-", "--file-name", "x.txt", "--config", credential.File)
	command.Env = append(command.Env, "MUSTER_HOME="+filepath.Join(t.TempDir(), "fresh"))
	command.Stdin = strings.NewReader("hello")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestSubmitOfAMissingFileNamesTheFile(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "p", "n1"))(t)
	_, err := f.Muster("submit", "nofile", "--config", credential.File)
	wantExit(t, err, 2, "FILE_NOT_FOUND", "on: file nofile", "Check the path")
	_, err = f.Muster("submit", f.Home, "--config", credential.File)
	wantExit(t, err, 2, "is not a regular file", "on: file "+f.Home)
}

func TestSubmitThatCannotDeliverPrintsTheReasonWhileItRetries(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "p", "n1"))(t)
	var config map[string]any
	check(t, json.Unmarshal(must(os.ReadFile(credential.File))(t), &config))
	config["grpc_targets"] = []string{"127.0.0.1:1"}
	unreachable := must(f.WriteFile("unreachable.json", string(must(json.Marshal(config))(t))))(t)
	check(t, os.Chmod(unreachable, 0o600))
	file := must(f.WriteFile("result.txt", "hello"))(t)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	command := f.Command(ctx, "submit", file, "--config", unreachable)
	stderr := must(command.StderrPipe())(t)
	check(t, command.Start())
	var printed strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), " next: ") {
			check(t, command.Process.Signal(syscall.SIGTERM))
			break
		}
	}
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
	}
	_ = command.Wait()
	for _, text := range []string{"The delivery is retried", "waiting: ", "127.0.0.1:1", "INTERRUPTED"} {
		if !strings.Contains(printed.String(), text) {
			t.Errorf("muster submit does not print %q:\n%s", text, &printed)
		}
	}
	if code := command.ProcessState.ExitCode(); code != 15 {
		t.Errorf("exit code %d, want 15", code)
	}
}

func TestRunWithAnUnusableStatusCertificateIsNotCreated(t *testing.T) {
	t.Parallel()
	f := up(t)
	pem := func(name string) (certificate, key string) {
		certificate, key = filepath.Join(f.Home, name+".crt"), filepath.Join(f.Home, name+".key")
		out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
			"-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN="+name, "-days", "1").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		check(t, os.Chmod(key, 0o600))
		return certificate, key
	}
	certificate, _ := pem("a")
	_, key := pem("b")
	_, err := f.Muster("run", "--plugin", "hostfacts", "--node", "n1", "--status-client-ca", certificate,
		"--status-cert", certificate, "--status-key", key)
	wantExit(t, err, 2, "--status-cert", "do not belong together")
	if runs := must(f.Muster("runs", "--json"))(t); strings.TrimSpace(runs) != "[]" {
		t.Errorf("a run was created: %s", runs)
	}
}

func TestArgumentsOfRunsAndJobs(t *testing.T) {
	t.Parallel()
	f := up(t)
	file := token(t, f, "--node", "n1")
	must(f.Muster("node", "join", "--token-file", file, "--dir", filepath.Join(t.TempDir(), "n1")))(t)
	nodes := must(f.WriteFile("nodes.txt", "# rack b\nn1\n\nn2\nn1\n"))(t)
	id := strings.TrimSpace(must(f.Muster("run", "--plugin", "hostfacts", "--node", "n2", "--nodes-file", nodes,
		"--timeout", "1d"))(t))

	t.Run("run plans each node of --node and --nodes-file once", func(t *testing.T) {
		var shown struct {
			Plugins []struct{ Node string }
		}
		check(t, json.Unmarshal(jsonOf(t, f.Command(context.Background(), "status", id, "--max-age", "1d 02h", "--json")), &shown))
		if len(shown.Plugins) != 2 {
			t.Errorf("planned %v, want n1 and n2", shown.Plugins)
		}
	})
	t.Run("delete requires the whole id", func(t *testing.T) {
		must(f.Muster("cancel", id[:8]))(t)
		_, err := f.Muster("delete", id[:8])
		wantExit(t, err, 2, "muster delete "+id)
		must(f.Muster("delete", id))(t)
	})
	t.Run("job accepts a prefix, and logs continue after a position", func(t *testing.T) {
		job := strings.TrimSpace(must(f.Muster("exec", "--nodes-file", nodes, "--ttl", "1s", "--detach", "--", "/bin/true"))(t))
		_, _ = f.Muster("job", "logs", "-f", job)
		if out := must(f.Muster("job", "show", job[:10]))(t); !strings.Contains(out, job) {
			t.Errorf("job show by prefix: %s", out)
		}
		_, err := f.Muster("job", "show", "nothex")
		wantExit(t, err, 2, "is not a job")
		var last struct{ Position int64 }
		lines := bytes.Split(bytes.TrimSpace(jsonOf(t, f.Command(context.Background(), "job", "logs", job[:10], "--json"))), []byte("\n"))
		check(t, json.Unmarshal(lines[len(lines)-1], &last))
		if last.Position == 0 {
			t.Errorf("the last record has no position: %s", lines[len(lines)-1])
		}
		after := jsonOf(t, f.Command(context.Background(), "job", "logs", job[:10], "--json", "--position", strconv.FormatInt(last.Position, 10)))
		if len(after) != 0 {
			t.Errorf("records after the last position: %s", after)
		}
	})
	t.Run("a definition with an unknown field is named with its line", func(t *testing.T) {
		definition := must(f.WriteFile("typo.yaml", execPlugin("p", "Job", "true")+"  comand: x\n  arg: y\n"))(t)
		_, err := f.Muster("run", "--plugin", "hostfacts", "-f", definition, "--node", "n1")
		wantExit(t, err, 67, "error: "+definition+":", "did you mean command?", "\n       "+definition+":", "did you mean args?")
	})
	t.Run("run warns of nodes for plugins that run once", func(t *testing.T) {
		definition := must(f.WriteFile("job.yaml", execPlugin("p", "Job", "true")))(t)
		var stderr bytes.Buffer
		command := f.Command(context.Background(), "run", "-f", definition, "-n", "n1")
		command.Stderr = &stderr
		if err := command.Run(); err != nil || !strings.Contains(stderr.String(), "--node has no effect") {
			t.Errorf("%v: %s", err, &stderr)
		}
	})
	t.Run("an operator who lists shared files learns of --all", func(t *testing.T) {
		_, err := f.Muster("shared", "list")
		wantExit(t, err, 1, "NOT_JOINED", "shared list --all")
		_, err = f.Muster("shared", "show", "--to", "n2", "--id", "x")
		wantExit(t, err, 1, "NOT_JOINED", "give both --from and --to")
		_, err = f.Muster("shared", "remove", "--id", "x")
		wantExit(t, err, 1, "NOT_JOINED", "give both --from and --to")
	})
	t.Run("a path through a file is a wrong path, not a faulty disk", func(t *testing.T) {
		_, err := f.Muster("token", "create", "--node", "n9", "-o", nodes+"/x/y")
		wantExit(t, err, 1, "Check the path")
	})
}

// jsonOf returns the data on stdout. The exit code tells the state of the run or job.
func jsonOf(t *testing.T, command *exec.Cmd) []byte {
	t.Helper()
	var stdout bytes.Buffer
	command.Stdout = &stdout
	_ = command.Run()
	return stdout.Bytes()
}
