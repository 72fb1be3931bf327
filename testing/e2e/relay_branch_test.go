package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// collectPolicy also admits collection by runs.
const collectPolicy = openPolicy + "  - argv: [/bin/sh, -c, \"*\"]\n    actions: [collect]\n"

// branch is a root relay with a child r1, and a relay r2 attached to r1 over a link. n1 is attached to r2, n2 to the
// root relay.
type branch struct {
	*fleet.Fleet
	link   *fleet.Link // from r2 to r1
	r1, r2 *relay
	n1, n2 *node
	h1, h2 *fleet.Host
}

// newBranch creates the relays; r2 has `others` as further parents, over separate links that do not change. `prepare`
// configures fleet and link before the first traffic.
func newBranch(t *testing.T, prepare func(*fleet.Fleet, *fleet.Link), others ...string) *branch {
	t.Helper()
	b := &branch{h1: newHost(t, fleet.NewHost)}
	b.h2 = newHost(t, b.h1.NewHostBehind)
	b.Fleet = up(t, "--bind", "0.0.0.0", "--advertise", b.h1.Address)
	b.link = linkOn(t, b.h1, b.h2.Address+":17445", at("127.0.0.1"))
	prepare(b.Fleet, b.link)
	b.r1 = newRelay(t, b.Fleet, "r1", b.h1, b.link.Address)
	parents := "r1"
	for i, other := range others { // besides the root relay
		way := linkOn(t, b.h1, fmt.Sprintf("%s:%d", b.h2.Address, 17446+i), at(b.h1.Address))
		newRelay(t, b.Fleet, other, nil, way.Address)
		parents += "," + other
	}
	hn1 := newHost(t, b.h2.NewHostBehind)
	b.r2 = newRelay(t, b.Fleet, "r2", b.h2, at(hn1.Address), "--parent", parents)
	b.n1 = join(t, b.Fleet, "n1", collectPolicy, hn1, nil, "--parent", "r2")
	b.n2 = join(t, b.Fleet, "n2", collectPolicy, nil, nil)
	b.n1.attach(t)
	b.n2.attach(t)
	return b
}

func linkOn(t *testing.T, on *fleet.Host, address, to string) *fleet.Link {
	t.Helper()
	l := must(fleet.NewLink(on, address, to))(t)
	t.Cleanup(func() { check(t, l.Close()) })
	return l
}

// printing is a job that prints numbered lines on nodes until it is stopped.
type printing struct {
	*branch
	id, end string
}

func (b *branch) print(t *testing.T, nodes ...string) *printing {
	t.Helper()
	p := &printing{b, "", filepath.Join(t.TempDir(), "end")}
	p.id = strings.TrimSpace(must(b.Muster("exec", "--node", strings.Join(nodes, ","), "--deadline", "10m", "--detach", "--",
		"/bin/sh", "-c", fmt.Sprintf("i=0; until [ -e %s ]; do echo line $i; i=$((i+1)); sleep 0.02; done; echo $i lines", p.end)))(t))
	p.awaitMore(t, nodes...)
	return p
}

// awaitMore waits until more output of the nodes has arrived.
func (p *printing) awaitMore(t *testing.T, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		before := len(p.logs(t, node))
		until(t, node+" prints", func() bool { return len(p.logs(t, node)) > before })
	}
}

func (p *printing) logs(t *testing.T, node string) string {
	t.Helper()
	out, stderr, code := machine{fleet: p.Fleet, home: p.Home}.muster(t, nil, "job", "logs", "--node", node, p.id)
	if code != 0 && code != 9 { // 9: it failed on some node
		t.Fatalf("job logs: exit %d: %s", code, stderr)
	}
	return out
}

// follow returns what n1 printed, and how the following command ended; it ends with the test.
func (p *printing) follow(t *testing.T) <-chan string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*crashSoon)
	output, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		out, err := p.Run(ctx, "job", "logs", "-f", "--node", "n1", p.id)
		if err != nil {
			out += err.Error()
		}
		output <- out
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return output
}

// wantComplete ends the job and fails unless every line arrived once and in order.
func (p *printing) wantComplete(t *testing.T, nodes ...string) {
	t.Helper()
	check(t, os.WriteFile(p.end, nil, 0o600))
	for _, node := range nodes {
		if final := awaitFinal(t, p.Fleet, p.id, node); final["outcome"] != "exited" {
			t.Errorf("on %s it ended as %v", node, final)
		}
		wantNumbered(t, p.logs(t, node), node, true)
	}
}

