// Package runs follows the aggregator's change feed: the runs and the revocations.
package runs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// Follower receives changes, on one goroutine.
type Follower interface {
	// Snapshot replaces everything: runs and revocations that it does not contain do not exist any more.
	Snapshot(runs []*musterv1.Run, revoked []string)
	// Changed reports a new or changed run.
	Changed(run *musterv1.Run)
	// Deleted reports a deleted run.
	Deleted(run string)
	// Revoked reports a revoked identity or certificate.
	Revoked(subject string)
	// Connected reports whether the feed is followed now, and otherwise why not.
	Connected(ok bool, fault string)
}

// silence is how long the feed may send nothing, not even a heartbeat.
const silence = 60 * time.Second

// Follow updates a follower until the context is done.
func Follow(ctx context.Context, changes musterv1.ChangeServiceClient, follower Follower, log *slog.Logger) {
	var at position
	var lastFault string
	for failures := 0; ctx.Err() == nil; failures++ {
		count, err := followOnce(ctx, changes, &at, follower)
		if ctx.Err() != nil {
			return
		}
		if status.Code(err) == codes.OutOfRange { // a foreign cursor: the aggregator's state was replaced
			at = position{}
		}
		if count > 0 {
			failures = 0
		}
		if fault := err.Error(); fault != lastFault || count > 0 {
			lastFault = fault
			log.Warn("change feed disconnected, it will be reconnected", "error", err)
		}
		follower.Connected(false, err.Error())
		select {
		case <-time.After(rand.N(min(200*time.Millisecond<<min(failures, 5), 3*time.Second))):
		case <-ctx.Done():
		}
	}
}

// followOnce follows one stream to its end, and returns the number of events. Its error is never nil.
func followOnce(ctx context.Context, changes musterv1.ChangeServiceClient, at *position, follower Follower) (count int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errors.New("the feed is silent")) })
	defer watch.Stop()
	stream, err := changes.FollowChanges(ctx, &musterv1.FollowChangesRequest{Cursor: at.cursor, Feed: at.feed, RunsOnly: true})
	if err != nil {
		return 0, err
	}
	state := events{follower: follower, at: at}
	for ; ; count++ {
		event, err := stream.Recv()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return count, cause
			}
			if errors.Is(err, io.EOF) {
				err = errors.New("the aggregator ended the feed")
			}
			return count, err
		}
		watch.Reset(silence)
		if count == 0 && at.cursor != nil {
			follower.Connected(true, "")
		}
		state.handle(event)
	}
}

// position is a cursor and the feed to which it belongs.
type position struct {
	feed   string
	cursor *int64
}

// events is the state of one stream.
type events struct {
	follower Follower
	at       *position // of the newest event that the follower received
	building *snapshot
}

// snapshot is an incomplete snapshot.
type snapshot struct {
	feed    string
	runs    []*musterv1.Run
	revoked []string
}

// handle handles an event; those of a snapshot together, at its end.
func (t *events) handle(event *musterv1.FollowChangesResponse) {
	switch e := event.Event.(type) {
	case *musterv1.FollowChangesResponse_SnapshotBegin_:
		t.building = &snapshot{feed: e.SnapshotBegin.Feed}
	case *musterv1.FollowChangesResponse_SnapshotEnd_:
		if t.building != nil {
			t.follower.Snapshot(t.building.runs, t.building.revoked)
			t.at.feed = t.building.feed
			t.building = nil
		}
		t.follower.Connected(true, "")
	case *musterv1.FollowChangesResponse_Run:
		if t.building != nil {
			t.building.runs = append(t.building.runs, e.Run)
		} else {
			t.follower.Changed(e.Run)
		}
	case *musterv1.FollowChangesResponse_RunDeleted_:
		t.follower.Deleted(e.RunDeleted.Run)
	case *musterv1.FollowChangesResponse_Revoked_:
		if t.building != nil {
			t.building.revoked = append(t.building.revoked, e.Revoked.Subject)
		} else {
			t.follower.Revoked(e.Revoked.Subject)
		}
	}
	if event.Cursor != nil && t.building == nil {
		t.at.cursor = event.Cursor
	}
}
