package runs

import (
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// authorityLinger is how long the aggregator keeps the run CA after the end of the run.
const authorityLinger = time.Hour

// AuthorityEnd returns when a run CA is deleted, and with it every listener of the run; far in the future while the run
// is active.
func AuthorityEnd(run *musterv1.Run) time.Time {
	switch run.State {
	case musterv1.RunState_RUN_STATE_COMPLETE, musterv1.RunState_RUN_STATE_FAILED, musterv1.RunState_RUN_STATE_CANCELLED:
		return run.EndTime.AsTime().Add(authorityLinger)
	}
	return time.Now().AddDate(100, 0, 0)
}
