package app

import (
	"context"

	"google.golang.org/grpc"

	"muster.example/gateway/rest"
	"muster.example/services/client/go"
)

// noRelay stands for the relay at the centre where the configuration names none: every call has the same error.
type noRelay struct{}

func (noRelay) refusal() error {
	p := rest.NoRelay()
	return &muster.Error{Code: p.Code, Reason: p.Reason, Message: p.Message, NextStep: p.NextStep}
}

// Invoke implements grpc.ClientConnInterface.
func (n noRelay) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return n.refusal()
}

// NewStream implements grpc.ClientConnInterface.
func (n noRelay) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, n.refusal()
}
