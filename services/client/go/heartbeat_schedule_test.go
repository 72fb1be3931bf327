package muster

import (
	"testing"
	"time"
)

func TestHeartbeatsAreSpreadByAFifth(t *testing.T) {
	now := time.Now()
	s := newHeartbeatSchedule(now)
	if s.due(now, false) > 0 {
		t.Error("the first heartbeat waits")
	}
	shortest, longest := time.Hour, time.Duration(0)
	for range 1000 {
		s.sent(now, false)
		s.answered(100 * time.Second)
		shortest, longest = min(shortest, s.due(now, false)), max(longest, s.due(now, false))
	}
	if shortest < 80*time.Second || shortest > 85*time.Second || longest > 120*time.Second || longest < 115*time.Second {
		t.Errorf("from %v to %v", shortest, longest)
	}
}

func TestScheduleHandlesChangesProbesAndSilence(t *testing.T) {
	now := time.Now()
	s := newHeartbeatSchedule(now)
	if s.answerTimeout(now) != answerLimit {
		t.Errorf("a silent connection is closed after %v", s.answerTimeout(now))
	}
	s.sent(now, true)
	if got := s.due(now, true); got != newsGap {
		t.Errorf("a second change is due in %v", got)
	}
	if got := s.due(now.Add(time.Second), true); got > 0 {
		t.Errorf("a change is due in %v", got)
	}
	s.probed = true
	if s.due(now, false) > 0 {
		t.Error("a probe waits")
	}
	s.sent(now, false)
	if s.due(now, false) <= 0 {
		t.Error("a probe is answered twice")
	}
	for _, absurd := range []time.Duration{-time.Second, 1, 1 << 62} {
		s.sent(now, false)
		s.answered(absurd)
		if got := s.due(now, false); got < 200*time.Millisecond || got > 2*time.Hour {
			t.Errorf("%v became %v", absurd, got)
		}
	}
}

func TestReconnectsAreSpread(t *testing.T) {
	r := reconnect{}
	if first := r.next(0); first < time.Second || first > 8*time.Second {
		t.Errorf("the first after %v", first)
	}
	longest := time.Duration(0)
	for range 1000 {
		next := r.next(0)
		if next < time.Second || next > 45*time.Second {
			t.Errorf("after %v", next)
		}
		longest = max(longest, next)
	}
	if longest < 41*time.Second {
		t.Errorf("the longest wait is %v", longest)
	}
	if asked := r.next(100 * time.Second); asked < 100*time.Second || asked > 200*time.Second {
		t.Errorf("asked for 100 s it is %v", asked)
	}
	if later := r.unserved(); later < 5*time.Minute || later > 10*time.Minute {
		t.Errorf("%v", later)
	}
}
