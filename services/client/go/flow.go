package muster

import (
	"context"
	"fmt"
	"io"
)

// flow keeps the sender within the server's window. One goroutine uses it; acknowledgements come by
// the channel, which the receiver closes when the stream is over.
type flow struct {
	acked, sent, window int64
	acks                <-chan int64
	progress            func(written int64)
}

// wait returns when `room` more bytes may be sent; io.EOF when the stream is over.
func (f *flow) wait(ctx context.Context, room int64) error {
	for {
		select {
		case ack, ok := <-f.acks:
			if err := f.take(ack, ok); err != nil {
				return err
			}
			continue
		default:
		}
		if f.sent+room <= f.acked+f.window {
			return nil
		}
		select {
		case ack, ok := <-f.acks:
			if err := f.take(ack, ok); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *flow) take(ack int64, open bool) error {
	if !open {
		return io.EOF
	}
	if ack > f.sent {
		return fmt.Errorf("the server acknowledged byte %d, sent were %d", ack, f.sent)
	}
	f.acked = max(f.acked, ack)
	f.progress(f.acked)
	return nil
}

// drain takes what came before the stream was over.
func (f *flow) drain() {
	for ack := range f.acks {
		if f.take(ack, true) != nil {
			return
		}
	}
}
