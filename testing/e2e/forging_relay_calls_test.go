package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

func (r *forgingRelay) uriOf(node string) string {
	return strings.Replace(r.uri, "/service/relay/"+r.name(), "/node/"+node, 1)
}

// forged is a statement for a node that this relay signed itself.
func (r *forgingRelay) forged(t *testing.T, node string) *musterv1.AttachStatement {
	t.Helper()
	key := sha256.Sum256(r.identity.Leaf.RawSubjectPublicKeyInfo)
	s := &musterv1.AttachStatement{Child: r.uriOf(node), Relay: r.uri, RelayKeySha256: key[:],
		ExpireTime: &timestamppb.Timestamp{Seconds: time.Now().Add(30 * time.Minute).Unix()}, CertificateChainPem: r.chain}
	text := fmt.Sprintf("muster-attach-v1\n%s\n%s\n%x\n%d\n", s.Child, s.Relay, s.RelayKeySha256, s.ExpireTime.Seconds)
	digest := sha256.Sum256([]byte(text))
	s.Signature = must(ecdsa.SignASN1(rand.Reader, r.identity.PrivateKey.(*ecdsa.PrivateKey), digest[:]))(t)
	return s
}

// speakFor is the context of a call that this relay makes for a node.
func (r *forgingRelay) speakFor(t *testing.T, node string, statement *musterv1.AttachStatement) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	ctx = metadata.AppendToOutgoingContext(ctx, "muster-forwarded-identity", r.uriOf(node))
	if statement == nil {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "muster-attach-statement-bin", string(must(proto.Marshal(statement))(t)))
}

