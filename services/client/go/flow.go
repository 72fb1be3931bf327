package muster

import (
	"context"
	"fmt"
	"io"
	"time"
)

// shareWait bounds how long a sender that has used its share of the client's memory waits for an
// acknowledgement before it uses the server's whole window: a server need not acknowledge each chunk.
const shareWait = 2 * time.Second

// flow keeps the sender within the server's window. One goroutine uses it; acknowledgements arrive over the
// channel, which the receiver closes at the end of the stream.
type flow struct {
	acked, sent, window int64
	acks                <-chan int64
	progress            func(written int64)
	// share returns how much of the window to use while acknowledgements arrive quickly.
	share func() int64
}

// wait returns when `room` more bytes may be sent; io.EOF at the end of the stream.
func (f *flow) wait(ctx context.Context, room int64) error {
	var patience <-chan time.Time
	for {
		select {
		case ack, ok := <-f.acks:
			if err := f.receive(ack, ok); err != nil {
				return err
			}
			continue
		default:
		}
		flying := f.sent + room - f.acked
		if flying <= max(min(f.share(), f.window), room) {
			return nil
		}
		if flying <= f.window && patience == nil {
			timer := time.NewTimer(shareWait)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case ack, ok := <-f.acks:
			if err := f.receive(ack, ok); err != nil {
				return err
			}
		case <-patience:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *flow) receive(ack int64, open bool) error {
	if !open {
		return io.EOF
	}
	if ack > f.sent {
		return fmt.Errorf("the server acknowledged byte %d, but %d were sent", ack, f.sent)
	}
	f.acked = max(f.acked, ack)
	f.progress(f.acked)
	return nil
}

// drain receives the remaining acknowledgements of an ended stream.
func (f *flow) drain() {
	for ack := range f.acks {
		if f.receive(ack, true) != nil {
			return
		}
	}
}
