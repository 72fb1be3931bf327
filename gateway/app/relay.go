package app

import (
	"context"

	"google.golang.org/grpc"

	"muster.example/services/client/go"
)

// noRelay replaces the root relay if the configuration names none: every call fails with the same error.
type noRelay struct{}

func (noRelay) refusal() error {
	return &muster.Error{Code: "UNAVAILABLE", Reason: "NO_RELAY", Message: "no relay is configured for this gateway",
		NextStep: "Set relay_targets in the gateway's configuration to the root relay."}
}

// Invoke implements grpc.ClientConnInterface.
func (n noRelay) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return n.refusal()
}

// NewStream implements grpc.ClientConnInterface.
func (n noRelay) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, n.refusal()
}