// A relay may call for nodes that are attached to it or to its descendants. n1 is attached to a compromised relay, n2 to
// the root relay.
func TestForgingRelayCallsForItsOwnNodesOnly(t *testing.T) {
	t.Parallel()
	f := up(t)
	forger := newForgingRelay(t, f, "r9")
	n1 := join(t, f, "n1", openPolicy, nil, nil)
	n1.attachTo(t, forger)
	attached(t, f, "n2")
	run := strings.TrimSpace(must(f.Muster("run", "--plugin", "hostfacts", "--node", "n1", "--node", "n2"))(t))
	genuine := forger.statementOf(t, "n1")

	results := musterv1.NewResultServiceClient(forger.connection)
	heartbeats := musterv1.NewHeartbeatServiceClient(forger.connection)
	calls := map[string]func(ctx context.Context, node string) error{
		"GetRun": func(ctx context.Context, node string) error {
			_, err := musterv1.NewRunServiceClient(forger.connection).GetRun(ctx, &musterv1.GetRunRequest{Run: run})
			return err
		},
		"SubmitResult": func(ctx context.Context, node string) error {
			_, err := results.SubmitResult(ctx, smallResult(run, "hostfacts", node, "forged"))
			return err
		},
		"OpenUpload": func(ctx context.Context, node string) error {
			_, err := results.OpenUpload(ctx, &musterv1.OpenUploadRequest{Description: &musterv1.ResultDescription{
				Key: &musterv1.ResultKey{Run: run, Plugin: "hostfacts", Node: node}, Attempt: 1}})
			return err
		},
		"SendHeartbeat": func(ctx context.Context, node string) error {
			_, err := heartbeats.SendHeartbeat(ctx, &musterv1.SendHeartbeatRequest{
				Key: &musterv1.ResultKey{Run: run, Plugin: "hostfacts", Node: node}})
			return err
		},
		"StreamHeartbeats": func(ctx context.Context, node string) error {
			stream := must(heartbeats.StreamHeartbeats(ctx))(t)
			_ = stream.Send(&musterv1.StreamHeartbeatsRequest{Node: node, InstanceId: "forged", Sequence: 1})
			_, err := stream.Recv()
			return err
		},
		"ReportProgress": func(ctx context.Context, node string) error {
			_, err := musterv1.NewStatusServiceClient(forger.connection).ReportProgress(ctx, &musterv1.ReportProgressRequest{
				Key: &musterv1.ResultKey{Run: run, Plugin: "hostfacts", Node: node}, Total: 1})
			return err
		},
	}
	// refused fails unless each call for the node is refused for this reason. The gate states it in the message.
	refused := func(t *testing.T, node string, statement *musterv1.AttachStatement, why string) {
		t.Helper()
		for name, call := range calls {
			err := call(forger.speakFor(t, node, statement), node)
			if status.Code(err) != codes.PermissionDenied || (reason(err) != why && !strings.Contains(err.Error(), why)) {
				t.Errorf("%s for %s: %v, want %s", name, node, err, why)
			}
		}
	}

	t.Run("a stranger without its statement", func(t *testing.T) {
		refused(t, "n2", nil, "IDENTITY_NOT_FORWARDABLE")
		refused(t, "n2", genuine, "IDENTITY_NOT_FORWARDABLE")
		refused(t, "n2", forger.forged(t, "n2"), "IDENTITY_NOT_FORWARDABLE")
		renamed := proto.Clone(genuine).(*musterv1.AttachStatement)
		renamed.Child = forger.uriOf("n2")
		refused(t, "n2", renamed, "IDENTITY_NOT_FORWARDABLE")
	})

	t.Run("heartbeats of a branch", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		stream := must(heartbeats.RelayHeartbeats(ctx))(t)
		message := &musterv1.RelayHeartbeatsRequest{Relay: "r9"}
		for i, statement := range []*musterv1.AttachStatement{nil, genuine, forger.forged(t, "n2")} {
			sender := &musterv1.RelayHeartbeatsRequest_Sender{Id: int32(i) + 1, Uri: forger.uriOf("n2"),
				Beat: &musterv1.StreamHeartbeatsRequest{Node: "n2", InstanceId: "forged", Sequence: 1}}
			if statement != nil {
				sender.AttachStatement = must(proto.Marshal(statement))(t)
			}
			message.Senders = append(message.Senders, sender)
		}
		check(t, stream.Send(message))
		refusals := map[int32]string{}
		for len(refusals) < len(message.Senders) {
			for _, refusal := range must(stream.Recv())(t).Refused {
				refusals[refusal.Id] = refusal.Detail.GetReason()
			}
		}
		for id, why := range refusals {
			if why != "IDENTITY_NOT_FORWARDABLE" {
				t.Errorf("sender %d was refused with %q", id, why)
			}
		}
	})

	t.Run("a stranger is not forgotten", func(t *testing.T) {
		forger.sendToRoot(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Topology{
			Topology: &musterv1.AttachRequest_TopologyUpdate{ForgottenUris: []string{forger.uriOf("n2")}}}})
		// The root relay handles the messages of a stream in order.
		forger.claim(&musterv1.AttachRequest_TopologyUpdate_Descendant{Relay: "r9", ChangeTime: timestamppb.Now(),
			Statement: &musterv1.AttachStatement{Child: forger.uriOf("n1")}})
		until(t, "the update was handled", func() bool { return nodes(t, f)["n1"]["attached"] != true })
		if n2 := nodes(t, f)["n2"]; n2["attached"] != true {
			t.Errorf("n2 is %v", n2)
		}
		forger.claim(&musterv1.AttachRequest_TopologyUpdate_Descendant{Relay: "r9", Attached: true, ChangeTime: timestamppb.Now(),
			Statement: genuine})
		until(t, "n1 is attached again", func() bool { return nodes(t, f)["n1"]["attached"] == true })
	})

	t.Run("shared files of strangers", func(t *testing.T) { forgeShares(t, forger) })

	t.Run("results that its node has signed", func(t *testing.T) { forgeResults(t, forger, n1, run) })

	// A node that has left: its agent runs on until the end of the test.
	if err := calls["GetRun"](forger.speakFor(t, "n1", genuine), "n1"); err != nil {
		t.Fatalf("its own node: %v", err)
	}
	n1.agent.End()
	n1.attachToRoot(t, f)
	refused(t, "n1", genuine, "NOT_ATTACHED")

	t.Run("the route to a node that has left, and invented nodes", func(t *testing.T) {
		update := &musterv1.AttachRequest_TopologyUpdate{ForgottenUris: []string{forger.uriOf("n1")}}
		for i := range 400 {
			update.Descendants = append(update.Descendants, &musterv1.AttachRequest_TopologyUpdate_Descendant{Relay: "r9",
				ChangeTime: timestamppb.Now(), Statement: &musterv1.AttachStatement{Child: forger.uriOf(fmt.Sprintf("invented%d", i))}})
		}
		forger.sendToRoot(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Topology{Topology: update}})
		forger.claim(&musterv1.AttachRequest_TopologyUpdate_Descendant{Relay: "r9", Attached: true,
			ChangeTime: timestamppb.New(time.Now().Add(time.Hour)), Statement: genuine})
		n3 := join(t, f, "n3", openPolicy, nil, nil)
		n3.attachTo(t, forger) // the root relay handles the messages of a stream in order
		byName := nodes(t, f)
		if n1 := byName["n1"]; n1["attached"] != true || n1["relay"] != "root" || byName["n3"]["relay"] != "r9" {
			t.Errorf("n1 is %v, n3 is %v", n1, byName["n3"])
		}
		connection := must(must(f.Operator())(t).RelayGRPC())(t)
		defer connection.Close()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		known := must(musterv1.NewAttachServiceClient(connection).ListAttached(ctx, &musterv1.ListAttachedRequest{}))(t)
		if text := known.String(); !strings.Contains(text, "n2") || strings.Contains(text, "invented") {
			t.Errorf("the root relay knows %s", text)
		}
		n3.agent.End()
	})
	if out, stderr, code := execOn(t, f, "--node", "n1", "--node", "n2", "--", "/bin/echo", "well"); code != 0 || strings.Count(out, "well") != 2 {
		t.Errorf("afterwards: exit %d, %q %q", code, out, stderr)
	}
}

