package app

import (
	"context"

	"google.golang.org/grpc"

	"muster.example/gateway/rest"
	"muster.example/services/client/go"
)

// missingRelay replaces the root relay if the configuration names none: every call fails with the same error.
type missingRelay struct{}

func (missingRelay) refusal() error {
	p := rest.NoRelay()
	return &muster.Error{Code: p.Code, Reason: p.Reason, Message: p.Message, NextStep: p.NextStep}
}

// Invoke implements grpc.ClientConnInterface.
func (n missingRelay) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return n.refusal()
}

// NewStream implements grpc.ClientConnInterface.
func (n missingRelay) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, n.refusal()
}
