package logs

import (
	"sync"
	"time"

	"muster.example/gateway/limits"
)

// Limiter limits the lines of events that peers cause. Safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	notes map[string]*note // by cause
}

type note struct {
	written time.Time
	since   int
}

// Interval is the least time between two lines of one cause. Strangers choose their certificates, so
// limits.LogCauses bounds the causes within it.
const Interval = time.Minute

// Note calls `write` with the number of events, unless one of the same cause was written within the minute. The cause is
// the reason and the subject; with too many causes, the reason alone.
func (l *Limiter) Note(reason, subject string, write func(count int)) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	cause := reason + " " + subject
	if l.notes[cause] == nil && len(l.notes) >= limits.LogCauses && !l.removeOld(now) {
		cause = reason
	}
	n := l.notes[cause]
	if n == nil {
		if l.notes == nil {
			l.notes = map[string]*note{}
		}
		n = &note{}
		l.notes[cause] = n
	}
	n.since++
	if now.Sub(n.written) >= Interval {
		write(n.since)
		n.written, n.since = now, 0
	}
}

// removeOld removes the causes without a line within the interval, and reports whether there were any.
func (l *Limiter) removeOld(now time.Time) bool {
	before := len(l.notes)
	for cause, n := range l.notes {
		if now.Sub(n.written) >= Interval {
			delete(l.notes, cause)
		}
	}
	return len(l.notes) < before
}
