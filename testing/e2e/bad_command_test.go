package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The command was signed before its signer was revoked, and has waited for a disconnected node.
func TestCommandOfRevokedOperatorIsRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	n1, n2 := attached(t, f, "n1"), attached(t, f, "n2")
	n1.agent.End()
	n1.awaitAttached(t, false)
	bob := must(f.WriteFile("bob.json", must(f.Muster("operator", "add", "bob"))(t)))(t)
	marker := filepath.Join(t.TempDir(), "marker")
	job := strings.TrimSpace(must(f.Muster("exec", "--context", bob, "--node", "n1", "--ttl", "10m", "--detach", "--",
		"/bin/sh", "-c", "echo ran > "+marker))(t))
	must(f.Muster("operator", "revoke", "bob", "--reason", "left"))(t)
	until(t, "attached nodes have received the revocation", func() bool {
		list, _ := os.ReadFile(filepath.Join(n2.folder(), "command-revocations"))
		return bytes.Contains(list, []byte("/user/bob"))
	})
	n1.attach(t)
	if final := awaitFinal(t, f, job, "n1"); final["outcome"] != "refused" || final["reason"] != "OPERATOR_REVOKED" {
		t.Errorf("the job ended as %v, want refused (OPERATOR_REVOKED)", final)
	}
	if fileExists(marker) {
		t.Error("the command ran")
	}
	if _, stderr, code := execOn(t, f, "--context", bob, "--node", "n1", "--", "/bin/echo", "again"); code == 0 || !strings.Contains(stderr, "revoked") {
		t.Errorf("a revoked operator submits: exit %d: %s", code, stderr)
	}
}

func TestJobsOfRevokedOperatorEndByOneCommand(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	bob := must(f.WriteFile("bob.json", must(f.Muster("operator", "add", "bob"))(t)))(t)
	sleep := func(arguments ...string) string {
		arguments = append(append([]string{"exec"}, arguments...), "--node", "n1", "--deadline", "10m", "--detach", "--", "/bin/sleep", "600")
		return strings.TrimSpace(must(f.Muster(arguments...))(t))
	}
	ours, first, second := sleep(), sleep("--context", bob), sleep("--context", bob)
	_, stderr, code := machine{fleet: f, home: f.Home}.muster(t, nil, "operator", "revoke", "bob")
	if code != 0 || !strings.Contains(stderr, "2 of the operator's jobs still run. Cancel them: muster job cancel --by bob\n") {
		t.Errorf("the revocation: exit %d: %s", code, stderr)
	}
	must(f.Muster("job", "cancel", "--by", "bob"))(t)
	for _, job := range []string{first, second} {
		if final := awaitFinal(t, f, job, "n1"); final["outcome"] != "cancelled" {
			t.Errorf("a job of bob ended as %v", final)
		}
	}
	var shown map[string]any
	check(t, f.JSON(&shown, "job", "show", ours, "--json"))
	if shown["state"] != "running" {
		t.Errorf("the job of another operator is %v", shown)
	}
}

func TestFloodOfOneNodeIsTruncatedAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	f := up(t)
	check(t, f.Configure("relay", map[string]string{"jobs.max_output": "1048576"}))
	attached(t, f, "n1")
	attached(t, f, "n2")
	flood := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--deadline", "10m", "--detach", "--",
		"/bin/sh", "-c", "while yes 0123456789abcdef | head -c 1000000; do sleep 0.05; done"))(t))
	until(t, "the flood is truncated", func() bool {
		out, _ := f.Muster("job", "logs", "--json", flood)
		for _, record := range records(t, out) {
			if record["event"] == "cut" && record["node"] == "n1" {
				return true
			}
		}
		return false
	})
	// Another node and the flooding node answer meanwhile.
	out, stderr, code := execOn(t, f, "--all", "--", "/bin/echo", "hello")
	if code != 0 || !strings.Contains(out, "n1: hello\n") || !strings.Contains(out, "n2: hello\n") {
		t.Errorf("beside a flood: exit %d: %s%s", code, out, stderr)
	}
	must(f.Muster("job", "cancel", flood))(t)
	if final := awaitFinal(t, f, flood, "n1"); final["outcome"] != "cancelled" {
		t.Errorf("the flood ended as %v", final)
	}
	var shown map[string]any
	check(t, f.JSON(&shown, "job", "show", flood))
	if kept, cut := shown["output_bytes"].(float64), shown["cut_bytes"].(float64); kept == 0 || kept > 1<<20 || cut < 1 {
		t.Errorf("%v bytes were stored, %v dropped", kept, cut)
	}
	if _, stderr, _ := (machine{fleet: f, home: f.Home}).muster(t, nil, "job", "logs", flood); !strings.Contains(stderr, "of output omitted") {
		t.Errorf("the truncation is not shown: %.400s", stderr)
	}
}

func TestCommandIsKilledWithItsProcessesAtDeadline(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	out, _, code := execOn(t, f, "--node", "n1", "--deadline", "2s", "--json", "--", "/bin/sh", "-c", "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000")
	if end := finals(t, out)["n1"]; code != 9 || end["outcome"] != "timed-out" {
		t.Errorf("exit %d: %v", code, end)
	}
	for _, record := range records(t, out) {
		if text, ok := record["data"].(string); ok && record["event"] == "stdout" {
			pid := must(strconv.Atoi(strings.TrimSpace(text)))(t)
			until(t, "the command's child has ended", func() bool { return !processRuns(pid) })
			return
		}
	}
	t.Errorf("the command printed nothing: %s", out)
}

// A stopped agent neither reads nor writes, while its connection remains open.
func TestSuspendedAgentIsSkippedUntilItResumes(t *testing.T) {
	t.Parallel()
	f := up(t)
	check(t, f.Configure("relay", map[string]string{"interval": "1s"}))
	n1 := attached(t, f, "n1")
	attached(t, f, "n2")
	check(t, n1.agent.Stop())
	n1.awaitAttached(t, false)
	out, _, code := execOn(t, f, "--node", "n1,n2", "--ttl", "1s", "--json", "--", "/bin/echo", "hello")
	if ends := finals(t, out); code != 9 || ends["n1"]["outcome"] != "unreachable" || ends["n2"]["outcome"] != "exited" {
		t.Errorf("exit %d: %v", code, ends)
	}
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--ttl", "10m", "--detach", "--", "/bin/echo", "at last"))(t))
	check(t, n1.agent.Continue())
	if final := awaitFinal(t, f, job, "n1"); final["outcome"] != "exited" {
		t.Errorf("the job ended as %v", final)
	}
}
