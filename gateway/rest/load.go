package rest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
)

// The time-outs of a snapshot, and of the wait for its begin.
var (
	ErrLate   = fmt.Errorf("no answer within %v", limits.FetchTime)
	ErrQueued = fmt.Errorf("earlier requests were not answered within %v", limits.FetchWait)
)

// UnreadError refuses bytes of the status, because of earlier ones that were not read.
type UnreadError struct {
	Holder string // has most of them
	All    bool   // those of all clients are too many
}

// Error implements error.
func (e *UnreadError) Error() string { return "too many unread answers, most of " + e.Holder }

// StatusLoad bounds what readers of the status occupy: the snapshots that are prepared at a time, and the bytes that
// clients have not read. GET /status, its event streams and the watches of a status share it. Safe for concurrent use.
type StatusLoad struct {
	slots   chan struct{} // one for each snapshot in preparation
	held    atomic.Int64  // bytes that are being sent
	holders limits.Quota  // the bytes that each client has not read

	mu    sync.Mutex
	turns map[string]*turns // of clients with watches whose snapshots are in preparation, or wait for it
}

// turns are the preparations of one client.
type turns struct {
	slots chan struct{}
	users int
}

// NewStatusLoad returns one without readers.
func NewStatusLoad(metrics *inspect.Metrics) *StatusLoad {
	l := &StatusLoad{slots: make(chan struct{}, limits.Fetches), turns: map[string]*turns{},
		holders: limits.Quota{All: math.MaxInt64, Each: limits.SnapshotsOfIdentity}}
	metrics.Sample("snapshot_bytes", "Bytes of the status that are sent to readers.", func() float64 { return float64(l.Held()) })
	return l
}

// Begin waits until a snapshot may be prepared; End ends its preparation.
func (l *StatusLoad) Begin(ctx context.Context) error { return enter(ctx, l.slots) }

// End ends a preparation that has begun.
func (l *StatusLoad) End() { <-l.slots }

// BeginWatch waits until the next message of a client's watch may be prepared: a client with many watches must not delay
// others. The function ends the preparation.
func (l *StatusLoad) BeginWatch(ctx context.Context, client string) (end func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limits.FetchWait, ErrQueued)
	defer cancel()
	own := l.join(client)
	if err := enter(ctx, own.slots); err != nil {
		l.leave(client, own)
		return nil, err
	}
	if err := l.Begin(ctx); err != nil {
		<-own.slots
		l.leave(client, own)
		return nil, err
	}
	return func() {
		l.End()
		<-own.slots
		l.leave(client, own)
	}, nil
}

func (l *StatusLoad) join(client string) *turns {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.turns[client]
	if own == nil {
		own = &turns{slots: make(chan struct{}, limits.FetchesOfIdentity)}
		l.turns[client] = own
	}
	own.users++
	return own
}

func (l *StatusLoad) leave(client string, own *turns) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.turns, client)
	}
}

// enter takes a slot.
func enter(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Held returns the bytes that are being sent to readers.
func (l *StatusLoad) Held() int64 { return l.held.Load() }

// Hold counts bytes for all clients together; a negative number reverses it.
func (l *StatusLoad) Hold(n int64) { l.held.Add(n) }

// Full refuses more bytes if those of all clients are too many.
func (l *StatusLoad) Full() error {
	if l.Held() >= limits.Snapshots {
		return &UnreadError{Holder: l.holders.Largest(), All: true}
	}
	return nil
}

// Reserve counts bytes for all clients together, or refuses them if they would be too many. A message that is larger than
// the limit is sent if there is no other. Hold corrects the number, or reverses it.
func (l *StatusLoad) Reserve(n int64) error {
	for {
		held := l.held.Load()
		if held > 0 && held+n > limits.Snapshots {
			return &UnreadError{Holder: l.holders.Largest(), All: true}
		}
		if l.held.CompareAndSwap(held, held+n) {
			return nil
		}
	}
}

// Acquire counts bytes against a client's limit. A message that is larger than the limit is sent if the client holds no
// other.
func (l *StatusLoad) Acquire(client string, n int64) error {
	if !l.holders.Acquire(client, min(n, l.holders.Each)) {
		return &UnreadError{Holder: client}
	}
	return nil
}

// Release reverses Acquire.
func (l *StatusLoad) Release(client string, n int64) {
	l.holders.Release(client, min(n, l.holders.Each))
}

// OwnError returns the errors of StatusLoad and of a stop as those of services, with a reason and a next step; others are
// unchanged.
func OwnError(err error) error {
	unread := (*UnreadError)(nil)
	switch {
	case errors.As(err, &unread) && unread.All:
		return withProblem(codes.ResourceExhausted, TooManyUnreadBytes(limits.Snapshots), time.Second)
	case errors.As(err, &unread):
		return withProblem(codes.ResourceExhausted, TooManyStatusBytes(limits.SnapshotsOfIdentity), time.Second)
	case errors.Is(err, ErrLate), errors.Is(err, ErrQueued):
		return withProblem(codes.Unavailable, StatusSlow(err.Error()), 5*time.Second)
	case errors.Is(err, errStopping):
		return withProblem(codes.Unavailable, GatewayStopping(), 0)
	}
	return err
}

func withProblem(code codes.Code, p Problem, retryAfter time.Duration) error {
	return withReason(status.New(code, p.Message), p, retryAfter).Err()
}
