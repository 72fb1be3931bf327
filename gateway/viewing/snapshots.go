package viewing

import (
	"bytes"
	"compress/gzip"
	"context"
	"sync"

	"muster.example/gateway/fleet"
	"muster.example/gateway/limits"
	"muster.example/gateway/rest"
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
	load  *rest.StatusLoad

	mu      sync.Mutex
	waiting map[view]*flight // not begun
	running map[view]*flight
}

// flight is one fetch. The fields are guarded by snapshots.mu; result and err are set when it is done.
type flight struct {
	done    chan struct{}
	users   int
	readers map[string]int // the users of the result, by client
	result  *snapshot
	err     error
}

func newSnapshots(fetch func(context.Context, view) (*snapshot, error), load *rest.StatusLoad) *snapshots {
	return &snapshots{fetch: fetch, load: load, waiting: map[view]*flight{}, running: map[view]*flight{}}
}

// get returns a snapshot for a client, and a function that the caller calls when it has sent it.
func (s *snapshots) get(ctx context.Context, of view, client string) (*snapshot, func(), error) {
	s.mu.Lock()
	f := s.waiting[of]
	if f == nil {
		f = &flight{done: make(chan struct{}), readers: map[string]int{}}
		s.waiting[of] = f
		id, _ := fleet.IdentityOf(ctx)
		go s.run(fleet.WithIdentity(context.Background(), id.URI), of, f, s.running[of])
	}
	f.users++
	s.mu.Unlock()
	err := error(nil)
	select {
	case <-f.done:
		if err = s.begin(f, client); err == nil {
			return f.result, sync.OnceFunc(func() { s.end(f, client) }), nil
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(f)
	return nil, nil, err
}

// begin counts the result against the client's limit, once for all of its simultaneous requests.
func (s *snapshots) begin(f *flight, client string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.readers[client] == 0 {
		if err := s.load.Acquire(client, f.result.size); err != nil {
			return err
		}
	}
	f.readers[client]++
	return nil
}

// end reverses begin, and releases the result.
func (s *snapshots) end(f *flight, client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.readers[client]--; f.readers[client] == 0 {
		s.load.Release(client, f.result.size)
	}
	s.release(f)
}

// release ends one use. The lock is held.
func (s *snapshots) release(f *flight) {
	if f.users--; f.users == 0 && f.result != nil {
		s.load.Hold(-f.result.size)
		f.result = nil
	}
}

// run fetches after the earlier fetch of the same view has ended.
func (s *snapshots) run(ctx context.Context, of view, f, earlier *flight) {
	err := s.await(ctx, earlier)
	if err == nil {
		defer s.load.End()
	}
	s.mu.Lock()
	delete(s.waiting, of)
	s.running[of] = f
	s.mu.Unlock()
	if err == nil {
		err = s.load.Full()
	}
	var result *snapshot
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, limits.FetchTime, rest.ErrLate)
		result, err = s.fetch(ctx, of)
		cancel()
	}
	s.mu.Lock()
	if s.running[of] == f {
		delete(s.running, of)
	}
	if f.err = err; err == nil && f.users > 0 {
		f.result = result
		s.load.Hold(result.size)
	}
	s.mu.Unlock()
	close(f.done)
}

// await waits until a fetch may begin, and takes a slot.
func (s *snapshots) await(ctx context.Context, earlier *flight) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limits.FetchWait, rest.ErrQueued)
	defer cancel()
	if earlier != nil {
		select {
		case <-earlier.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s.load.Begin(ctx)
}
