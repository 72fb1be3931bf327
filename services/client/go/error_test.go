package muster

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestFailedConnectionIsDescribedWithoutTermsOfGRPC(t *testing.T) {
	err := status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:7441: connect: connection refused"`)
	if got := AsError(err).Message; got != "cannot connect to 127.0.0.1:7441: connection refused" {
		t.Error(got)
	}
	if got := AsError(status.Error(codes.Unavailable, "overloaded")).Message; got != "overloaded" {
		t.Error(got)
	}
}
