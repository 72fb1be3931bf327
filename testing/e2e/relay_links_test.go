package e2e

import (
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

const eachWay = 150 * time.Millisecond

func unchanged(*fleet.Fleet, *fleet.Link) {}

// With a slow link, a branch joins and works like any other.
func TestBranchWorksOverSlowLink(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBranch(t, func(_ *fleet.Fleet, l *fleet.Link) { l.Slow(eachWay, 0) })
	out, stderr, code := execOn(t, b.Fleet, "--all", "--", "/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
	if code != 0 {
		t.Fatalf("exec: exit %d: %s", code, stderr)
	}
	wantLines(t, out, 20000, "n1", "n2")
	c := b.collect(t, 2_000_000)
	c.release(t)
	s := b.share(t, "there", 2_000_000)
	c.wantComplete(t)
	s.wantDelivered(t)
}

// A half-open link: both sides detect it, and r2 has a second parent.
func TestRelayLeavesHalfOpenLinkForAnotherParent(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBranch(t, func(f *fleet.Fleet, _ *fleet.Link) { shortHeartbeats(t, f) }, "r3")
	b.awaitParent(t, "r2", "r1")
	p := b.print(t, "n1", "n2")
	c := b.collect(t, 2_000_000)
	awaitPair(t, b.Fleet, c.id, "n1", "the agent is online", func(pair fleet.ShownPair) bool { return pair.Presence == "online" })
	b.link.Silence(fleet.Up, fleet.Down)
	c.release(t)
	s := b.share(t, "meanwhile", 2_000_000)
	b.awaitParent(t, "r2", "")
	b.awaitParent(t, "n1", "")
	awaitPair(t, b.Fleet, c.id, "n1", "n1 is reported as silent, and nothing else", func(pair fleet.ShownPair) bool {
		return pair.Presence != "online" && pair.Status == "running"
	})
	out, _, _ := execOn(t, b.Fleet, "--node", "n1", "--json", "--ttl", "1s", "--", "/bin/echo", "never")
	if ends := finals(t, out); ends["n1"]["outcome"] != "unreachable" {
		t.Errorf("a node behind a dead link: %v", ends)
	}
	b.awaitParent(t, "r2", "r3")
	b.awaitParent(t, "n1", "r2")
	p.awaitMore(t, "n1", "n2")
	b.link.Heal() // the held bytes arrive at closed streams
	p.wantComplete(t, "n1", "n2")
	c.wantComplete(t)
	s.wantDelivered(t)
	if out, _, _ := execOn(t, b.Fleet, "--node", "n1", "--", "/bin/echo", "hello"); out != "n1: hello\n" {
		t.Errorf("afterwards: %q", out)
	}
}

// First one direction is silent, then the other; the side that detects it reports it in the other direction.
func TestOneWaySilentLinkIsDetectedAndHeals(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBranch(t, unchanged)
	p := b.print(t, "n1", "n2")
	for _, way := range []fleet.Direction{fleet.Up, fleet.Down} {
		c := b.collect(t, 500_000)
		b.link.Silence(way)
		c.release(t)
		s := b.share(t, map[fleet.Direction]string{fleet.Up: "up", fleet.Down: "down"}[way], 500_000)
		b.awaitParent(t, "r2", "")
		b.link.Heal()
		b.awaitParent(t, "n1", "r2")
		p.awaitMore(t, "n1", "n2")
		c.wantComplete(t)
		s.wantDelivered(t)
	}
	p.wantComplete(t, "n1", "n2")
	if log := must(b.Muster("job", "logs", "--json", p.id))(t); !strings.Contains(log, `"branch-lost"`) {
		t.Errorf("the job's log does not report the lost branch")
	}
}

// Transfers that take a while are resumed after resets.
func TestTransfersSurviveRepeatedResets(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBranch(t, func(_ *fleet.Fleet, l *fleet.Link) { l.Slow(0, 4<<20) })
	p := b.print(t, "n1", "n2")
	c := b.collect(t, 8<<20)
	c.release(t)
	for range 3 {
		awaitCut(t, b.link.CutAfter(2<<20))
	}
	c.wantComplete(t)
	cut := b.link.CutAfter(2 << 20)
	s := b.share(t, "cut", 8<<20)
	awaitCut(t, cut)
	for range 2 {
		awaitCut(t, b.link.CutAfter(2<<20))
	}
	s.wantDelivered(t)
	p.wantComplete(t, "n1", "n2")
}

func awaitCut(t *testing.T, cut <-chan struct{}) {
	t.Helper()
	select {
	case <-cut:
	case <-time.After(crashSoon):
		t.Fatal("the link was not cut: too few bytes passed")
	}
}
