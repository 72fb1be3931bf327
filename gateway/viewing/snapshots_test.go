package viewing

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster.example/gateway/limits"
)

// fetches counts fetches of one second each.
type fetches struct {
	mu    sync.Mutex
	count int
	size  int64
}

func (f *fetches) fetch(ctx context.Context, _ view) (*snapshot, error) {
	f.mu.Lock()
	f.count++
	f.mu.Unlock()
	select {
	case <-time.After(time.Second):
		return &snapshot{size: f.size}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Hundreds of viewers cost as much as two; each gets a state that is not older than its request.
func TestSimultaneousReadersShareSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fetches{size: 1}
		s := newSnapshots(source.fetch, func() {})
		var readers sync.WaitGroup
		for i := range 500 {
			readers.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // the first fetch has begun
				asked := time.Now()
				got, release, err := s.get(t.Context(), view{run: "r"})
				if err != nil || got == nil || time.Since(asked) < time.Second {
					t.Errorf("%v after %v: %v", got, time.Since(asked), err)
				}
				release()
				release() // harmless
			})
		}
		readers.Wait()
		if source.count != 2 {
			t.Errorf("%d fetches", source.count)
		}
		if _, release, err := s.get(t.Context(), view{run: "r", attention: true}); err != nil || source.count != 3 {
			t.Errorf("another view: %d fetches, %v", source.count, err)
		} else {
			release()
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held != 0 || len(s.waiting) != 0 || len(s.running) != 0 || len(s.slots) != 0 {
			t.Errorf("%d bytes, %d waiting, %d running, %d slots remain", s.held, len(s.waiting), len(s.running), len(s.slots))
		}
	})
}

// A reader that goes away does not cancel the fetch of others; a fetch without readers keeps nothing.
func TestReaderThatLeavesDoesNotDisturbOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fetches{size: 5}
		s := newSnapshots(source.fetch, func() {})
		leaving, leave := context.WithCancel(t.Context())
		go func() {
			if _, _, err := s.get(leaving, view{}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		s.mu.Lock()
		held := s.held
		s.mu.Unlock()
		if held != 0 {
			t.Errorf("%d bytes of a snapshot without readers", held)
		}
		_, release, err := s.get(t.Context(), view{})
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		if s.held != 5 {
			t.Errorf("%d bytes", s.held)
		}
		s.mu.Unlock()
		release()
	})
}

// Slow readers bound the memory, not the readers of other runs.
func TestSnapshotsOfSlowReadersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, refused := &fetches{size: limits.Snapshots}, 0
		s := newSnapshots(source.fetch, func() { refused++ })
		_, release, err := s.get(t.Context(), view{run: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.get(t.Context(), view{run: "b"}); !errors.Is(err, errCrowded) || refused != 1 {
			t.Errorf("%v, %d refused", err, refused)
		}
		release()
		if _, release, err = s.get(t.Context(), view{run: "b"}); err != nil {
			t.Error(err)
		}
		release()
		synctest.Wait()
	})
}

// No more than a few runs are fetched at the same time; the others wait, and end with a reason.
func TestSimultaneousFetchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(func(ctx context.Context, _ view) (*snapshot, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}, func() {})
		var readers sync.WaitGroup
		for i := range limits.Fetches + 1 {
			readers.Go(func() {
				if _, _, err := s.get(t.Context(), view{run: string(rune('a' + i))}); !errors.Is(err, errSilent) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		s.mu.Lock()
		if len(s.slots) != limits.Fetches || len(s.waiting) != 1 {
			t.Errorf("%d fetches, %d wait", len(s.slots), len(s.waiting))
		}
		s.mu.Unlock()
		readers.Wait()
	})
}

func TestAcceptedEncodings(t *testing.T) {
	for text, want := range map[string]bool{"": false, "gzip": true, "br, gzip": true, "gzip;q=0": false, "gzip; q=0.5": true,
		"br;q=1.0, gzip;q=0.8, *;q=0.1": true, "x-gzip": false, "gzip;q=x": false} {
		if got := acceptsGzip(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
