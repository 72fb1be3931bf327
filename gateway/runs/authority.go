package runs

import (
	"time"

	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// AuthorityEnd returns when a run CA is deleted, and with it every listener of the run; far in the future while the run
// is active, in the past if the run CA was deleted early.
func AuthorityEnd(run *musterv1.Run) time.Time {
	if end, ended := Ended(run); ended {
		if run.RunCaDeleted {
			return time.Time{}
		}
		return end.Add(limits.AuthorityLinger)
	}
	return time.Now().AddDate(100, 0, 0)
}

// Ended returns when a run ended, and whether it has.
func Ended(run *musterv1.Run) (end time.Time, ended bool) {
	switch run.State {
	case musterv1.RunState_RUN_STATE_COMPLETE, musterv1.RunState_RUN_STATE_FAILED, musterv1.RunState_RUN_STATE_CANCELLED:
		return run.EndTime.AsTime(), true
	}
	return time.Time{}, false
}
