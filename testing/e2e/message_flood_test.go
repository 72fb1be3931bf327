package e2e

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// A message that declares more than the services accept, and comes on and on, costs its own connection, not the memory
// of the service or the streams of others.
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
	// The reason arrives with the end of the connection, if the client reads it before its write fails.
	if code := status.Code(err); code != codes.ResourceExhausted && code != codes.Unavailable {
		t.Errorf("200 MiB in one message: %v", err)
	}
	if peak := must(f.Process(fleet.Aggregator))(t).PeakMemory(); peak > 256<<20 {
		t.Errorf("the aggregator took %d MiB", peak>>20)
	}
	check(t, submit(t, other, id, "logs", "n2", "small"))
	until(t, "the closed connection is counted", func() bool {
		return counted(t, f, "aggregator", `muster_rpc_closed_connections_total{reason="too_many_frames"}`) >= 1
	})
}
