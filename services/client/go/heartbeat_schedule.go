package muster

import (
	"math/rand/v2"
	"time"
)

const (
	firstInterval    = 10 * time.Second // before the first answer
	shortestInterval = 250 * time.Millisecond
	longestInterval  = time.Hour
	newsGap          = 250 * time.Millisecond
	answerLimit      = 30 * time.Second // or three intervals without an answer: the connection is lost
	reconnectLeast   = time.Second
	reconnectFirst   = 8 * time.Second
	reconnectMost    = 45 * time.Second
	longestPause     = 10 * time.Minute
)

// spread returns a time 20 % shorter or longer, at random.
func spread(d time.Duration) time.Duration { return d*8/10 + rand.N(d*4/10) }

// heartbeatSchedule computes the times of one connection's heartbeats. Not safe for concurrent use.
type heartbeatSchedule struct {
	interval   time.Duration
	regular    time.Time // when the next one is due without changes
	newsSent   time.Time
	unanswered time.Time // zero: everything is answered
	last       time.Time
	factor     float64 // of the interval after the last one
	probed     bool
}

func newHeartbeatSchedule(now time.Time) *heartbeatSchedule {
	return &heartbeatSchedule{interval: firstInterval, regular: now, unanswered: now, last: now, factor: 1}
}

func (s *heartbeatSchedule) sent(now time.Time, news bool) {
	s.last, s.probed = now, false
	s.factor = float64(spread(time.Second)) / float64(time.Second)
	s.regular = now.Add(time.Duration(float64(s.interval) * s.factor))
	if news {
		s.newsSent = now
	}
	if s.unanswered.IsZero() {
		s.unanswered = now
	}
}

// answered sets the interval that the server asks for; 0: unchanged.
func (s *heartbeatSchedule) answered(interval time.Duration) {
	if interval != 0 {
		s.interval = min(max(interval, shortestInterval), longestInterval)
	}
	s.regular = s.last.Add(time.Duration(float64(s.interval) * s.factor))
	s.unanswered = time.Time{}
}

// due returns the time until the next heartbeat; not positive: now.
func (s *heartbeatSchedule) due(now time.Time, news bool) time.Duration {
	if s.probed {
		return 0
	}
	wait := s.regular.Sub(now)
	if news {
		wait = min(wait, s.newsSent.Add(newsGap).Sub(now))
	}
	return wait
}

// answerTimeout returns how long to wait for an outstanding answer.
func (s *heartbeatSchedule) answerTimeout(now time.Time) time.Duration {
	if s.unanswered.IsZero() {
		return longestInterval
	}
	return s.unanswered.Add(max(answerLimit, 3*s.interval)).Sub(now)
}

// reconnect spreads new connections, so that a fleet does not reconnect in one wave: at random between 1 s
// and a limit that doubles from 8 s to 45 s. Not safe for concurrent use.
type reconnect struct{ tries int }

func (r *reconnect) reset() { r.tries = 0 }

// next returns at least the time that the server asked for, plus jitter.
func (r *reconnect) next(asked time.Duration) time.Duration {
	ceiling := min(reconnectFirst<<min(r.tries, 10), reconnectMost)
	r.tries++
	wait := reconnectLeast + rand.N(ceiling-reconnectLeast)
	if asked <= 0 {
		return wait
	}
	least := min(max(asked, reconnectLeast), longestPause)
	return least + min(wait, least)
}

// unserved returns the wait for a server without heartbeats: it doubles from 8 s to 10 min.
func (r *reconnect) unserved() time.Duration {
	ceiling := min(reconnectFirst<<min(r.tries, 10), longestPause)
	r.tries++
	return ceiling/2 + rand.N(ceiling/2)
}
