package rest

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// The texts are those of gRPC for Go and for C++.
func TestErrorsOfTransportGetReasonAndNextStep(t *testing.T) {
	for _, c := range []struct {
		code   codes.Code
		text   string
		http   int
		reason string
	}{
		{codes.ResourceExhausted, "grpc: received message larger than max (17 vs. 16)", 400, "RESPONSE_TOO_LARGE"},
		{codes.ResourceExhausted, "grpc: received message after decompression larger than max 16", 400, "RESPONSE_TOO_LARGE"},
		{codes.ResourceExhausted, "trying to send message larger than max (17 vs. 16)", 413, "REQUEST_TOO_LARGE"},
		{codes.ResourceExhausted, "SERVER: Received message larger than max (17 vs. 16)", 413, "REQUEST_TOO_LARGE"},
		{codes.Unimplemented, "unknown method X for service Y", 501, "UNKNOWN_METHOD"},
		{codes.InvalidArgument, "proto: syntax error", 400, "BAD_REQUEST"},
	} {
		err := status.Error(c.code, c.text)
		w := httptest.NewRecorder()
		AnswerError(w, err)
		var got Problem
		if fault := json.Unmarshal(w.Body.Bytes(), &got); fault != nil || w.Code != c.http || got.Reason != c.reason || got.NextStep == "" {
			t.Errorf("%s: %d %s", c.text, w.Code, w.Body)
		}
		details := streamError(t.Context(), err).Details()
		if len(details) != 1 || details[0].(*musterv1.ErrorDetail).Reason != c.reason {
			t.Errorf("%s at the end of a stream: %v", c.text, details)
		}
	}
}
