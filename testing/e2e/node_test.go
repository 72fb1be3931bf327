package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"muster.example/testing/fleet"
)

// token creates a join token and returns its file.
func token(t *testing.T, f *fleet.Fleet, arguments ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	must(f.Muster(append([]string{"token", "create", "-o", file}, arguments...)...))(t)
	return file
}

// nodes returns the output of `muster nodes --json` by name.
func nodes(t *testing.T, f *fleet.Fleet, arguments ...string) map[string]map[string]any {
	t.Helper()
	return must(listNodes(f, arguments...))(t)
}

// listNodes is nodes, but the services may be starting again.
func listNodes(f *fleet.Fleet, arguments ...string) (map[string]map[string]any, error) {
	var list []map[string]any
	if err := f.JSON(&list, append([]string{"nodes", "--json"}, arguments...)...); err != nil {
		return nil, err
	}
	byName := map[string]map[string]any{}
	for _, node := range list {
		byName[node["name"].(string)] = node
	}
	return byName, nil
}

func TestMachineJoinsIsLabelledRevokedAndRemoved(t *testing.T) {
	t.Parallel()
	f := up(t)
	n1 := newMachine(t, f)
	file := token(t, f, "--node", "n1", "--label", "rack=b1")
	if info := must(os.Stat(file))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file has mode %v", info.Mode())
	}
	if _, stderr, code := n1.muster(t, nil, "node", "join", "--token-file", file); code != 0 {
		t.Fatalf("join: exit %d: %s", code, stderr)
	}
	key := must(os.Stat(filepath.Join(n1.home, "node/tls/key.pem")))(t)
	if key.Mode().Perm() != 0o600 {
		t.Errorf("the node's key has mode %v", key.Mode())
	}
	node := nodes(t, f, "--label", "rack=b1")["n1"]
	if node == nil || node["presence"] != "" {
		t.Fatalf("the list has %v", node)
	}

	// Another machine is too late with the same token, and another has a damaged one.
	_, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", file)
	if code != 71 || !strings.Contains(stderr, "TOKEN_USED") {
		t.Errorf("a used token: exit %d: %s", code, stderr)
	}
	torn := filepath.Join(t.TempDir(), "torn")
	check(t, os.WriteFile(torn, []byte("{"), 0o600))
	if _, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", torn); code == 0 || !strings.Contains(stderr, "INVALID_TOKEN_FILE") {
		t.Errorf("a damaged token: exit %d: %s", code, stderr)
	}
	check(t, os.Chmod(file, 0o644))
	if _, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", file); code == 0 || !strings.Contains(stderr, "SECRET_FILE_EXPOSED") {
		t.Errorf("a token that others can read: exit %d: %s", code, stderr)
	}

	for _, arguments := range [][]string{
		{"node", "label", "n1", "zone=a", "--remove", "rack"},
		{"node", "revoke", "n1", "--reason", "disk was stolen"},
	} {
		must(f.Muster(arguments...))(t)
	}
	if node := nodes(t, f, "--label", "zone=a")["n1"]; node == nil || node["revoked"] != true || node["revoke_reason"] != "disk was stolen" {
		t.Errorf("after the revocation the list has %v", node)
	}
	if out := must(f.Muster("node", "show", "n1"))(t); !strings.Contains(out, "disk was stolen") {
		t.Errorf("node show prints\n%s", out)
	}
	must(f.Muster("node", "remove", "n1"))(t)
	if left := nodes(t, f); len(left) != 0 {
		t.Errorf("after the removal there are %v", left)
	}
	if out := must(f.Muster("token", "list"))(t); !strings.Contains(out, "used") || !strings.Contains(out, "n1") {
		t.Errorf("token list prints\n%s", out)
	}
}

func TestTokenForSeveralMachinesIsLimited(t *testing.T) {
	t.Parallel()
	f := up(t)
	file := token(t, f, "--count", "2")
	_, hint, _ := machine{fleet: f, home: f.Home}.muster(t, nil, "token", "create", "--count", "2")
	if !strings.Contains(hint, "on each machine: muster node join --token-file FILE --node NAME.") {
		t.Errorf("the next step is %q", hint)
	}
	if _, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", file); code != 2 {
		t.Errorf("a join without a name: exit %d: %s", code, stderr)
	}
	for _, name := range []string{"n1", "n2"} {
		if _, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", file, "--node", name); code != 0 {
			t.Fatalf("%s: exit %d: %s", name, code, stderr)
		}
	}
	_, stderr, code := newMachine(t, f).muster(t, nil, "node", "join", "--token-file", file, "--node", "n3")
	if code != 71 || !strings.Contains(stderr, "TOKEN_USED") {
		t.Errorf("a third machine: exit %d: %s", code, stderr)
	}
	if all := nodes(t, f); len(all) != 2 {
		t.Errorf("the list has %v", all)
	}
}

// connectHandler is an HTTP proxy for CONNECT only, which connects with `dial`.
func connectHandler(dial func(address string) (net.Conn, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
			return
		}
		upstream, err := dial(r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		client, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			upstream.Close()
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			_, _ = io.Copy(upstream, buffered)
			upstream.Close()
		}()
		_, _ = io.Copy(client, upstream)
		client.Close()
	})
}

// connectProxy serves such a proxy; it counts its connections.
func connectProxy(t *testing.T) (address string, connected *atomic.Int32) {
	t.Helper()
	connected = &atomic.Int32{}
	proxy := httptest.NewServer(connectHandler(func(address string) (net.Conn, error) {
		upstream, err := net.Dial("tcp", address)
		if err == nil {
			connected.Add(1)
		}
		return upstream, err
	}))
	t.Cleanup(proxy.Close)
	return proxy.Listener.Addr().String(), connected
}

func TestMachineJoinsThroughProxy(t *testing.T) {
	t.Parallel()
	f := up(t)
	address, connected := connectProxy(t)
	file := token(t, f, "--node", "n1")
	_, stderr, code := newMachine(t, f).muster(t, []string{"https_proxy=http://" + address, "no_proxy="}, "node", "join", "--token-file", file)
	if code != 0 {
		t.Fatalf("join: exit %d: %s", code, stderr)
	}
	if connected.Load() == 0 {
		t.Error("the join did not go through the proxy")
	}
}
