package app

import (
	"context"

	"google.golang.org/grpc"

	"muster.example/gateway/rest"
	"muster.example/services/client/go"
)

// missing replaces a service if the configuration names none: every call fails with the same error.
type missing rest.Problem

func (m missing) refusal() error {
	return &muster.Error{Code: m.Code, Reason: m.Reason, Message: m.Message, NextStep: m.NextStep}
}

// Invoke implements grpc.ClientConnInterface.
func (m missing) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return m.refusal()
}

// NewStream implements grpc.ClientConnInterface.
func (m missing) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, m.refusal()
}
