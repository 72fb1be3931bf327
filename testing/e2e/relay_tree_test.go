package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

const (
	relayPort = 7445
	joinPort  = 7444
	proxyPort = 3128
)

// relay is a machine that joined as a relay, and the program that runs there.
type relay struct {
	machine
	name    string
	program *fleet.RunningProgram
}

// newRelay joins a relay that is reached at `addresses` by what hangs below it, and starts it.
func newRelay(t *testing.T, f *fleet.Fleet, name string, on *fleet.Host, addresses []string, arguments ...string) *relay {
	t.Helper()
	r := &relay{machine: newMachine(t, f), name: name}
	r.on = on
	file := token(t, f, append([]string{"--relay", name}, arguments...)...)
	join := []string{"relay", "join", "--token-file", file, "--dir", r.home}
	for _, address := range addresses {
		join = append(join, "--advertise", fmt.Sprintf("%s:%d", address, relayPort), "--join-advertise", fmt.Sprintf("%s:%d", address, joinPort))
	}
	if _, said, code := r.muster(t, nil, join...); code != 0 {
		t.Fatalf("relay %s joins: exit %d: %s", name, code, said)
	}
	config := fmt.Sprintf("state_folder: %s\nlisten: 0.0.0.0:%d\njoin_listen: 0.0.0.0:%d\ninterval: 2s\n", r.home, relayPort, joinPort)
	check(t, os.WriteFile(r.config(), []byte(config), 0o600))
	r.start(t)
	return r
}

func (r *relay) config() string { return filepath.Join(r.home, "relay.yaml") }

func (r *relay) start(t *testing.T) {
	t.Helper()
	r.program = must(r.fleet.Start(r.on, nil, fleet.Relay, "--config", r.config()))(t)
	program := r.program
	t.Cleanup(func() { endAndTell(t, r.name, program) })
	until(t, "relay "+r.name+" is attached", func() bool { return nodes(t, r.fleet)[r.name]["attached"] == true })
}

// endAndTell ends a program; if the test failed, it gives what the program said.
func endAndTell(t *testing.T, name string, program *fleet.RunningProgram) {
	program.End()
	if t.Failed() {
		t.Logf("--- %s\n%s", name, program.Output)
	}
}

// killAndStart is what a supervisor of its machine would do.
func (r *relay) killAndStart(t *testing.T) {
	t.Helper()
	r.program.End()
	r.start(t)
}

// proxyOn serves HTTP CONNECT on a host; what it connects to it reaches from there.
func proxyOn(t *testing.T, host *fleet.Host) {
	t.Helper()
	var listener net.Listener
	check(t, host.Do(func() (err error) {
		listener, err = net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", proxyPort))
		return err
	}))
	server := &http.Server{Handler: connectHandler(func(address string) (upstream net.Conn, err error) {
		err = host.Do(func() (err error) {
			upstream, err = net.Dial("tcp", address)
			return err
		})
		return upstream, err
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// A centre, a relay r1 with a relay r2 behind it, a node n1 that reaches a proxy beside r2 and nothing else,
// and a node n2 behind a relay r3 of another branch. r1, in the middle, is killed while things go on.
func TestATreeOfRelaysInNetworksOfTheirOwn(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	host := func(make func() (*fleet.Host, error)) *fleet.Host {
		h := must(make())(t)
		t.Cleanup(func() { check(t, h.Close()) })
		return h
	}
	h1 := host(fleet.NewHost)
	h2 := host(h1.NewHostBehind)
	proxy := host(h2.NewHostBehind)
	hn1 := host(proxy.NewHostBehind)
	h3 := host(fleet.NewHost)
	hn2 := host(h3.NewHostBehind)
	f := up(t, "--bind", "0.0.0.0", "--advertise", h1.Address+","+h3.Address)
	r1 := newRelay(t, f, "r1", h1, []string{h2.Address})
	r2 := newRelay(t, f, "r2", h2, []string{proxy.Address}, "--parent", "r1")
	newRelay(t, f, "r3", h3, []string{hn2.Address})
	proxyOn(t, proxy)
	policy := openPolicy + "  - argv: [/bin/sh, -c, \"*\"]\n    actions: [collect]\n"
	n1 := join(t, f, "n1", policy, hn1, []string{fmt.Sprintf("https_proxy=http://%s:%d", hn1.Address, proxyPort)}, "--parent", "r2")
	n2 := join(t, f, "n2", policy, hn2, nil, "--parent", "r3")
	n1.attach(t)
	n2.attach(t)
	if below := nodes(t, f); below["n1"]["relay"] != "r2" || below["r2"]["relay"] != "r1" || below["n2"]["relay"] != "r3" {
		t.Fatalf("they hang wrongly: %v", below)
	}

	// What a command prints goes on, complete and in order, while the relay in the middle is killed twice.
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

	// A run asks them by itself. The relay in the middle is away when n1 has its result: r2 keeps that, n1
	// its own copy, and it is there in the end, in the node's own word.
	begun, goOn := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "go-on")
	id := run(t, f, []string{execPlugin("facts", "DaemonSet", fmt.Sprintf(
		`touch %s; until [ -e %s ]; do sleep 0.1; done; uname -a > "$RESULTS_DIR/f"; echo "$RESULTS_DIR/f" > "$RESULTS_DIR/done"`, begun, goOn))}, "n1", "n2")
	until(t, "the plugin runs", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	r1.program.End()
	check(t, os.WriteFile(goOn, nil, 0o600))
	until(t, "r2 keeps the result", func() bool {
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

	// A file for a node of the other branch, over the centre; the relay in the middle is killed on the way.
	content := strings.Repeat("a line of the report\n", 200_000)
	report := filepath.Join(t.TempDir(), "report")
	check(t, os.WriteFile(report, []byte(content), 0o600))
	if _, said, code := n1.muster(t, n1.extra, "share", report, "--to", "n2", "--wait", "1s"); code != 0 {
		t.Fatalf("share: exit %d: %s", code, said)
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

	// A revoked node is gone from every relay at once.
	must(f.Muster("node", "revoke", "n1"))(t)
	n1.awaitAttached(t, false)
	out, _, _ := execOn(t, f, "--node", "n1", "--json", "--ttl", "1s", "--", "/bin/echo", "never")
	if ends := finals(t, out); ends["n1"]["outcome"] != "unknown" {
		t.Errorf("a revoked node: %v", ends)
	}
}

// wantLines checks that each node printed "line 0" to "line N-1", each once and in order.
func wantLines(t *testing.T, out string, lines int, names ...string) {
	t.Helper()
	next := map[string]int{}
	for _, line := range strings.Split(out, "\n") {
		name, text, _ := strings.Cut(line, ": ")
		if name == "" {
			continue
		}
		if want := fmt.Sprintf("line %d", next[name]); text != want {
			t.Fatalf("%s printed %q where %q was due", name, text, want)
		}
		next[name]++
	}
	for _, name := range names {
		if next[name] != lines {
			t.Errorf("%s: %d lines of %d", name, next[name], lines)
		}
	}
}
