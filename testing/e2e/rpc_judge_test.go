package e2e

import (
	"io"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// answerOf returns an error as the services send it.
func answerOf(code codes.Code, why string) error {
	plain := status.New(code, "text")
	if why == "" {
		return plain.Err()
	}
	detailed, err := plain.WithDetails(&musterv1.ErrorDetail{Reason: why})
	if err != nil {
		panic(err)
	}
	return detailed.Err()
}

// A reason does not excuse a service that failed.
func TestJudgesOfCallsRefuseFailuresOfServices(t *testing.T) {
	z := &fuzzed{methods: methodsOfMuster(), known: &fieldValues{}}
	c := cell{aggregatorListener, "/muster.v1.RunService/GetRun", "Operator", "", true}
	for _, one := range []struct {
		err    error
		passes bool
	}{
		{io.EOF, true}, {answerOf(codes.NotFound, "RUN_NOT_FOUND"), true}, {answerOf(codes.NotFound, ""), false},
		{answerOf(codes.Internal, "STORE_ERROR"), false}, {answerOf(codes.Unknown, "ANY_REASON"), false},
		{answerOf(codes.DataLoss, "STORE_CORRUPT"), false}, {answerOf(codes.DataLoss, "CRC_MISMATCH"), true},
		{answerOf(codes.Internal, "CRC_MISMATCH"), false},
	} {
		if fault := z.judge(c, nil, nil, one.err, true); (fault == "") != one.passes {
			t.Errorf("generated call, %v: %q", one.err, fault)
		}
		if one.err == io.EOF || status.Code(one.err) == codes.NotFound {
			continue // the roles decide nothing about these
		}
		if fault := c.judge(one.err); (fault == "") != one.passes {
			t.Errorf("call of a role, %v: %q", one.err, fault)
		}
	}
}

func TestOnlyWholeAcceptedUploadMustHaveResult(t *testing.T) {
	whole, cut := [][]byte{{1}, {2}}, [][]byte{{1}}
	if !wantsResult(whole, [][]byte{{1}, {2}}, nil) || wantsResult(whole, cut, nil) || wantsResult(whole, whole, io.ErrUnexpectedEOF) {
		t.Error("wrong uploads must have a result")
	}
}
