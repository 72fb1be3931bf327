package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"muster.example/testing/fleet"
)

const (
	relayPort = 7445
	joinPort  = 7444
	proxyPort = 3128
)

// relay is a machine that joined as a relay, and its program.
type relay struct {
	machine
	name    string
	program *fleet.RunningProgram
	extra   []string // more environment variables
}

// newHost creates a host that ends with the test.
func newHost(t *testing.T, make func() (*fleet.Host, error)) *fleet.Host {
	t.Helper()
	h := must(make())(t)
	t.Cleanup(func() { check(t, h.Close()) })
	return h
}

// at returns the address of a relay on this host.
func at(host string) string { return fmt.Sprintf("%s:%d", host, relayPort) }

// newRelay joins a relay whose children reach it at `address`, and starts it.
func newRelay(t *testing.T, f *fleet.Fleet, name string, on *fleet.Host, address string, arguments ...string) *relay {
	t.Helper()
	r := &relay{machine: newMachine(t, f), name: name}
	r.on = on
	file := token(t, f, append([]string{"--relay", name}, arguments...)...)
	host, _, err := net.SplitHostPort(address)
	check(t, err)
	if _, stderr, code := r.muster(t, nil, "relay", "join", "--token-file", file, "--dir", r.home,
		"--advertise", address, "--join-advertise", fmt.Sprintf("%s:%d", host, joinPort)); code != 0 {
		t.Fatalf("relay %s joins: exit %d: %s", name, code, stderr)
	}
	config := fmt.Sprintf("state_folder: %s\nlisten: 0.0.0.0:%d\njoin_listen: 0.0.0.0:%d\ninterval: 2s\n", r.home, relayPort, joinPort)
	check(t, os.WriteFile(r.config(), []byte(config), 0o600))
	r.start(t)
	return r
}

func (r *relay) config() string { return filepath.Join(r.home, "relay.yaml") }

func (r *relay) start(t *testing.T) {
	t.Helper()
	r.program = must(r.fleet.Start(r.on, r.extra, fleet.Relay, "--config", r.config()))(t)
	program := r.program
	t.Cleanup(func() { endAndLog(t, r.name, program) })
	until(t, "relay "+r.name+" is attached", func() bool { return nodes(t, r.fleet)[r.name]["attached"] == true })
}

// endAndLog ends a program; if the test failed, it logs the program's output.
func endAndLog(t *testing.T, name string, program *fleet.RunningProgram) {
	program.End()
	if t.Failed() {
		t.Logf("--- %s\n%s", name, program.Output)
	}
}

// killAndStart restarts the relay as a supervisor would.
func (r *relay) killAndStart(t *testing.T) {
	t.Helper()
	r.program.End()
	r.start(t)
}

// supervise starts the relay whenever it has ended, as systemd does, until the test ends. It ends with a reason. The
// returned number counts its ends.
func (r *relay) supervise(t *testing.T) *atomic.Int32 {
	t.Helper()
	r.start(t)
	ends, stopping, over := new(atomic.Int32), make(chan struct{}), make(chan struct{})
	program := r.program
	var mu sync.Mutex // guards program
	go func() {
		defer close(over)
		for {
			err := program.Wait()
			mu.Lock()
			select {
			case <-stopping:
				mu.Unlock()
				return
			default:
			}
			ends.Add(1)
			if output := program.Output.String(); !strings.Contains(output, "stopped after a fatal error") {
				t.Errorf("relay %s ended without a reason: %v: %s", r.name, err, output)
			}
			next, err := r.fleet.Start(r.on, r.extra, fleet.Relay, "--config", r.config())
			if err != nil {
				t.Errorf("relay %s: %v", r.name, err)
				mu.Unlock()
				return
			}
			program = next
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		mu.Lock()
		close(stopping)
		last := program
		mu.Unlock()
		endAndLog(t, r.name, last)
		<-over
	})
	return ends
}

// proxyOn serves HTTP CONNECT on a host; it connects from there.
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
			t.Fatalf("%s printed %q instead of %q", name, text, want)
		}
		next[name]++
	}
	for _, name := range names {
		if next[name] != lines {
			t.Errorf("%s: %d lines of %d", name, next[name], lines)
		}
	}
}
