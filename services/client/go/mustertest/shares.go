package mustertest

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
)

// Share adds a shared file to the relay that it names.
func (r *Relay) Share(share *musterv1.Share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shares = append(r.shares, share)
}

// findShare returns the index of a shared file. The lock is held.
func (r *Relay) findShare(key *musterv1.ShareKey, relay string) (int, error) {
	at := slices.IndexFunc(r.shares, func(s *musterv1.Share) bool {
		return proto.Equal(s.File.Key, key) && (relay == "" || s.Relay == relay)
	})
	if at < 0 {
		return 0, fault(codes.NotFound, reasons.ShareNotFound, "no shared file "+key.GetId()).Err()
	}
	return at, nil
}

// ListShares implements the API.
func (r *Relay) ListShares(ctx context.Context, request *musterv1.ListSharesRequest) (*musterv1.ListSharesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordCall(ctx)
	relay := request.Relay
	if relay == "" {
		relay = "root"
	}
	answer := &musterv1.ListSharesResponse{Usage: &musterv1.ShareUsage{Relay: relay, Quota: 1000}}
	for _, share := range r.shares {
		if share.Relay == relay {
			answer.Shares = append(answer.Shares, share)
			answer.Usage.Files++
			answer.Usage.Bytes += share.File.Size
		}
	}
	return answer, nil
}

// GetShare implements the API.
func (r *Relay) GetShare(ctx context.Context, request *musterv1.GetShareRequest) (*musterv1.Share, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordCall(ctx)
	at, err := r.findShare(request.Key, request.Relay)
	if err != nil {
		return nil, err
	}
	return r.shares[at], nil
}

// RemoveShare implements the API.
func (r *Relay) RemoveShare(ctx context.Context, request *musterv1.RemoveShareRequest) (*musterv1.RemoveShareResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordCall(ctx)
	at, err := r.findShare(request.Key, request.Relay)
	if err != nil {
		return nil, err
	}
	r.shares = slices.Delete(r.shares, at, at+1)
	return &musterv1.RemoveShareResponse{}, nil
}
