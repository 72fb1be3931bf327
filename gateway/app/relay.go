package app

import (
	"context"

	"google.golang.org/grpc"

	"muster.example/services/client/go"
)

// noRelay stands for the relay at the centre where the configuration names none: every call has the same error.
type noRelay struct{}

func (noRelay) refusal() error {
	return &muster.Error{Code: "UNAVAILABLE", Reason: "NO_RELAY", Message: "this gateway knows no relay",
		NextStep: "Name the relay at the centre in the gateway's configuration: relay_targets."}
}

// Invoke implements grpc.ClientConnInterface.
func (n noRelay) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return n.refusal()
}

// NewStream implements grpc.ClientConnInterface.
func (n noRelay) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, n.refusal()
}
