package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"muster.example/gateway/command"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// callsOf returns every kind of call of a node, with its key.
func callsOf(t *testing.T, callers *rpcCallers, access *fleet.Operator, run, node string) map[string]func(ctx context.Context) error {
	t.Helper()
	dial := func(listener, chain, key string) *grpc.ClientConn {
		connection := must(access.Dial(callers.listeners[listener], chain, key))(t)
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	pair := &musterv1.ResultKey{Run: run, Plugin: "logs", Node: node}
	calls := map[string]func(ctx context.Context) error{}
	for _, listener := range []string{aggregatorListener, relayListener} {
		connection := dial(listener, access.Certificate, access.Key)
		calls["GetRun at "+listener] = func(ctx context.Context) error {
			_, err := musterv1.NewRunServiceClient(connection).GetRun(ctx, &musterv1.GetRunRequest{Run: run})
			return err
		}
		calls["OpenUpload at "+listener] = func(ctx context.Context) error {
			_, err := musterv1.NewResultServiceClient(connection).OpenUpload(ctx, &musterv1.OpenUploadRequest{
				Description: &musterv1.ResultDescription{Key: pair, Attempt: time.Now().UnixNano()}})
			return err
		}
		calls["RenewCertificate at "+listener] = func(ctx context.Context) error {
			_, err := musterv1.NewIdentityServiceClient(connection).RenewCertificate(ctx, &musterv1.RenewCertificateRequest{CsrPem: csr(t)})
			return err
		}
	}
	statuses, relay := dial(statusListener, access.Certificate, access.Key), dial(relayListener, access.Certificate, access.Key)
	calls["SendHeartbeat"] = func(ctx context.Context) error {
		_, err := musterv1.NewHeartbeatServiceClient(statuses).SendHeartbeat(ctx, &musterv1.SendHeartbeatRequest{Key: pair})
		return err
	}
	calls["ReportProgress"] = func(ctx context.Context) error {
		_, err := musterv1.NewStatusServiceClient(statuses).ReportProgress(ctx, &musterv1.ReportProgressRequest{Key: pair, Total: 2, Completed: 1})
		return err
	}
	calls["Attach"] = func(ctx context.Context) error {
		_, err := must(musterv1.NewAttachServiceClient(relay).Attach(ctx))(t).Recv()
		return err
	}
	calls["ListShares"] = func(ctx context.Context) error {
		_, err := musterv1.NewShareServiceClient(relay).ListShares(ctx, &musterv1.ListSharesRequest{})
		return err
	}
	calls["Rejoin"] = func(ctx context.Context) error {
		request := csr(t)
		key := must(tls.X509KeyPair([]byte(access.Certificate), []byte(access.Key)))(t).PrivateKey.(*ecdsa.PrivateKey)
		digest := sha256.Sum256([]byte(fmt.Sprintf("muster-return-v1\n%x\n", sha256.Sum256([]byte(request)))))
		proof := must(ecdsa.SignASN1(rand.Reader, key, digest[:]))(t)
		_, err := musterv1.NewJoinServiceClient(dial(joinListener, "", "")).Rejoin(ctx, &musterv1.RejoinRequest{
			CertificateChainPem: access.Certificate, CsrPem: request, Proof: proof})
		return err
	}
	return calls
}

// wantAllRefused fails unless each call is refused because of its caller, soon and from then on.
func wantAllRefused(t *testing.T, what string, calls map[string]func(ctx context.Context) error) {
	t.Helper()
	for name, call := range calls {
		var err error
		refused := func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			defer cancel()
			err = call(ctx)
			return slices.Contains([]codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.NotFound}, status.Code(err))
		}
		if fleet.Until(soon, name, refused) != nil || !refused() {
			t.Errorf("%s: %s is answered with %v", what, name, err)
		}
	}
}

// A copy of a machine's key is of no use after its node was revoked, nor after another machine took the name, with or
// without a revocation.
func TestCopiedKeyOfFormerMachineIsRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	callers := newCallers(t, f, run)
	joined := func(name string) (map[string]func(ctx context.Context) error, *fleet.Operator) {
		access := join(t, f, name, "", nil, nil).identity(t)
		return callsOf(t, callers, access, run, name), access
	}
	ctx, cancel := context.WithTimeout(context.Background(), withinAMinute)
	defer cancel()
	revoked, _ := joined("n1")
	check(t, revoked["GetRun at "+aggregatorListener](ctx))
	check(t, revoked["Rejoin"](ctx))
	replaced, _ := joined("n2")
	check(t, replaced["RenewCertificate at "+aggregatorListener](ctx))

	must(f.Muster("node", "revoke", "n1"))(t)
	wantAllRefused(t, "the key of a revoked node", revoked)
	must(f.Muster("node", "remove", "n1"))(t)
	wantAllRefused(t, "the key of a removed node", revoked)
	for name, old := range map[string]map[string]func(ctx context.Context) error{"n1": revoked, "n2": replaced} {
		calls, access := joined(name)
		wantAllRefused(t, "the key of the former machine "+name, old)
		check(t, calls["GetRun at "+aggregatorListener](ctx))
		connection := must(access.Dial(callers.listeners[aggregatorListener], access.Certificate, access.Key))(t)
		_, err := musterv1.NewResultServiceClient(connection).SubmitResult(ctx, smallResult(run, "logs", name, "of the new machine"))
		check(t, errors.Join(err, connection.Close()))
		wantAllRefused(t, "afterwards the key of the former machine "+name, old)
		if got := operator(t, f).result(t, run, "logs", name); got.Size != int64(len("of the new machine")) {
			t.Errorf("the result of %s is %v", name, got)
		}
	}
}

