package fleet

import "time"

const (
	// paceCredit is how much of the past a pacer makes up for: a timer on a busy machine fires late, and the bytes that
	// could have passed meanwhile then pass immediately.
	paceCredit = 20 * time.Millisecond
	// paceAhead is how early bytes may pass, since timers are hardly finer.
	paceAhead = time.Millisecond
)

// pacer limits bytes to a rate. It keeps the time that the bytes so far need at this rate, not the time at which the
// last ones passed, so that late timers and small pieces do not lower the rate.
type pacer struct {
	free time.Time // when the bytes so far have been sent at the rate
}

// due returns when the next bytes may pass.
func (p *pacer) due() time.Time { return p.free.Add(-paceAhead) }

// pass counts bytes that pass at `now`.
func (p *pacer) pass(now time.Time, bytes int, rate int64) {
	if earliest := now.Add(-paceCredit); p.free.Before(earliest) {
		p.free = earliest
	}
	p.free = p.free.Add(time.Duration(bytes) * time.Second / time.Duration(rate))
}