// forgeShares tries each call about a file from n2 for n3, which concerns no node of the relay.
func forgeShares(t *testing.T, forger *forgingRelay) {
	shares := musterv1.NewShareServiceClient(forger.connection)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	key := &musterv1.ShareKey{Source: "n2", Target: "n3", Id: "f"}
	_, err := shares.GetShare(ctx, &musterv1.GetShareRequest{Key: key})
	wantError(t, err, codes.PermissionDenied, "NOT_YOURS")
	_, err = shares.RemoveShare(ctx, &musterv1.RemoveShareRequest{Key: key})
	wantError(t, err, codes.PermissionDenied, "NOT_YOURS")
	_, err = must(shares.ReadShare(ctx, &musterv1.ReadShareRequest{Key: key}))(t).Recv()
	wantError(t, err, codes.PermissionDenied, "NOT_YOURS")
	digest := sha256.Sum256([]byte("forged"))
	file := &musterv1.SharedFile{Key: key, Size: 6, Sha256: digest[:], SignTime: &timestamppb.Timestamp{Seconds: time.Now().Unix()},
		CertificateChainPem: forger.chain}
	_, err = shares.OpenShare(ctx, &musterv1.OpenShareRequest{File: file})
	wantError(t, err, codes.Unauthenticated, "INVALID_SIGNATURE")
	for _, relay := range []string{"root", "n2"} {
		_, err = shares.AnswerShareQuery(ctx, &musterv1.AnswerShareQueryRequest{Id: "q", Relay: relay})
		wantError(t, err, codes.PermissionDenied, "NOT_ATTACHED")
	}
}

// statementOf returns the statement of a node that is attached to this relay.
func (r *forgingRelay) statementOf(t *testing.T, node string) *musterv1.AttachStatement {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, descendant := range r.descendants {
		if descendant.Statement.Child == r.uriOf(node) {
			return descendant.Statement
		}
	}
	t.Fatalf("%s is not attached to %s", node, r.name())
	return nil
}

// attachToRoot attaches a node to the root relay in place of its parent.
func (n *node) attachToRoot(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	operator := must(f.Operator())(t)
	path := filepath.Join(n.folder(), "node.json")
	content := member(t, path)
	content["relay_targets"] = operator.Relay
	check(t, os.WriteFile(path, must(json.Marshal(content))(t), 0o600))
	n.start(t)
	until(t, n.name+" is attached to the root relay", func() bool {
		entry := nodes(t, f)[n.name]
		return entry["attached"] == true && entry["relay"] == "root"
	})
}
