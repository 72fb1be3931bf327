package viewing

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/gateway/fleet"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// changes signals changes of runs. All event streams of a client share one watch of a run at the status service: a
// client with many streams must not cost as much as many clients. Safe for concurrent use.
type changes struct {
	status musterv1.StatusServiceClient
	log    *slog.Logger

	mu      sync.Mutex
	watches map[watched]*watch
}

type watched struct{ run, client string }

// watch is one watch and the streams that share it. It is guarded by changes.mu.
type watch struct {
	stop    context.CancelFunc
	signals map[chan struct{}]bool
}

func newChanges(status musterv1.StatusServiceClient, log *slog.Logger) *changes {
	return &changes{status: status, log: log, watches: map[watched]*watch{}}
}

// of signals changes of the run until the context ends; the first signal comes immediately, and one signal may stand
// for several changes. The channel is closed when there will be no more.
func (c *changes) of(ctx context.Context, run string) <-chan struct{} {
	signal := make(chan struct{}, 1)
	signal <- struct{}{} // what changed before the watch
	key := watched{run, fleet.HolderOf(ctx)}
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := c.watches[key]
	if shared == nil {
		watching, stop := context.WithCancel(context.WithoutCancel(ctx)) // with the client's identity
		shared = &watch{stop: stop, signals: map[chan struct{}]bool{}}
		c.watches[key] = shared
		go c.receive(watching, key, shared)
	}
	shared.signals[signal] = true
	context.AfterFunc(ctx, func() { c.leave(key, shared, signal) })
	return signal
}

// receive signals each message of the watch to its streams, and closes their channels after the last.
func (c *changes) receive(ctx context.Context, key watched, shared *watch) {
	messages, err := c.status.WatchStatus(ctx, &musterv1.WatchStatusRequest{Run: key.run})
	for err == nil {
		if _, err = messages.Recv(); err == nil || errors.Is(err, io.EOF) {
			c.signal(shared)
		}
	}
	if !errors.Is(err, io.EOF) && status.Code(err) != codes.Canceled {
		c.log.Debug("the watch of a run has ended", "run", key.run, "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(key, shared)
	for signal := range shared.signals {
		close(signal)
	}
	shared.signals = nil
}

func (c *changes) signal(shared *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for signal := range shared.signals {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
}

// leave removes a stream, and ends the watch with the last one.
func (c *changes) leave(key watched, shared *watch, signal chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(shared.signals, signal)
	if len(shared.signals) == 0 {
		c.forget(key, shared)
	}
}

// forget ends a watch; a later stream begins another. The lock is held.
func (c *changes) forget(key watched, shared *watch) {
	shared.stop()
	if c.watches[key] == shared {
		delete(c.watches, key)
	}
}
