package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// joined joins a machine as a node, and returns its access to the services.
func joined(t *testing.T, f *fleet.Fleet, name string) *fleet.Operator {
	t.Helper()
	m := newMachine(t, f)
	if _, stderr, code := m.muster(t, nil, "node", "join", "--token-file", token(t, f, "--node", name)); code != 0 {
		t.Fatalf("join: exit %d: %s", code, stderr)
	}
	return (&node{machine: m, name: name}).identity(t)
}

// identity returns a node's access to the services.
func (n *node) identity(t *testing.T) *fleet.Operator {
	t.Helper()
	read := func(file string) string {
		return string(must(os.ReadFile(filepath.Join(n.folder(), "tls", file)))(t))
	}
	identity := *must(n.fleet.Operator())(t)
	identity.Certificate, identity.Key = read("cert.pem"), read("key.pem")
	return &identity
}

// openHeartbeats opens a stream of heartbeats for a node's pair.
func openHeartbeats(t *testing.T, as *fleet.Operator, run, plugin, node string) (musterv1.HeartbeatService_StreamHeartbeatsClient, error) {
	t.Helper()
	connection := must(as.StatusGRPC())(t)
	t.Cleanup(func() { connection.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
	t.Cleanup(cancel)
	stream := must(musterv1.NewHeartbeatServiceClient(connection).StreamHeartbeats(ctx))(t)
	_ = stream.Send(&musterv1.StreamHeartbeatsRequest{InstanceId: "process", Sequence: 1, Node: node, Activities: []*musterv1.Activity{{
		Key: &musterv1.ResultKey{Run: run, Plugin: plugin, Node: node}, Phase: musterv1.Phase_PHASE_WORKING}}})
	_, err := stream.Recv()
	return stream, err
}

// A revoked node's heartbeats end within seconds, and it cannot start them again; its pair has the reason. Other nodes
// are not affected.
func TestHeartbeatsOfRevokedNodeAreRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("work", "DaemonSet")}, "n1", "n2")
	n1, n2 := joined(t, f, "n1"), joined(t, f, "n2")
	until(t, "the run is known", func() bool { _, err := f.Muster("status", run); return exitCode(err) == 7 })
	revoked := must(openHeartbeats(t, n1, run, "work", "n1"))(t)
	other := must(openHeartbeats(t, n2, run, "work", "n2"))(t)
	if pair := shown(t, f, run).Pair("work", "n1"); pair.Reason != "running" || pair.Presence != "online" {
		t.Errorf("before it is revoked n1 is %+v", pair)
	}
	must(f.Muster("node", "revoke", "n1", "--reason", "stolen"))(t)
	for err := error(nil); err == nil; {
		if _, err = revoked.Recv(); err != nil && status.Code(err) == codes.DeadlineExceeded {
			t.Fatal("a revoked node's stream is still open")
		}
	}
	if _, err := openHeartbeats(t, n1, run, "work", "n1"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a revoked node that reconnects: %v, want PERMISSION_DENIED", err)
	}
	check(t, other.Send(&musterv1.StreamHeartbeatsRequest{Sequence: 2}))
	if _, err := other.Recv(); err != nil {
		t.Errorf("the heartbeats of another node: %v", err)
	}
	awaitPair(t, f, run, "n1", "the reason is shown", func(pair fleet.ShownPair) bool {
		return pair.Reason == "blocked" && strings.Contains(pair.Detail, "revoked")
	})
}
