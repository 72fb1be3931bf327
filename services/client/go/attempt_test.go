package muster_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/mustertest"
	"muster.example/services/client/go/reasons"
)

// The clock of an earlier sender was ahead. Its own number stays refused.
func TestDeliveryFollowsSenderWhoseClockIsAhead(t *testing.T) {
	w := start(t)
	ahead := time.Now().Add(12 * time.Hour).UnixNano()
	interrupted := func(attempt int64) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.aggregator.OnChunk(func(mustertest.Key, *musterv1.UploadRequest_Chunk) error {
			cancel()
			return status.Error(codes.Unavailable, "lost")
		})
		defer w.aggregator.OnChunk(nil)
		_, err := w.client().Submit(ctx, &muster.Delivery{Attempt: attempt, Body: bytes.NewReader(bytesOf(1 << 20))})
		return err
	}
	for _, attempt := range []int64{ahead, ahead + 1} {
		if err := interrupted(attempt); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if answer := muster.AsError(interrupted(ahead)); answer.Reason != reasons.TakenOver || answer.NewestAttempt != ahead+1 {
		t.Errorf("%+v", answer)
	}
	if _, err := w.client().SubmitFile(t.Context(), w.file("r", bytesOf(2<<20)), muster.Delivery{}); err != nil {
		t.Fatal(err)
	}
	for _, got := range w.aggregator.Results {
		if got.Description.Attempt != ahead+2 {
			t.Errorf("attempt %d after %d", got.Description.Attempt, ahead+1)
		}
	}
}
