package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// joinRelay joins a new machine as a relay and returns its folder.
func joinRelay(t *testing.T, f *fleet.Fleet, name string, arguments ...string) string {
	t.Helper()
	file := token(t, f, append([]string{"--relay", name}, arguments...)...)
	folder := filepath.Join(t.TempDir(), name)
	if _, stderr, code := newMachine(t, f).muster(t, nil, "relay", "join", "--token-file", file, "--dir", folder,
		"--advertise", name+".example:7445,10.9.8.7:7445", "--join-advertise", name+".example:7446"); code != 0 {
		t.Fatalf("relay join: exit %d: %s", code, stderr)
	}
	return folder
}

// member reads the membership file beside the identity.
func member(t *testing.T, file string) map[string]any {
	t.Helper()
	var content map[string]any
	check(t, json.Unmarshal(must(os.ReadFile(file))(t), &content))
	return content
}

func TestRelaysJoinAndNodesGetParents(t *testing.T) {
	t.Parallel()
	f := up(t)
	r1 := joinRelay(t, f, "r1")
	for file, mode := range map[string]os.FileMode{
		"relay.json": 0o644, "command-ca.pem": 0o644, "tls/key.pem": 0o600, "tls/cert.pem": 0o644, "tls/ca.pem": 0o644,
	} {
		if info := must(os.Stat(filepath.Join(r1, file)))(t); info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v", file, info.Mode())
		}
	}
	if relay := member(t, filepath.Join(r1, "relay.json")); relay["relay"] != "r1" {
		t.Errorf("relay.json has %v", relay)
	}
	joinRelay(t, f, "r2", "--parent", "r1")

	n1 := newMachine(t, f)
	file := token(t, f, "--node", "n1", "--parent", "r2,r1")
	// The parents are unreachable: the join continues to the root relay.
	if _, stderr, code := n1.muster(t, nil, "node", "join", "--token-file", file); code != 0 {
		t.Fatalf("join: exit %d: %s", code, stderr)
	}
	targets := member(t, filepath.Join(n1.home, "node/node.json"))["relay_targets"].([]any)
	want := []any{"r2.example:7445", "10.9.8.7:7445", "r1.example:7445", "10.9.8.7:7445"}
	if len(targets) <= len(want) || !reflect.DeepEqual(targets[:len(want)], want) {
		t.Errorf("its parents are %v", targets)
	}
	if must(os.ReadFile(filepath.Join(n1.home, "node/command-ca.pem")))(t) == nil {
		t.Error("no command authority is pinned")
	}

	all := nodes(t, f)
	if r2 := all["r2"]; r2 == nil || r2["kind"] != "relay" || !reflect.DeepEqual(r2["parents"], []any{"r1"}) {
		t.Errorf("the list has for the relay %v", r2)
	}
	if node := all["n1"]; node == nil || node["kind"] != "node" || !reflect.DeepEqual(node["parents"], []any{"r2", "r1"}) {
		t.Errorf("the list has for the node %v", node)
	}
	if out := must(f.Muster("nodes"))(t); !strings.Contains(out, "KIND") || !strings.Contains(out, "r2, r1") {
		t.Errorf("nodes prints\n%s", out)
	}
	if out := must(f.Muster("node", "show", "r1"))(t); !strings.Contains(out, "r1.example:7445, 10.9.8.7:7445") {
		t.Errorf("node show prints\n%s", out)
	}
}

// A relay passes on no list of revoked signers that it cannot verify.
func TestRelayWithoutTheCommandAuthorityDoesNotStart(t *testing.T) {
	t.Parallel()
	f := up(t)
	r1 := joinRelay(t, f, "r1")
	check(t, os.Remove(filepath.Join(r1, "command-ca.pem")))
	config := must(f.WriteFile("r1.yaml", "state_folder: "+r1+"\nlisten: 127.0.0.1:0\njoin_listen: 127.0.0.1:0\n"))(t)
	relay := must(f.Start(nil, nil, fleet.Relay, "--config", config))(t)
	ended := make(chan error, 1)
	go func() { ended <- relay.Wait() }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(relay.Output.String(), "NO_RELAY_IDENTITY") {
			t.Errorf("it ended with %v\n%s", err, relay.Output)
		}
	case <-time.After(soon):
		relay.End()
		t.Errorf("it runs\n%s", relay.Output)
	}
}

