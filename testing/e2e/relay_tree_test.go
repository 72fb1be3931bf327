package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// A root relay, a relay r1 with a child r2 behind it, a node n1 that reaches only a proxy beside r2, and a node n2
// attached to a relay r3 of another branch. r1, in the middle, is killed during transfers.
func TestRelayTreeAcrossSeparateNetworksWorks(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	h1 := newHost(t, fleet.NewHost)
	h2 := newHost(t, h1.NewHostBehind)
	proxy := newHost(t, h2.NewHostBehind)
	hn1 := newHost(t, proxy.NewHostBehind)
	h3 := newHost(t, fleet.NewHost)
	hn2 := newHost(t, h3.NewHostBehind)
	f := up(t, "--bind", "0.0.0.0", "--advertise", h1.Address+","+h3.Address)
	r1 := newRelay(t, f, "r1", h1, at(h2.Address))
	r2 := newRelay(t, f, "r2", h2, at(proxy.Address), "--parent", "r1")
	newRelay(t, f, "r3", h3, at(hn2.Address))
	proxyOn(t, proxy)
	policy := openPolicy + "  - argv: [/bin/sh, -c, \"*\"]\n    actions: [collect]\n"
	n1 := join(t, f, "n1", policy, hn1, []string{fmt.Sprintf("https_proxy=http://%s:%d", hn1.Address, proxyPort)}, "--parent", "r2")
	n2 := join(t, f, "n2", policy, hn2, nil, "--parent", "r3")
	n1.attach(t)
	n2.attach(t)
	if byName := nodes(t, f); byName["n1"]["relay"] != "r2" || byName["r2"]["relay"] != "r1" || byName["n2"]["relay"] != "r3" {
		t.Fatalf("wrong topology: %v", byName)
	}

	// The output of a command is complete and in order, although the relay in the middle is killed twice.
	job := strings.TrimSpace(must(f.Muster("exec", "--all", "--deadline", "5m", "--detach", "--", "/bin/sh", "-c",
		"i=0; while [ $i -lt 600 ]; do echo line $i; i=$((i+1)); sleep 0.02; done"))(t))
	for range 2 {
		until(t, "n1 prints", func() bool {
			out, _ := f.Muster("job", "logs", "--node", "n1", job)
			return strings.Contains(out, "n1: line ")
		})
		r1.killAndStart(t)
		n1.awaitAttached(t, true)
	}
	wantLines(t, must(f.Muster("job", "logs", "-f", job))(t), 600, "n1", "n2")

	// A run starts jobs on the nodes. The relay in the middle is down when n1 has its result: r2 spools the result, n1
	// keeps its copy, and in the end it is committed with the node's own signature.
	begun, goOn := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "go-on")
	id := run(t, f, []string{execPlugin("facts", "DaemonSet", fmt.Sprintf(
		`touch %s; until [ -e %s ]; do sleep 0.1; done; uname -a > "$RESULTS_DIR/f"; echo "$RESULTS_DIR/f" > "$RESULTS_DIR/done"`, begun, goOn))}, "n1", "n2")
	until(t, "the plugin is running", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	r1.program.End()
	check(t, os.WriteFile(goOn, nil, 0o600))
	until(t, "r2 has spooled the result", func() bool {
		kept, _ := filepath.Glob(filepath.Join(r2.home, "spool", "*"))
		return len(kept) > 0
	})
	r1.start(t)
	if out, err := f.Muster("wait", id); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	a := operator(t, f)
	for _, name := range []string{"n1", "n2"} {
		if delivery := a.result(t, id, "facts", name).GetDelivery(); !delivery.GetSigned() || !strings.HasSuffix(delivery.GetUri(), "/node/"+name) {
			t.Errorf("%s: delivered by %v", name, delivery)
		}
	}

	// A file for a node of the other branch, through the root relay; the relay in the middle is killed during the
	// transfer.
	content := strings.Repeat("a line of the report\n", 200_000)
	report := filepath.Join(t.TempDir(), "report")
	check(t, os.WriteFile(report, []byte(content), 0o600))
	if _, stderr, code := n1.muster(t, n1.extra, "share", report, "--to", "n2", "--wait", "1s"); code != 0 {
		t.Fatalf("share: exit %d: %s", code, stderr)
	}
	r1.killAndStart(t)
	got := filepath.Join(t.TempDir(), "got")
	until(t, "n2 has the file", func() bool {
		_, _, code := n2.muster(t, nil, "shared", "get", "--from", "n1", "--id", "report", "-o", got)
		return code == 0
	})
	if bytes := must(os.ReadFile(got))(t); string(bytes) != content {
		t.Errorf("n2 got %d bytes that are not those of n1", len(bytes))
	}
	n1.awaitAttached(t, true)

	// A revoked node is detached from every relay immediately.
	must(f.Muster("node", "revoke", "n1"))(t)
	n1.awaitAttached(t, false)
	out, _, _ := execOn(t, f, "--node", "n1", "--json", "--ttl", "1s", "--", "/bin/echo", "never")
	if ends := finals(t, out); ends["n1"]["outcome"] != "unknown" {
		t.Errorf("a revoked node: %v", ends)
	}
}
