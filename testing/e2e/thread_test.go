package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// A minimal run: plan, gather on two nodes, deliver, archive, retrieve, verify.
func TestResultsReachVerifiedArchive(t *testing.T) {
	t.Parallel()
	f := up(t)
	const script = `echo "from $NODE_NAME" > "$RESULTS_DIR/out.txt"; echo "$RESULTS_DIR/out.txt" > "$RESULTS_DIR/done"`
	id := run(t, f, []string{execPlugin("hello", "DaemonSet", script)}, "n1", "n2")
	for _, node := range []string{"n1", "n2"} {
		credential := must(f.Export(id, "hello", node))(t)
		check(t, f.Agent(context.Background(), credential))
	}
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)

	files := archive(t, f, id)
	wantFile(t, files, "plugins/hello/results/n1/out.txt", "from n1\n")
	wantFile(t, files, "plugins/hello/results/n2/out.txt", "from n2\n")
	var manifest any
	if err := json.Unmarshal([]byte(files["meta/manifest.json"]), &manifest); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("from n1\n"))
	if !strings.Contains(files["meta/manifest.json"], hex.EncodeToString(digest[:])) {
		t.Errorf("the manifest does not name the SHA-256 of n1's file: %s", files["meta/manifest.json"])
	}
}

// The built-in modules on this machine: facts have to be real; without a journal there is a named error.
func TestBuiltInPluginsGatherFacts(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := must(f.CreateRun("--plugin", "hostfacts", "--plugin", "systemd-logs", "--node", "n1"))(t)
	for _, plugin := range []string{"hostfacts", "systemd-logs"} {
		credential := must(f.Export(id, plugin, "n1"))(t)
		_ = f.Agent(context.Background(), credential) // an error result is checked below
	}
	a := operator(t, f)
	a.awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	if facts := a.result(t, id, "hostfacts", "n1"); facts.Outcome != musterv1.Outcome_OUTCOME_GENUINE {
		t.Errorf("hostfacts: %v", facts)
	}
	logs := a.result(t, id, "systemd-logs", "n1")
	if logs.Outcome != musterv1.Outcome_OUTCOME_GENUINE && logs.Error == "" {
		t.Errorf("systemd-logs gave neither a journal nor a reason: %v", logs)
	}
	var found bool
	for name, text := range archive(t, f, id) {
		found = found || strings.HasPrefix(name, "plugins/hostfacts/results/n1/") && strings.Contains(text, "ansible_kernel")
	}
	if !found {
		t.Error("the archive holds no facts of n1")
	}
}
