package viewing

import (
	"context"
	"time"

	musterv1 "muster.example/gateway/gen/muster/v1"
)

const (
	fetchTimeout = 20 * time.Second
	// smallRun is up to how many pairs the status service says of each what happens next; of a larger page it
	// leaves out the words that all pairs share.
	smallRun = 1_000
	pageSize = 10_000 // pairs that the status service gives at a time
	shown    = 10     // pairs of a kind, where only those that need attention are asked for
)

// fetch asks for a run's status: with all pairs, or with those only that a person looks at.
func (s *Server) fetch(ctx context.Context, run string, attention bool) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if attention {
		return s.fetchAttention(ctx, run)
	}
	status, err := s.status.GetStatus(ctx, &musterv1.GetStatusRequest{Run: run, PageSize: smallRun})
	if err == nil && status.NextPageToken != "" { // from the beginning, so that all pairs read alike
		status, err = s.status.GetStatus(ctx, &musterv1.GetStatusRequest{Run: status.Run, PageSize: pageSize})
	}
	if err != nil {
		return nil, err
	}
	pairs := status.Pairs
	for token := status.NextPageToken; token != ""; {
		page, err := s.status.GetStatus(ctx, &musterv1.GetStatusRequest{Run: status.Run, PageSize: pageSize, PageToken: token})
		if err != nil {
			return nil, err
		}
		pairs, token = append(pairs, page.Pairs...), page.NextPageToken
	}
	return newAnswer(status, pairs), nil
}

// fetchAttention gives stragglers, and the first of those with an error, timed out, or with progress.
func (s *Server) fetchAttention(ctx context.Context, run string) (*Answer, error) {
	status, err := s.status.GetStatus(ctx, &musterv1.GetStatusRequest{Run: run})
	if err != nil {
		return nil, err
	}
	pairs := status.Stragglers
	requests := []*musterv1.GetStatusRequest{{Reasons: []musterv1.Reason{musterv1.Reason_REASON_RUNNING}}}
	if status.Counts.GetErrors() > 0 {
		requests = append(requests, &musterv1.GetStatusRequest{Outcome: musterv1.Outcome_OUTCOME_ERROR})
	}
	if status.Counts.GetTimedOut() > 0 {
		requests = append(requests, &musterv1.GetStatusRequest{Outcome: musterv1.Outcome_OUTCOME_TIMED_OUT})
	}
	for _, request := range requests {
		request.Run, request.PageSize = status.Run, shown
		page, err := s.status.GetStatus(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, pair := range page.Pairs {
			if pair.Outcome != musterv1.Outcome_OUTCOME_PENDING || pair.Progress != nil {
				pairs = append(pairs, pair)
			}
		}
	}
	return newAnswer(status, pairs), nil
}
