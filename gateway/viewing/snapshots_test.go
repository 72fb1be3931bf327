package viewing

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	"muster.example/gateway/rest"
	"muster.example/services/client/go/peer"
)

func load() *rest.StatusLoad { return rest.NewStatusLoad(inspect.NewMetrics()) }

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
		s := newSnapshots(source.fetch, load())
		var readers sync.WaitGroup
		for i := range 500 {
			readers.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // the first fetch has begun
				asked := time.Now()
				got, release, err := s.get(t.Context(), view{run: "r"}, "v")
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
		if _, release, err := s.get(t.Context(), view{run: "r", attention: true}, "v"); err != nil || source.count != 3 {
			t.Errorf("another view: %d fetches, %v", source.count, err)
		} else {
			release()
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.load.Held() != 0 || len(s.waiting) != 0 || len(s.running) != 0 {
			t.Errorf("%d bytes, %d waiting, %d running remain", s.load.Held(), len(s.waiting), len(s.running))
		}
	})
}

// A reader that goes away does not cancel the fetch of others; a fetch without readers keeps nothing.
func TestReaderThatLeavesDoesNotDisturbOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fetches{size: 5}
		s := newSnapshots(source.fetch, load())
		leaving, leave := context.WithCancel(t.Context())
		go func() {
			if _, _, err := s.get(leaving, view{}, "v"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		if held := s.load.Held(); held != 0 {
			t.Errorf("%d bytes of a snapshot without readers", held)
		}
		_, release, err := s.get(t.Context(), view{}, "v")
		if err != nil {
			t.Fatal(err)
		}
		if held := s.load.Held(); held != 5 {
			t.Errorf("%d bytes", held)
		}
		release()
	})
}

// Slow readers bound the memory, not the readers of other runs.
func TestSnapshotsOfSlowReadersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fetches{size: limits.Snapshots / 2}
		s := newSnapshots(source.fetch, load())
		var releases []func()
		for _, client := range []string{"a", "b"} {
			_, release, err := s.get(t.Context(), view{run: client}, client)
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		unread := (*rest.UnreadError)(nil)
		if _, _, err := s.get(t.Context(), view{run: "c"}, "c"); !errors.As(err, &unread) || !unread.All || unread.Holder == "c" {
			t.Error(err)
		}
		for _, release := range releases {
			release()
		}
		_, release, err := s.get(t.Context(), view{run: "c"}, "c")
		if err != nil {
			t.Error(err)
		}
		release()
		synctest.Wait()
	})
}

// The limit of a client counts a snapshot once, however often the client reads it at a time.
func TestClientMayReadSnapshotSeveralTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fetches{size: limits.SnapshotsOfIdentity + 1}
		s := newSnapshots(source.fetch, load())
		var readers sync.WaitGroup
		readers.Go(func() {
			if _, release, err := s.get(t.Context(), view{run: "r"}, "w"); err == nil {
				release()
			}
		})
		synctest.Wait() // the next fetch is for all others
		releases := make(chan func(), 20)
		for range cap(releases) {
			readers.Go(func() {
				_, release, err := s.get(t.Context(), view{run: "r"}, "v")
				if err != nil {
					t.Error(err)
					release = func() {}
				}
				releases <- release
			})
		}
		readers.Wait()
		if _, _, err := s.get(t.Context(), view{run: "r"}, "v"); !errors.As(err, new(*rest.UnreadError)) {
			t.Errorf("a later snapshot: %v", err)
		}
		for range cap(releases) {
			(<-releases)()
		}
		if s.load.Held() != 0 {
			t.Errorf("%d bytes remain", s.load.Held())
		}
		if err := s.load.Acquire("v", limits.SnapshotsOfIdentity); err != nil {
			t.Errorf("bytes of the client remain: %v", err)
		}
	})
}

// unreadWriter is the response of a client that reads nothing.
type unreadWriter struct {
	*httptest.ResponseRecorder
	end <-chan struct{}
}

