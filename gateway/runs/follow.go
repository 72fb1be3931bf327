// Package runs follows the aggregator's change feed: which runs there are, and who is revoked.
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

	musterv1 "muster.example/gateway/gen/muster/v1"
)

// Follower is told what changes, by one goroutine.
type Follower interface {
	// Snapshot is the whole truth: what was known before and is not in it is gone.
	Snapshot(runs []*musterv1.Run, revoked []string)
	// Changed tells of a new run, or of one that is different now.
	Changed(run *musterv1.Run)
	// Deleted tells of a run that is gone.
	Deleted(run string)
	// Revoked tells of an identity or a certificate that is not to be trusted any more.
	Revoked(subject string)
	// Connected tells whether the feed is followed right now, and why not.
	Connected(ok bool, fault string)
}

// silence is how long the feed may say nothing, not even a heartbeat.
const silence = 60 * time.Second

// Follow keeps a follower informed until the context is done.
func Follow(ctx context.Context, changes musterv1.ChangeServiceClient, follower Follower, log *slog.Logger) {
	var cursor *int64
	var lastFault string
	for failures := 0; ctx.Err() == nil; failures++ {
		events, err := once(ctx, changes, &cursor, follower)
		if ctx.Err() != nil {
			return
		}
		if status.Code(err) == codes.OutOfRange { // a cursor from elsewhere: the aggregator's state was replaced
			cursor = nil
		}
		if events > 0 {
			failures = 0
		}
		if fault := err.Error(); fault != lastFault || events > 0 {
			lastFault = fault
			log.Warn("the aggregator's changes are not followed for now", "error", err)
		}
		follower.Connected(false, err.Error())
		select {
		case <-time.After(rand.N(min(200*time.Millisecond<<min(failures, 5), 3*time.Second))):
		case <-ctx.Done():
		}
	}
}

type snapshot struct {
	runs    []*musterv1.Run
	revoked []string
}

// once follows one stream to its end, and tells how many events there were. Its error is never nil.
func once(ctx context.Context, changes musterv1.ChangeServiceClient, cursor **int64, follower Follower) (events int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errors.New("the feed fell silent")) })
	defer watch.Stop()
	stream, err := changes.FollowChanges(ctx, &musterv1.FollowChangesRequest{Cursor: *cursor, RunsOnly: true})
	if err != nil {
		return 0, err
	}
	var building *snapshot
	for ; ; events++ {
		event, err := stream.Recv()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return events, cause
			}
			if errors.Is(err, io.EOF) {
				err = errors.New("the aggregator ended the feed")
			}
			return events, err
		}
		watch.Reset(silence)
		if events == 0 && *cursor != nil {
			follower.Connected(true, "")
		}
		switch e := event.Event.(type) {
		case *musterv1.FollowChangesResponse_SnapshotBegin_:
			building = &snapshot{}
		case *musterv1.FollowChangesResponse_SnapshotEnd_:
			if building != nil {
				follower.Snapshot(building.runs, building.revoked)
				building = nil
			}
			follower.Connected(true, "")
		case *musterv1.FollowChangesResponse_Run:
			if building != nil {
				building.runs = append(building.runs, e.Run)
			} else {
				follower.Changed(e.Run)
			}
		case *musterv1.FollowChangesResponse_RunDeleted_:
			follower.Deleted(e.RunDeleted.Run)
		case *musterv1.FollowChangesResponse_Revoked_:
			if building != nil {
				building.revoked = append(building.revoked, e.Revoked.Subject)
			} else {
				follower.Revoked(e.Revoked.Subject)
			}
		}
		if event.Cursor != nil && building == nil {
			*cursor = event.Cursor
		}
	}
}
