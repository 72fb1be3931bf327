package e2e

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
	"muster.example/testing/fleet"
)

// A message that declares more than a node may send is refused when its length arrives. It takes neither the memory of the
// service nor the time of others.
func TestEndlessMessageHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	credential, other := must(f.Export(id, "logs", "n1"))(t), must(f.Export(id, "logs", "n2"))(t)
	connection := must(credential.GRPC())(t)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	endless := smallResult(id, "logs", "n1", strings.Repeat("x", 200<<20))
	_, err := musterv1.NewResultServiceClient(connection).SubmitResult(ctx, endless)
	if code := status.Code(err); code != codes.ResourceExhausted || reasonOf(err) != reasons.MessageTooLarge {
		t.Errorf("200 MiB in one message: %v", err)
	}
	if peak := must(f.Process(fleet.Aggregator))(t).PeakMemory(); peak > 256<<20 {
		t.Errorf("the aggregator took %d MiB", peak>>20)
	}
	check(t, submit(t, other, id, "logs", "n2", "small"))
}
