package muster

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	backoffBase = 500 * time.Millisecond
	backoffMax  = 30 * time.Second
)

// backoff counts attempts and waits between them: exponential with full jitter, at least as long as the
// server asked for. Not safe for concurrent use.
type backoff struct {
	limit time.Duration // of one wait; 0: backoffMax
	tries int
}

func (b *backoff) reset() { b.tries = 0 }

// wait waits; it returns the context's error when the context is done.
func (b *backoff) wait(ctx context.Context, atLeast time.Duration) error {
	limit := b.limit
	if limit == 0 {
		limit = backoffMax
	}
	ceiling := min(backoffBase<<min(b.tries, 16), limit)
	b.tries++
	timer := time.NewTimer(max(rand.N(ceiling), atLeast))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
