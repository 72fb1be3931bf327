package app

import (
	"context"

	"google.golang.org/grpc"

	"muster.example/services/client/go"
)

// missingRelay replaces the root relay if the configuration names none: every call fails with the same error.
type missingRelay struct{}

func (missingRelay) refusal() error {
	return &muster.Error{Code: "UNAVAILABLE", Reason: "NO_RELAY", Message: "no relay is configured for this gateway",
		NextStep: "Set relay_targets in the gateway's configuration to the root relay."}
}

// Invoke implements grpc.ClientConnInterface.
func (n missingRelay) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return n.refusal()
}

// NewStream implements grpc.ClientConnInterface.
func (n missingRelay) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, n.refusal()
}