// rewritten copies a JSON file with changes, readable by its owner only.
func rewritten(t *testing.T, file string, change func(map[string]any)) string {
	t.Helper()
	content := member(t, file)
	change(content)
	copied := filepath.Join(t.TempDir(), "changed")
	check(t, os.WriteFile(copied, must(json.Marshal(content))(t), 0o600))
	return copied
}

func TestMachineJoinsThroughRelay(t *testing.T) {
	t.Parallel()
	f := up(t)
	r1 := joinRelay(t, f, "r1")
	addresses := filepath.Join(r1, "addresses.json")
	config := must(f.WriteFile("r1.yaml", "state_folder: "+r1+"\nlisten: 127.0.0.1:0\njoin_listen: 127.0.0.1:0\n"+
		"addresses_file: "+addresses+"\n"))(t)
	relay := must(f.Start(nil, nil, fleet.Relay, "--config", config))(t)
	t.Cleanup(func() {
		relay.End()
		if t.Failed() {
			t.Logf("--- r1\n%s", relay.Output)
		}
	})
	until(t, "the relay is attached to the root relay", func() bool {
		_, err := os.Stat(addresses)
		return err == nil && nodes(t, f)["r1"]["attached"] == true
	})

	// An operator accepts the root relay only: another one could forge the outcome of a job.
	elsewhere := rewritten(t, filepath.Join(f.Home, "context.json"), func(context map[string]any) {
		context["relay_targets"] = []any{member(t, addresses)["relay"]}
	})
	if out, err := f.Muster("job", "list", "--context", elsewhere); err == nil || !strings.Contains(err.Error(), "SERVER_CERTIFICATE_REFUSED") {
		t.Errorf("it listed the jobs of another relay: %v\n%s", err, out)
	}
	file := rewritten(t, token(t, f, "--node", "n1", "--parent", "r1"), func(token map[string]any) {
		token["join_targets"] = []any{member(t, addresses)["join"]}
	})
	n1 := newMachine(t, f)
	if _, stderr, code := n1.muster(t, nil, "node", "join", "--token-file", file); code != 0 {
		t.Fatalf("join: exit %d: %s", code, stderr)
	}
	if node := nodes(t, f)["n1"]; node == nil || !reflect.DeepEqual(node["parents"], []any{"r1"}) {
		t.Errorf("the list has %v", node)
	}
	// The relay answers with the same error as the aggregator.
	if _, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", file); code != 71 || !strings.Contains(stderr, "TOKEN_USED") {
		t.Errorf("a used token: exit %d: %s", code, stderr)
	}
	must(f.Muster("node", "revoke", "r1"))(t)
	until(t, "the revoked relay is detached", func() bool { return nodes(t, f)["r1"]["attached"] == false })
	other := rewritten(t, token(t, f, "--node", "n2"), func(token map[string]any) {
		token["join_targets"] = []any{member(t, addresses)["join"]}
	})
	if _, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", other); code == 0 {
		t.Errorf("a machine joined through a revoked relay: %s", stderr)
	}
}

func TestRelayTokensAreOnlyForRelays(t *testing.T) {
	t.Parallel()
	f := up(t)
	relay := token(t, f, "--relay", "r1")
	if _, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", relay); code != 71 || !strings.Contains(stderr, "muster relay join") {
		t.Errorf("a node with a relay's token: exit %d: %s", code, stderr)
	}
	node := token(t, f, "--node", "n1")
	folder := filepath.Join(t.TempDir(), "r")
	if _, stderr, code := newMachine(t, f).muster(t, nil, "relay", "join", "--token-file", node, "--dir", folder, "--advertise", "r:1"); code != 71 || !strings.Contains(stderr, "muster node join") {
		t.Errorf("a relay with a node's token: exit %d: %s", code, stderr)
	}
	if _, stderr, code := newMachine(t, f).muster(t, nil, "relay", "join", "--token-file", relay, "--dir", folder, "--advertise", "r"); code != 2 || !strings.Contains(stderr, "--advertise") {
		t.Errorf("no port: exit %d: %s", code, stderr)
	}
	for what, arguments := range map[string][]string{
		"RELAY_NOT_FOUND": {"--node", "n2", "--parent", "r9"},
		"INVALID_TOKEN":   {"--relay", "root"},
		"exactly one":     {"--relay", "r2", "--node", "n2"},
	} {
		if out, err := f.Muster(append([]string{"token", "create"}, arguments...)...); err == nil || !strings.Contains(out+err.Error(), what) {
			t.Errorf("token create %v: %v: %s", arguments, err, out)
		}
	}
}
