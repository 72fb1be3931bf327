package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const maxStatement = 5 << 10 // kMaxAttachStatement

// attachWith attaches a node to the root relay with its own chain. It returns the connection, the size of the
// statement, and the error that ended the stream, or nil if the relay welcomed the node.
func attachWith(t *testing.T, access *fleet.Operator, chain string) (*grpc.ClientConn, int, error) {
	t.Helper()
	connection := must(access.RelayGRPC())(t)
	t.Cleanup(func() { connection.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream := must(musterv1.NewAttachServiceClient(connection).Attach(ctx))(t)
	greeting := must(stream.Recv())(t).GetGreeting()
	pair := must(tls.X509KeyPair([]byte(access.Certificate), []byte(access.Key)))(t)
	uri := must(x509.ParseCertificate(pair.Certificate[0]))(t).URIs[0].String()
	expires := time.Now().Add(30 * time.Minute)
	digest := sha256.Sum256([]byte(fmt.Sprintf("muster-attach-v1\n%s\n%s\n%x\n%d\n", uri, greeting.Relay, greeting.KeySha256, expires.Unix())))
	statement := &musterv1.AttachStatement{Child: uri, Relay: greeting.Relay, RelayKeySha256: greeting.KeySha256,
		ExpireTime:          &timestamppb.Timestamp{Seconds: expires.Unix()},
		Signature:           must(ecdsa.SignASN1(rand.Reader, pair.PrivateKey.(*ecdsa.PrivateKey), digest[:]))(t),
		CertificateChainPem: chain}
	check(t, stream.Send(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Hello_{
		Hello: &musterv1.AttachRequest_Hello{Statement: statement, InstanceId: "test"}}}))
	_, err := stream.Recv()
	return connection, proto.Size(statement), err
}

// All calls that a relay forwards share its connections. A node whose statement does not fit into the metadata of a call
// cannot attach, so that it disturbs the decoding of no other call.
func TestNodeWithALongCertificateChainDisturbsNoOtherNode(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	honest, attacker := join(t, f, "n1", "", nil, nil).identity(t), join(t, f, "n2", "", nil, nil).identity(t)
	getRun := func(connection *grpc.ClientConn) error {
		ctx, cancel := context.WithTimeout(context.Background(), withinAMinute)
		defer cancel()
		_, err := musterv1.NewRunServiceClient(connection).GetRun(ctx, &musterv1.GetRunRequest{Run: run})
		return err
	}
	connection, size, err := attachWith(t, honest, honest.Certificate)
	check(t, err)
	until(t, "n1 is attached", func() bool { return getRun(connection) == nil })

	for _, length := range []int{maxStatement - size + len(attacker.Certificate) - 50, 6 << 10, 9000, 12 << 10} {
		chain := attacker.Certificate + strings.Repeat("#", length-len(attacker.Certificate)-1) + "\n"
		for range 10 {
			malicious, size, err := attachWith(t, attacker, chain)
			fits := size <= maxStatement
			if fits != (err == nil) || (!fits && reason(err) != "STATEMENT_REFUSED") {
				t.Errorf("a statement of %d bytes is answered with %v", size, err)
			}
			// The welcome precedes the attachment.
			if called := getRun(malicious) == nil; fits && !called {
				until(t, "a call with the longest statement", func() bool { return getRun(malicious) == nil })
			}
			for range 5 {
				if err := getRun(connection); err != nil {
					t.Fatalf("a call of the other node after a statement of %d bytes: %v", size, err)
				}
			}
			check(t, malicious.Close())
		}
	}
}