// A gateway that lies may do what its clients may do. With the identity of one run's client it cannot touch another run, it
// cannot replace a committed result, nor act for revoked operators, nor sign commands that only operators may sign.
func TestLyingGatewayHarmsNoOtherRun(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	mine := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	other := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	callers := newCallers(t, f, mine)
	gateway := func(listener string) *grpc.ClientConn {
		chain, key := callers.issue(t, "Gateway")
		connection := must(callers.operator.Dial(callers.listeners[listener], chain, key))(t)
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	aggregator, statuses, relay := gateway(aggregatorListener), gateway(statusListener), gateway(relayListener)
	as := func(uri string) context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		t.Cleanup(cancel)
		return metadata.AppendToOutgoingContext(ctx, "muster-forwarded-identity", uri)
	}
	results, runs := musterv1.NewResultServiceClient(aggregator), musterv1.NewRunServiceClient(aggregator)

	t.Run("identities of one run at another", func(t *testing.T) {
		key := &musterv1.ResultKey{Run: other, Plugin: "logs", Node: "n1"}
		for _, role := range []string{"RunNode", "RunPlugin", "RunViewer"} {
			ctx := as(callers.uri(role))
			for name, call := range map[string]func() error{
				"SubmitResult": func() error {
					_, err := results.SubmitResult(ctx, smallResult(other, "logs", "n1", "forged"))
					return err
				},
				"OpenUpload": func() error {
					_, err := results.OpenUpload(ctx, &musterv1.OpenUploadRequest{Description: &musterv1.ResultDescription{Key: key, Attempt: 1}})
					return err
				},
				"GetResult": func() error { _, err := results.GetResult(ctx, &musterv1.GetResultRequest{Key: key}); return err },
				"GetRun":    func() error { _, err := runs.GetRun(ctx, &musterv1.GetRunRequest{Run: other}); return err },
				"CancelRun": func() error { _, err := runs.CancelRun(ctx, &musterv1.CancelRunRequest{Run: other}); return err },
				"SendHeartbeat": func() error {
					_, err := musterv1.NewHeartbeatServiceClient(statuses).SendHeartbeat(ctx, &musterv1.SendHeartbeatRequest{Key: key})
					return err
				},
				"ReportProgress": func() error {
					_, err := musterv1.NewStatusServiceClient(statuses).ReportProgress(ctx, &musterv1.ReportProgressRequest{Key: key, Total: 1})
					return err
				},
				"GetStatus": func() error {
					_, err := musterv1.NewStatusServiceClient(statuses).GetStatus(ctx, &musterv1.GetStatusRequest{Run: other})
					return err
				},
			} {
				if err := call(); status.Code(err) != codes.PermissionDenied {
					t.Errorf("%s as %s of another run: %v", name, role, err)
				}
			}
		}
	})

	t.Run("a committed result", func(t *testing.T) {
		check(t, submit(t, must(f.Export(other, "logs", "n1"))(t), other, "logs", "n1", "true"))
		node := strings.ReplaceAll(callers.uri("RunNode"), mine, other)
		_, err := results.SubmitResult(as(node), smallResult(other, "logs", "n1", "forged"))
		wantError(t, err, codes.AlreadyExists, "RESULT_CONFLICT")
		if got := operator(t, f).result(t, other, "logs", "n1"); got.Size != int64(len("true")) {
			t.Errorf("the result is %v", got)
		}
	})

	t.Run("a revoked operator", func(t *testing.T) {
		must(f.Muster("operator", "add", "bob"))(t)
		must(f.Muster("operator", "revoke", "bob"))(t)
		until(t, "a revoked operator is refused", func() bool {
			_, err := runs.GetRun(as("spiffe://"+callers.operator.Fleet+"/user/bob"), &musterv1.GetRunRequest{Run: other})
			return status.Code(err) == codes.PermissionDenied
		})
	})

	t.Run("commands", func(t *testing.T) {
		nodes := sha256.Sum256(append([]byte{0}, "n1"...))
		nonce := make([]byte, 16)
		_, _ = rand.Read(nonce)
		signer := command.NewSigner(musterv1.NewIdentityServiceClient(aggregator))
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		for _, action := range []string{"exec", "rudder"} {
			job := fmt.Sprintf("%x", append([]byte(action)[:2], nonce[2:]...))
			signed := must(signer.Sign(ctx, &musterv1.Command{Fleet: callers.operator.Fleet, Job: job, Action: action,
				Targets: &musterv1.Command_Targets{NodesSha256: nodes[:], Count: 1}, Argv: []string{"/bin/echo", "forged"},
				NotBefore: timestamppb.Now(), NotAfter: timestamppb.New(time.Now().Add(time.Minute)),
				TimeLimit: durationpb.New(10 * time.Second), Nonce: nonce}))(t)
			for name, caller := range map[string]context.Context{"itself": ctx, "an operator": as(callers.uri("Operator"))} {
				_, err := musterv1.NewJobServiceClient(relay).SubmitJob(caller, &musterv1.SubmitJobRequest{Command: signed, Nodes: []string{"n1"}})
				t.Logf("%s as %s: %v", action, name, err)
				if action == "exec" && err == nil {
					t.Errorf("a command with the action exec, signed by the gateway, is accepted from %s", name)
				}
			}
		}
		if out, stderr, code := execOn(t, f, "--node", "n1", "--", "/bin/echo", "honest"); code != 0 || !strings.Contains(out, "honest") {
			t.Errorf("afterwards: exit %d, %q %q", code, out, stderr)
		}
	})
}