// wantNumbered fails unless a node printed "line 0", "line 1" and so on, and at the end, if `complete`, their number.
func wantNumbered(t *testing.T, out, node string, complete bool) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, line := range lines {
		want := fmt.Sprintf("%s: line %d", node, i)
		if complete && i == len(lines)-1 {
			want = fmt.Sprintf("%s: %d lines", node, i)
		}
		if line != want {
			t.Errorf("%s printed %q as line %d of %d, want %q", node, line, i, len(lines), want)
			return
		}
	}
}

// collecting is a run with a result of random bytes on n1.
type collecting struct {
	*branch
	id, ready string
	content   []byte
}

// collect returns when n1's plugin is running; it writes its result when `release` is called.
func (b *branch) collect(t *testing.T, size int) *collecting {
	t.Helper()
	folder := t.TempDir()
	c := &collecting{branch: b, ready: filepath.Join(folder, "ready"), content: make([]byte, size)}
	_, _ = rand.Read(c.content)
	file, begun := filepath.Join(folder, "content"), filepath.Join(folder, "begun")
	check(t, os.WriteFile(file, c.content, 0o600))
	c.id = run(t, b.Fleet, []string{execPlugin("work", "DaemonSet", fmt.Sprintf(`echo begun >> %s; until [ -e %s ]; do sleep 0.05; done; `+
		`cp %s "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`, begun, c.ready, file))}, "n1")
	until(t, "the plugin is running", func() bool { return fileExists(begun) })
	t.Cleanup(func() {
		if text, _ := os.ReadFile(begun); string(text) != "begun\n" {
			t.Errorf("the plugin's starts: %q", text)
		}
	})
	return c
}

func (c *collecting) release(t *testing.T) {
	t.Helper()
	check(t, os.WriteFile(c.ready, nil, 0o600))
}

// wantComplete waits for the run and compares every byte; the result was committed once.
func (c *collecting) wantComplete(t *testing.T) {
	t.Helper()
	if out, err := c.Muster("wait", c.id); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	got := operator(t, c.Fleet).result(t, c.id, "work", "n1")
	if got.Outcome != musterv1.Outcome_OUTCOME_GENUINE || got.Generation != 1 || got.Size != int64(len(c.content)) ||
		!got.GetDelivery().GetSigned() || !strings.HasSuffix(got.GetDelivery().GetUri(), "/node/n1") {
		t.Errorf("the result is %v, want %d bytes of generation 1, signed by n1", got, len(c.content))
	}
	wantFile(t, archive(t, c.Fleet, c.id), "plugins/work/results/n1/r", string(c.content))
}

// sharing is a file that n1 shares with n2.
type sharing struct {
	*branch
	id      string
	content []byte
}

// share sends a file of random bytes to the relay of n1.
func (b *branch) share(t *testing.T, id string, size int) *sharing {
	t.Helper()
	path, content := fileOf(t, b.n1, size)
	b.n1.must(t, "share", path, "--to", "n2", "--id", id, "--wait", "1s")
	return &sharing{b, id, content}
}

// wantDelivered waits until n2 has it, and compares every byte.
func (s *sharing) wantDelivered(t *testing.T) {
	t.Helper()
	to := filepath.Join(s.n2.home, s.id)
	check(t, fleet.Until(crashSoon, "n2 has "+s.id, func() bool {
		_, _, code := s.n2.muster(t, nil, "shared", "get", "--from", "n1", "--id", s.id, "-o", to)
		return code == 0
	}))
	if got := must(os.ReadFile(to))(t); !bytes.Equal(got, s.content) {
		t.Errorf("n2 got %d bytes with SHA-256 %x of %s, want %d", len(got), sha256.Sum256(got), s.id, len(s.content))
	}
}

// awaitParent waits until a relay or node is attached to a parent; "": detached.
func (b *branch) awaitParent(t *testing.T, name, parent string) {
	t.Helper()
	check(t, fleet.Until(crashSoon, fmt.Sprintf("%s is attached to %q", name, parent), func() bool {
		var list []struct {
			Name, Relay string
			Attached    bool
		}
		// the answering service may be unreachable
		if b.JSON(&list, "nodes") != nil {
			return false
		}
		for _, is := range list {
			if is.Name == name {
				return is.Attached == (parent != "") && (parent == "" || is.Relay == parent)
			}
		}
		return false
	}))
}
