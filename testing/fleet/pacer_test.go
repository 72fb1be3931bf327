package fleet

import (
	"testing"
	"time"
)

// paced returns the bytes per second that pass in 10 simulated seconds in pieces of `piece` bytes, if each wait lasts
// `late` longer than required. It fails if more bytes pass than the rate and its credit permit.
func paced(t *testing.T, rate int64, piece int, late time.Duration) float64 {
	t.Helper()
	begin := time.Unix(0, 0)
	now, total := begin, int64(0)
	var p pacer
	for now.Sub(begin) < 10*time.Second {
		if due := p.due(); due.After(now) {
			now = due.Add(late)
		}
		p.pass(now, piece, rate)
		total += int64(piece)
		most := 1.001*float64(rate)*(now.Sub(begin)+paceCredit+paceAhead).Seconds() + float64(piece)
		if float64(total) > most {
			t.Fatalf("%d bytes passed within %v, more than %.0f", total, now.Sub(begin), most)
		}
	}
	return float64(total) / now.Sub(begin).Seconds()
}

func TestPacerReachesItsRateWithLateTimers(t *testing.T) {
	for _, one := range []struct {
		rate  int64
		piece int
	}{{1 << 10, 1}, {256 << 10, linkPiece}, {125_000_000, 1000}, {125_000_000, linkPiece}} {
		for _, late := range []time.Duration{0, time.Millisecond, 15 * time.Millisecond} {
			if got := paced(t, one.rate, one.piece, late) / float64(one.rate); got < 0.98 || got > 1.02 {
				t.Errorf("rate %d, pieces of %d, timers %v late: %.3f of the rate passes", one.rate, one.piece, late, got)
			}
		}
	}
}

func TestPacerMakesUpForItsCreditOnly(t *testing.T) {
	const rate = 1_000_000
	now := time.Unix(1000, 0) // long after the bytes before
	var p pacer
	passed := 0
	for !p.due().After(now) {
		p.pass(now, 1000, rate)
		passed += 1000
	}
	if most := rate * int(paceCredit+paceAhead) / int(time.Second); passed > most+1000 || passed < most {
		t.Errorf("%d bytes passed at once after a pause, want about %d", passed, most)
	}
}
