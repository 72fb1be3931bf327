package main

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"muster.example/gateway/limits"
)

// The version exists once for C++ and once for Go: they have to agree.
func TestVersionMatchesHeader(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"--version"}, &out, &errs); code != exitOK || errs.Len() > 0 {
		t.Fatal(code, errs.String())
	}
	header, err := os.ReadFile("../../../services/common/version.h")
	if err != nil {
		t.Fatal(err)
	}
	if want := "kVersion = \"" + strings.TrimSpace(out.String()) + "\";"; !strings.Contains(string(header), want) {
		t.Errorf("version.h does not contain %s", want)
	}
}

var kept [][]byte // on the heap

// collections allocates garbage in pieces while `live` bytes are kept, and returns the number of collections meanwhile.
func collections(live, garbage int64) uint32 {
	const piece = 1 << 20
	kept = append(kept[:0], make([]byte, live))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range garbage / piece {
		kept = append(kept[:1], make([]byte, piece))
	}
	runtime.ReadMemStats(&after)
	kept = nil
	return after.NumGC - before.NumGC
}

// tuned tunes the memory until the end of the test.
func tuned(t *testing.T) {
	t.Helper()
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	tuneMemory()
}

func TestHeapMayGrowBeforeCollection(t *testing.T) {
	tuned(t)
	const live = 32 << 20
	if count := collections(live, live*int64(limits.HeapGrowth)/100/2); count != 0 {
		t.Errorf("%d collections", count)
	}
}

func TestLiveHeapOfAllLimitsIsSeldomCollected(t *testing.T) {
	tuned(t)
	live := limits.Bodies + limits.Snapshots + limits.DeliveryBytes + int64(limits.Fetches)*limits.Response
	if count := collections(live, 512<<20); count > 5 {
		t.Errorf("%d collections with a live heap of %d MiB", count, live>>20)
	}
}