func (w unreadWriter) Write(p []byte) (int, error) {
	<-w.end
	return 0, io.ErrClosedPipe
}

// A viewer that does not read its answers is refused, named in the log, and takes the status from no other client.
func TestSlowReaderDoesNotRefuseOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		metrics := inspect.NewMetrics()
		s := New(Settings{}, nil, nil, nil, rest.NewWatches(metrics), nil, nil, metrics, slog.New(slog.NewTextHandler(&log, nil)))
		s.snapshots = newSnapshots(func(context.Context, view) (*snapshot, error) {
			return &snapshot{tag: `"t"`, pieces: [][]byte{[]byte("{}")}, size: limits.SnapshotsOfIdentity}, nil
		}, s.watches.Load())
		get := func(uri string, w http.ResponseWriter) {
			id, err := peer.Parse(uri)
			if err != nil {
				t.Fatal(err)
			}
			certificate := &x509.Certificate{SerialNumber: big.NewInt(0xabc)}
			r := httptest.NewRequest("GET", "/status", nil)
			s.serveStatus(w, r.WithContext(fleet.WithClient(t.Context(), certificate, id)), id.Run)
		}
		const viewer, operator = "spiffe://00000000000000aa.f/viewer", "spiffe://f/user/u"
		end := make(chan struct{})
		var slow sync.WaitGroup
		var refused []*httptest.ResponseRecorder
		for range limits.Snapshots/limits.SnapshotsOfIdentity + 1 {
			answer := httptest.NewRecorder()
			refused = append(refused, answer)
			slow.Go(func() { get(viewer, unreadWriter{answer, end}) })
			synctest.Wait() // each gets another snapshot
		}
		answer := httptest.NewRecorder()
		if get(operator, answer); answer.Code != http.StatusOK {
			t.Errorf("an operator: %d %s", answer.Code, answer.Body)
		}
		close(end)
		slow.Wait()
		for i, one := range refused {
			if want := i > 0; (one.Code == http.StatusTooManyRequests) != want {
				t.Errorf("request %d of the viewer: %d", i, one.Code)
			}
		}
		if !strings.Contains(log.String(), viewer+" :0abc") {
			t.Errorf("the log does not name the viewer: %q", log.String())
		}
		if held := s.watches.Load().Held(); held != 0 {
			t.Errorf("%d bytes remain", held)
		}
	})
}

// No more than a few runs are fetched at the same time; the others wait, and end with a reason.
func TestSimultaneousFetchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetches atomic.Int64
		s := newSnapshots(func(ctx context.Context, _ view) (*snapshot, error) {
			fetches.Add(1)
			defer fetches.Add(-1)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}, load())
		var readers sync.WaitGroup
		var queued atomic.Int64
		for i := range 3*limits.Fetches + 1 {
			readers.Go(func() {
				_, _, err := s.get(t.Context(), view{run: string(rune('a' + i))}, "v")
				if errors.Is(err, rest.ErrQueued) {
					queued.Add(1)
				} else if !errors.Is(err, rest.ErrLate) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for waiting := 2*limits.Fetches + 1; waiting > limits.Fetches; waiting -= limits.Fetches {
			s.mu.Lock()
			if int(fetches.Load()) != limits.Fetches || len(s.waiting) != waiting {
				t.Errorf("%d fetches, %d wait", fetches.Load(), len(s.waiting))
			}
			s.mu.Unlock()
			time.Sleep(limits.FetchTime)
			synctest.Wait()
		}
		readers.Wait()
		if queued.Load() == 0 {
			t.Error("all fetches began")
		}
	})
}

// A fetch has its whole time also after an earlier fetch that took as long.
func TestFetchHasItsTimeAfterEarlierFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(func(ctx context.Context, _ view) (*snapshot, error) {
			select {
			case <-time.After(limits.FetchTime - time.Second):
				return &snapshot{}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}, load())
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				_, release, err := s.get(t.Context(), view{run: "r"}, "v")
				if err != nil {
					t.Error(err)
					return
				}
				release()
			})
			synctest.Wait()
		}
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
