package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

func TestExecTellsThatANodeIsLost(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := attached(t, f, "n1")
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--deadline", "5s", "--detach", "--", "/bin/sh", "-c", "echo begun; exec sleep 600"))(t))
	until(t, "its output is shown", func() bool {
		out, _ := f.Muster("job", "logs", job)
		return out == "n1: begun\n"
	})
	n.agent.Kill()
	_, stderr, code := machine{fleet: f, home: f.Home}.muster(t, nil, "job", "logs", "-f", job)
	lost := strings.Index(stderr, "not attached any more while the command runs: n1; without a report, timed out at ")
	if code != 9 || lost < 0 || lost > strings.Index(stderr, "timed out: the command may still run; ") ||
		strings.Count(stderr, "timed out at ") != 1 || strings.Contains(stderr, "at the latest") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestExecPrintsAFailureWhenItHappens(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	attached(t, f, "n2")
	mark := filepath.Join(t.TempDir(), "mark") // of the node that runs the command first
	command := "test -e " + mark + " && exec sleep 600; touch " + mark + "; exit 3"
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1,n2", "--parallel", "1", "--detach", "--", "/bin/sh", "-c", command))(t))
	until(t, "the failure of the first node is printed while the second node runs", func() bool {
		_, stderr, _ := machine{fleet: f, home: f.Home}.muster(t, nil, "job", "logs", job)
		return strings.Contains(stderr, "n1 failed: exit code 3\n") || strings.Contains(stderr, "n2 failed: exit code 3\n")
	})
	must(f.Muster("job", "cancel", job))(t)
	_, stderr, _ := machine{fleet: f, home: f.Home}.muster(t, nil, "job", "logs", "-f", job)
	if strings.Count(stderr, "failed: exit code 3") != 1 {
		t.Errorf("stderr: %s", stderr)
	}
	if out := must(f.Muster("job", "list"))(t); !strings.Contains(out, "admin") || !strings.Contains(out, "FAILED") {
		t.Errorf("job list prints %s", out)
	}
}

func TestCancelOfUnknownIdentityFails(t *testing.T) {
	t.Parallel()
	f := up(t)
	_, err := f.Muster("job", "cancel", "--by", "nobody-here")
	wantExit(t, err, 64+int(codes.NotFound), "OPERATOR_NOT_FOUND", "nobody-here")
	must(f.Muster("job", "cancel", "--by", "admin"))(t)
	_, err = f.Muster("job", "cancel", "abc", "--by", "admin")
	wantExit(t, err, 2, "JOB and --by were given")
}

// The exec of a revoked operator ends, and names the way to end the command.
func TestExecOfRevokedOperatorNamesTheJob(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	context := filepath.Join(t.TempDir(), "bob")
	must(f.Muster("operator", "add", "bob", "-o", context))(t)
	end := make(chan string)
	go func() {
		_, stderr, _ := machine{fleet: f, home: f.Home}.muster(t, nil, "exec", "--node", "n1", "--context", context, "--", "/bin/sleep", "600")
		end <- stderr
	}()
	until(t, "the command runs", func() bool {
		out := must(f.Muster("job", "list"))(t)
		return strings.Contains(out, "bob")
	})
	must(f.Muster("operator", "revoke", "bob"))(t)
	if stderr := <-end; !strings.Contains(stderr, "The command may still run on its nodes") || !strings.Contains(stderr, "muster job cancel ") {
		t.Errorf("stderr: %s", stderr)
	}
	must(f.Muster("job", "cancel", "--by", "bob"))(t)
}

// A stopped agent is still attached, so the job waits for it.
func TestExecNamesNodesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	f := up(t)
	for _, name := range []string{"n1", "n2"} {
		n := join(t, f, name, openPolicy, nil, nil)
		n.attach(t)
		if name == "n2" {
			check(t, n.agent.Stop())
			t.Cleanup(func() { check(t, n.agent.Continue()) })
		}
	}
	out, stderr, code := execOn(t, f, "--all", "--deadline", "15s", "--", "/bin/echo", "here")
	if code == 0 || out != "n1: here\n" {
		t.Errorf("exit %d: %s", code, out)
	}
	if !strings.Contains(stderr, "attached, nothing reported yet: n2\n") || strings.Contains(stderr, "unreachable:") {
		t.Errorf("stderr: %s", stderr)
	}
}
