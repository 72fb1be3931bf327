package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
)

func newWatchServer() *Server {
	metrics := inspect.NewMetrics()
	return &Server{watches: NewWatches(metrics), metrics: metrics, log: slog.New(slog.DiscardHandler)}
}

func begin(t *testing.T, s *Server, user string) (*statusWatch, error) {
	return s.beginStatusWatch(fleet.WithIdentity(t.Context(), "spiffe://f/user/"+user), "10.0.0.1:5")
}

// A client takes only a few of the preparations, whose number is bounded for all clients.
func TestPreparationsOfWatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWatchServer()
		var begun []*statusWatch
		for i := range limits.Fetches / limits.FetchesOfIdentity {
			for range limits.FetchesOfIdentity {
				w, err := begin(t, s, string(rune('a'+i)))
				if err != nil {
					t.Fatal(err)
				}
				begun = append(begun, w)
			}
		}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			w, err := begin(t, s, "other")
			if err != nil {
				t.Error(err)
				return
			}
			w.close()
		})
		synctest.Wait()
		begun[len(begun)-1].prepared() // of another client than the next
		waiting.Wait()
		if _, err := begin(t, s, "a"); !errors.Is(err, ErrQueued) {
			t.Errorf("beyond the preparations of a client: %v", err)
		}
		for _, w := range begun {
			w.close()
		}
		if l := s.watches.load; len(l.slots) != 0 || len(l.turns) != 0 {
			t.Errorf("%d preparations, %d clients remain", len(l.slots), len(l.turns))
		}
	})
}

// A service that does not answer does not keep other watches waiting for ever.
func TestWatchOfSilentServiceEndsWithReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := begin(t, newWatchServer(), "u")
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		started := time.Now()
		<-w.ctx.Done()
		answer := muster.AsError(endOf(w.ctx, status.FromContextError(w.ctx.Err()).Err()))
		if time.Since(started) != limits.FetchTime || answer.Reason != "STATUS_SLOW" || answer.RetryAfter == 0 {
			t.Errorf("after %v: %+v", time.Since(started), answer)
		}
		detail := streamError(w.ctx, status.FromContextError(w.ctx.Err()).Err())
		if detail.Code() != codes.Unavailable || !strings.Contains(detail.Message(), "no answer within") {
			t.Error(detail)
		}
	})
}

// A watch that waits for changes, or for its reader, prepares nothing.
func TestWatchKeepsItsTurnOnlyWithinSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWatchServer()
		w, err := begin(t, s, "u")
		if err != nil {
			t.Fatal(err)
		}
		full := &musterv1.WatchStatusResponse{Cursor: "c", Pairs: make([]*musterv1.PairStatus, limits.WatchPairs)}
		for i := range full.Pairs {
			full.Pairs[i] = &musterv1.PairStatus{}
		}
		for i, c := range []struct {
			message *musterv1.WatchStatusResponse
			after   int
		}{
			{&musterv1.WatchStatusResponse{Reset_: true}, 1}, {full, 1}, {&musterv1.WatchStatusResponse{Cursor: "c"}, 0},
			{&musterv1.WatchStatusResponse{Cursor: "c"}, 0},
		} {
			text, err := w.encode(c.message)
			if err != nil || !strings.HasPrefix(string(text), `{"result":{`) || !strings.HasSuffix(string(text), "}}") {
				t.Fatalf("message %d: %.100s %v", i, text, err)
			}
			if l := s.watches.load; len(l.slots) != 0 || l.Held() < int64(len(text)) {
				t.Errorf("message %d is sent: %d preparations, %d of %d bytes", i, len(l.slots), l.Held(), len(text))
			}
			w.sent()
			if l := s.watches.load; len(l.slots) != c.after || l.Held() != 0 {
				t.Errorf("after message %d: %d preparations, %d bytes", i, len(l.slots), l.Held())
			}
		}
		time.Sleep(2 * limits.FetchTime)
		if w.ctx.Err() != nil {
			t.Errorf("a watch without changes has ended: %v", context.Cause(w.ctx))
		}
		w.close()
	})
}

// The bytes of watches and of answers count together.
func TestUnreadAnswersRefuseMessagesOfWatches(t *testing.T) {
	s := newWatchServer()
	message := &musterv1.WatchStatusResponse{Cursor: "c"}
	l := s.watches.load
	for _, c := range []struct {
		occupy, release func()
		all             bool
	}{
		{func() { _ = l.Acquire("spiffe://f/user/u", limits.SnapshotsOfIdentity) },
			func() { l.Release("spiffe://f/user/u", limits.SnapshotsOfIdentity) }, false},
		{func() { l.Hold(limits.Snapshots) }, func() { l.Hold(-limits.Snapshots) }, true},
	} {
		w, err := begin(t, s, "u")
		if err != nil {
			t.Fatal(err)
		}
		c.occupy()
		unread := (*UnreadError)(nil)
		if _, err := w.encode(message); !errors.As(err, &unread) || unread.All != c.all {
			t.Errorf("all clients %v: %v", c.all, err)
		}
		c.release()
		if _, err := w.encode(message); err != nil {
			t.Error(err)
		}
		w.close()
	}
	if l.Held() != 0 || len(l.slots) != 0 || l.holders.Held() != 0 {
		t.Errorf("%d bytes, %d preparations remain", l.Held(), len(l.slots))
	}
}

// After a change of a run, the watches of all clients encode it at the same time.
func TestMessagesOfManyWatchesStayWithinBytesOfAll(t *testing.T) {
	s := newWatchServer()
	message := &musterv1.WatchStatusResponse{Cursor: "c"}
	for range limits.WatchPairs - 1 {
		message.Pairs = append(message.Pairs, &musterv1.PairStatus{Plugin: "hostfacts", Node: "node-0001.example"})
	}
	l := s.watches.load
	text, err := (&statusWatch{load: l, client: "u"}).encode(message)
	if err != nil || l.Held() != int64(cap(text)) || estimate(message) < l.Held() || estimate(message) > 4*l.Held() {
		t.Fatalf("%v: %d bytes are held, %d were estimated", err, l.Held(), estimate(message))
	}
	l.Hold(limits.Snapshots - estimate(message) - l.Held())
	var encoded atomic.Int64
	var watching sync.WaitGroup
	for i := range 20 {
		w := &statusWatch{load: l, client: fmt.Sprint(i), refused: func(*UnreadError) {}}
		watching.Go(func() {
			text, err := w.encode(message)
			if unread := (*UnreadError)(nil); err == nil {
				encoded.Add(int64(cap(text)))
			} else if !errors.As(err, &unread) || !unread.All {
				t.Error(err)
			}
		})
	}
	watching.Wait()
	if encoded.Load() == 0 || l.Held() > limits.Snapshots {
		t.Errorf("%d bytes are encoded, %d held", encoded.Load(), l.Held())
	}
}
