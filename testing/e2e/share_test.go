package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// sharedFile is a shared file in the output of commands.
type sharedFile struct {
	Source, Target, ID, State, Reason, Relay string
	Size                                     int64
	ExpireTime                               string `json:"expire_time"`
}

// fileOf writes a file of random bytes on a node.
func fileOf(t *testing.T, n *node, size int) (path string, content []byte) {
	t.Helper()
	content = make([]byte, size)
	_, _ = rand.Read(content)
	path = filepath.Join(n.home, "report.csv")
	check(t, os.WriteFile(path, content, 0o600))
	return path, content
}

// must runs a command on a node, which has to succeed.
func (n *node) must(t *testing.T, arguments ...string) string {
	t.Helper()
	out, stderr, code := n.muster(t, n.extra, arguments...)
	if code != 0 {
		t.Fatalf("%s: muster %s: exit %d: %s", n.name, strings.Join(arguments, " "), code, stderr)
	}
	return out
}

// outcome returns the outcome of report.csv from n1 for n2, as a node sees it.
func outcome(t *testing.T, n *node, peer ...string) (file sharedFile) {
	t.Helper()
	out, _, _ := n.muster(t, n.extra, append([]string{"shared", "show", "--id", "report.csv", "--json"}, peer...)...)
	_ = json.Unmarshal([]byte(out), &file)
	return file
}

func TestNodeSharesFileWithAnother(t *testing.T) {
	t.Parallel()
	f := up(t)
	n1, n2 := attached(t, f, "n1"), attached(t, f, "n2")
	path, content := fileOf(t, n1, 3_000_000)
	var shared sharedFile
	check(t, json.Unmarshal([]byte(n1.must(t, "share", path, "--to", "n2", "--wait", "60s", "--json")), &shared))
	if shared.State != "delivered" || shared.Relay != "root" || shared.Size != int64(len(content)) || shared.ExpireTime != "" {
		t.Errorf("shared: %+v", shared)
	}
	var list []sharedFile
	check(t, json.Unmarshal([]byte(n2.must(t, "shared", "list", "--json")), &list))
	if len(list) != 1 || list[0] != shared {
		t.Errorf("n2 sees %+v", list)
	}
	if table := n2.must(t, "shared", "list"); !strings.Contains(table, "never") || !strings.Contains(table, "report.csv") {
		t.Errorf("the table is %q", table)
	}
	to := filepath.Join(n2.home, "got.csv")
	n2.must(t, "shared", "get", "--from", "n1", "--id", "report.csv", "-o", to)
	if got := must(os.ReadFile(to))(t); !bytes.Equal(got, content) {
		t.Error("the bytes at n2 differ")
	}
	n2.must(t, "shared", "get", "--from", "n1", "--id", "report.csv", "-o", to)
	own := filepath.Join(n2.home, "own.csv")
	check(t, os.WriteFile(own, []byte("another content"), 0o600))
	if _, stderr, code := n2.muster(t, nil, "shared", "get", "--from", "n1", "--id", "report.csv", "-o", own); code != 1 || !strings.Contains(stderr, "FILE_EXISTS") {
		t.Errorf("a file with other content: exit %d: %s", code, stderr)
	}

	// The root relay is killed: it keeps what it has accepted.
	relay := must(f.Process(fleet.Relay))(t)
	relay.Kill()
	until(t, "the relay has it again", func() bool { return outcome(t, n2, "--from", "n1").State == "delivered" })

	n2.must(t, "shared", "remove", "--from", "n1", "--id", "report.csv")
	if state := outcome(t, n1, "--to", "n2").State; state != "removed" {
		t.Errorf("removed: %q", state)
	}
	n1.awaitAttached(t, true)
	for _, refused := range []struct{ says, arguments string }{
		{"INVALID_SHARE", "--to n2 --id ../report"},
		{"INVALID_SHARE", "--to n2 --id %2e%2e"},
		{"--ttl", "--to n2 --ttl soon"},
	} {
		_, stderr, code := n1.muster(t, nil, append([]string{"share", path}, strings.Fields(refused.arguments)...)...)
		if code != 2 || !strings.Contains(stderr, refused.says) {
			t.Errorf("share %s: exit %d: %s", refused.arguments, code, stderr)
		}
	}
	if _, stderr, code := n1.muster(t, nil, "share", t.TempDir(), "--to", "n2"); code == 0 || !strings.Contains(stderr, "NOT_A_FILE") {
		t.Errorf("share of a folder: exit %d: %s", code, stderr)
	}
}
