package app

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/gateway/gen/muster/v1"
)

// noService stands for a service that the configuration does not name: all calls have the same error.
type noService struct{ refusal *status.Status }

// noRelay is what there is without `relay_targets`.
var noRelay = func() noService {
	refusal, err := status.New(codes.Unavailable, "this gateway knows no relay").WithDetails(&musterv1.ErrorDetail{
		Reason: "NO_RELAY", NextStep: "Name the relay at the centre in the gateway's configuration: relay_targets."})
	if err != nil {
		panic(err) // the message above cannot be packed: a fault of the program
	}
	return noService{refusal}
}()

// Invoke implements grpc.ClientConnInterface.
func (n noService) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return n.refusal.Err()
}

// NewStream implements grpc.ClientConnInterface.
func (n noService) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, n.refusal.Err()
}
