package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// cutter forwards connections to an address and breaks each after a number of bytes from there.
type cutter struct {
	address string
	to      string

	mu     sync.Mutex
	limits []int64 // of the next connections; empty: a connection is not broken
	atCut  []func()
	passed int64 // bytes from there
	cuts   int
}

func newCutter(t *testing.T, to string) *cutter {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	c := &cutter{address: listener.Addr().String(), to: to}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { c.pass(near) })
		}
	})
	t.Cleanup(func() { listener.Close(); connections.Wait() })
	return c
}

// cutAfter breaks a later connection after a number of bytes, and calls `then` first.
func (c *cutter) cutAfter(bytes int64, then func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits, c.atCut = append(c.limits, bytes), append(c.atCut, then)
}

func (c *cutter) so() (passed int64, cuts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed, c.cuts
}

func (c *cutter) pass(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer far.Close()
	c.mu.Lock()
	limit, then := int64(1)<<40, func() {}
	planned := len(c.limits) > 0
	if planned {
		limit, then = c.limits[0], c.atCut[0]
		c.limits, c.atCut = c.limits[1:], c.atCut[1:]
	}
	c.mu.Unlock()
	go func() { _, _ = io.Copy(far, near); far.Close() }()
	n, _ := io.Copy(near, io.LimitReader(far, limit))
	c.mu.Lock()
	c.passed += n
	cut := n == limit
	if cut {
		c.cuts++
	} else if planned { // it broke earlier, such as in its handshake
		c.limits, c.atCut = append([]int64{limit}, c.limits...), append([]func(){then}, c.atCut...)
	}
	c.mu.Unlock()
	if cut {
		then()
	}
}

// behindCutter returns an operator's context that reaches the aggregator through a cutter.
func behindCutter(t *testing.T, f *fleet.Fleet) (c *cutter, context string) {
	t.Helper()
	text := must(os.ReadFile(filepath.Join(f.Home, "context.json")))(t)
	var fields map[string]any
	check(t, json.Unmarshal(text, &fields))
	c = newCutter(t, must(f.Operator())(t).Aggregator[0])
	fields["aggregator_targets"] = []string{c.address}
	changed := must(json.Marshal(fields))(t)
	return c, must(f.WriteFile("behind.json", string(changed)))(t)
}

// largeArchive creates a complete run with an archive of some size, and returns the archive.
func largeArchive(t *testing.T, f *fleet.Fleet) (id string, content []byte) {
	t.Helper()
	id = run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	file, _, _ := large(t, f, 2)
	must(f.Muster("submit", file, "--config", must(f.Export(id, "logs", "n1"))(t).File))(t)
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	whole := filepath.Join(f.Home, "whole.tar.gz")
	must(f.Muster("retrieve", id, "-o", whole))(t)
	return id, must(os.ReadFile(whole))(t)
}

// The connection breaks, and the aggregator is killed: the download resumes within one call.
func TestDownloadResumesAfterEachBreak(t *testing.T) {
	t.Parallel()
	f := up(t)
	id, content := largeArchive(t, f)
	c, behind := behindCutter(t, f)
	seed := rand.Int63()
	t.Logf("seed of the breaks: %d", seed)
	random := rand.New(rand.NewSource(seed))
	const breaks = 4
	for i := range breaks {
		then := func() {}
		if i == 1 {
			aggregator := must(f.Process(fleet.Aggregator))(t)
			then = func() { aggregator.Kill() }
		}
		// Never enough bytes for the whole: a restart from zero would not complete.
		c.cutAfter(largeSize/16+random.Int63n(largeSize/8), then)
	}
	file := filepath.Join(f.Home, "broken.tar.gz")
	must(f.Muster("retrieve", id, "-o", file, "--context", behind))(t)
	if !bytes.Equal(must(os.ReadFile(file))(t), content) {
		t.Error("the archive differs")
	}
	passed, cuts := c.so()
	if cuts != breaks {
		t.Errorf("%d breaks, want %d", cuts, breaks)
	}
	// Bytes in flight at a break are sent twice.
	if most := int64(len(content)) + breaks*(8<<20); passed > most {
		t.Errorf("%d bytes were received for an archive of %d: the download restarted from zero", passed, len(content))
	}
}

// The program itself is killed: the next call resumes its partial download, and until then no file has the name of the
// whole.
func TestDownloadResumesAfterKillOfProgram(t *testing.T) {
	t.Parallel()
	f := up(t)
	id, content := largeArchive(t, f)
	c, behind := behindCutter(t, f)
	file := filepath.Join(f.Home, "killed.tar.gz")
	ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
	defer cancel()
	first := f.Command(ctx, "retrieve", id, "-o", file, "--context", behind)
	c.cutAfter(largeSize/2, func() { _ = first.Process.Kill() })
	if err := first.Run(); err == nil {
		t.Fatal("the program was not killed")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a part of the archive has the name of the whole")
	}
	left := must(os.Stat(file + ".part"))(t).Size()
	if left < largeSize/4 {
		t.Errorf("%d bytes of the partial download were left", left)
	}
	before, _ := c.so()
	must(f.Muster("retrieve", id, "-o", file, "--context", behind))(t)
	if !bytes.Equal(must(os.ReadFile(file))(t), content) {
		t.Error("the archive differs")
	}
	if after, _ := c.so(); after-before > int64(len(content))-left+1<<20 {
		t.Errorf("%d bytes were received although %d of %d were present", after-before, left, len(content))
	}
}

// A partial download is not trusted: damaged bytes are detected and downloaded again.
func TestDownloadWithDamagedPartCompletes(t *testing.T) {
	t.Parallel()
	f := up(t)
	id, content := largeArchive(t, f)
	file := filepath.Join(f.Home, "damaged.tar.gz")
	damaged := bytes.Clone(content[:largeSize/2])
	damaged[1000] ^= 1
	check(t, os.WriteFile(file+".part", damaged, 0o600))
	must(f.Muster("retrieve", id, "-o", file))(t)
	if !bytes.Equal(must(os.ReadFile(file))(t), content) {
		t.Error("the archive differs")
	}
}
