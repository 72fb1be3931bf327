package viewing

import (
	"bytes"
	"compress/gzip"
	"context"
	"sync"

	"muster.example/gateway/fleet"
	"muster.example/gateway/limits"
	"muster.example/services/client/go/peer"
)

// view is what a snapshot shows. Callers of one kind that may see a run see the same.
type view struct {
	run       string // "": the newest
	attention bool
	kind      peer.Kind
}

// snapshot is a fetched and encoded status.
type snapshot struct {
	answer *Answer
	pieces [][]byte // the JSON
	tag    string
	size   int64

	compress sync.Once
	zipped   []byte
}

// gzip returns the JSON in compressed form, which all readers share.
func (s *snapshot) gzip() []byte {
	s.compress.Do(func() {
		var out bytes.Buffer
		writer, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		for _, piece := range s.pieces {
			_, _ = writer.Write(piece)
		}
		_ = writer.Close()
		s.zipped = out.Bytes()
	})
	return s.zipped
}

// snapshots shares fetches: all callers of a view that wait for the next one get the same. A fetch begins after the
// call of each of its callers, so that no caller gets an older state than it could have fetched itself. Safe for
// concurrent use.
type snapshots struct {
	fetch func(ctx context.Context, of view) (*snapshot, error)
	slots chan struct{} // one for each fetch in progress

	mu      sync.Mutex
	waiting map[view]*flight // not begun
	running map[view]*flight
	held    int64 // bytes of snapshots that have users
	limit   int64
	over    func() // counts a refusal
}

// flight is one fetch. The fields are guarded by snapshots.mu until it is done.
type flight struct {
	done   chan struct{}
	users  int
	result *snapshot
	err    error
}

func newSnapshots(fetch func(context.Context, view) (*snapshot, error), over func()) *snapshots {
	return &snapshots{fetch: fetch, slots: make(chan struct{}, limits.Fetches), waiting: map[view]*flight{}, running: map[view]*flight{},
		limit: limits.Snapshots, over: over}
}

// get returns a snapshot, and a function that the caller calls when it has sent it.
func (s *snapshots) get(ctx context.Context, of view) (*snapshot, func(), error) {
	s.mu.Lock()
	f := s.waiting[of]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		s.waiting[of] = f
		id, _ := fleet.IdentityOf(ctx)
		go s.run(fleet.WithIdentity(context.Background(), id.URI), of, f, s.running[of])
	}
	f.users++
	s.mu.Unlock()
	var once sync.Once
	release := func() { once.Do(func() { s.release(f) }) }
	select {
	case <-f.done:
		if f.err != nil {
			release()
			return nil, nil, f.err
		}
		return f.result, release, nil
	case <-ctx.Done():
		release()
		return nil, nil, context.Cause(ctx)
	}
}

// release ends one use.
func (s *snapshots) release(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.users == 0 && f.result != nil {
		s.held -= f.result.size
		f.result = nil
	}
}

// run fetches after the earlier fetch of the same view has ended.
func (s *snapshots) run(ctx context.Context, of view, f, earlier *flight) {
	ctx, cancel := context.WithTimeoutCause(ctx, limits.FetchTime, errSilent)
	defer cancel()
	err := s.begin(ctx, earlier)
	s.mu.Lock()
	delete(s.waiting, of)
	s.running[of] = f
	if err == nil && s.held >= s.limit {
		err = errCrowded
		s.over()
	}
	s.mu.Unlock()
	var result *snapshot
	if err == nil {
		result, err = s.fetch(ctx, of)
	}
	s.mu.Lock()
	if s.running[of] == f {
		delete(s.running, of)
	}
	if f.err = err; err == nil && f.users > 0 {
		f.result = result
		s.held += result.size
	}
	s.mu.Unlock()
	close(f.done)
}

// begin waits until a fetch may begin; the slot is given back with the end of the context.
func (s *snapshots) begin(ctx context.Context, earlier *flight) error {
	if earlier != nil {
		select {
		case <-earlier.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case s.slots <- struct{}{}:
		context.AfterFunc(ctx, func() { <-s.slots })
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
