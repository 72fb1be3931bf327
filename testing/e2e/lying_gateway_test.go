package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// lyingGateway has the key of a gateway, and calls the aggregator for clients that are not connected.
type lyingGateway struct {
	t          *testing.T
	callers    *rpcCallers
	aggregator *grpc.ClientConn
}

func newLyingGateway(t *testing.T, f *fleet.Fleet, run string) *lyingGateway {
	t.Helper()
	g := &lyingGateway{t: t, callers: newCallers(t, f, run)}
	chain, key := g.callers.issue(t, "Gateway")
	g.aggregator = must(g.callers.operator.Dial(g.callers.listeners[aggregatorListener], chain, key))(t)
	t.Cleanup(func() { g.aggregator.Close() })
	return g
}

// as is the context of a call for an operator.
func (g *lyingGateway) as(name string) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	g.t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "muster-forwarded-identity", "spiffe://"+g.callers.operator.Fleet+"/user/"+name)
}

// wantRefused fails unless the gate refused each call for the reason.
func (g *lyingGateway) wantRefused(why string, calls map[string]func() error) {
	g.t.Helper()
	for name, call := range calls {
		if err := call(); status.Code(err) != codes.PermissionDenied || !strings.HasPrefix(status.Convert(err).Message(), why+": ") {
			g.t.Errorf("%s: %v, want %s", name, err, why)
		}
	}
}

// joinToken is a request for a token whose key the gateway has.
func joinToken(t *testing.T, node string, relay bool) *musterv1.CreateJoinTokenRequest {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := must(x509.MarshalPKIXPublicKey(&key.PublicKey))(t)
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return &musterv1.CreateJoinTokenRequest{Id: hex.EncodeToString(id), Node: node, Relay: relay,
		PublicKeyPem: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

// The key of a gateway gets no certificate and no credential of another, and takes no name away: as an operator it could
// let its own key join as a node or relay, and sign results as that node.
func TestLyingGatewayGetsNoIdentityOfOthers(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	must(f.Muster("operator", "add", "bob"))(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	g := newLyingGateway(t, f, id)
	nodes, identities := musterv1.NewEnrollmentServiceClient(g.aggregator), musterv1.NewIdentityServiceClient(g.aggregator)
	admin := g.as("admin")
	g.wantRefused("ROLE_NOT_ALLOWED", map[string]func() error{
		"CreateJoinToken of a node": func() error {
			_, err := nodes.CreateJoinToken(admin, joinToken(t, "n1", false))
			return err
		},
		"CreateJoinToken of a relay": func() error {
			_, err := nodes.CreateJoinToken(admin, joinToken(t, "r1", true))
			return err
		},
		"IssueCredential": func() error {
			_, err := musterv1.NewRunServiceClient(g.aggregator).IssueCredential(admin, &musterv1.IssueCredentialRequest{
				Run: id, Plugin: "logs", Node: "n1", CsrPem: csr(t), ListenerOptional: true})
			return err
		},
		"AddOperator": func() error {
			_, err := identities.AddOperator(admin, &musterv1.AddOperatorRequest{Name: "eve", CsrPem: csr(t)})
			return err
		},
		"RenewCertificate": func() error {
			_, err := identities.RenewCertificate(admin, &musterv1.RenewCertificateRequest{CsrPem: csr(t)})
			return err
		},
		"RevokeOperator": func() error {
			_, err := identities.RevokeOperator(admin, &musterv1.RevokeOperatorRequest{Name: "bob"})
			return err
		},
		"RemoveNode": func() error {
			_, err := nodes.RemoveNode(admin, &musterv1.RemoveNodeRequest{Node: "n1"})
			return err
		},
	})
	if out, stderr, code := execOn(t, f, "--node", "n1", "--", "/bin/echo", "honest"); code != 0 || !strings.Contains(out, "honest") {
		t.Errorf("afterwards: exit %d, %q %q", code, out, stderr)
	}
	if list := must(f.Muster("operator", "list"))(t); !strings.Contains(list, "bob") || strings.Contains(list, "revoked") || strings.Contains(list, "eve") {
		t.Errorf("afterwards: the operators are %s", list)
	}
}

// A gateway acts for no operator that does not exist, and the records of what it does for others name it.
func TestLyingGatewayActsOnlyForRecordedOperatorsAndIsNamed(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	g := newLyingGateway(t, f, id)
	runs := musterv1.NewRunServiceClient(g.aggregator)
	ghost := g.as("ghost")
	g.wantRefused("OPERATOR_NOT_RECORDED", map[string]func() error{
		"CreateRun": func() error {
			_, err := runs.CreateRun(ghost, &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"}, Nodes: []string{"n1"}})
			return err
		},
		"CancelRun": func() error { _, err := runs.CancelRun(ghost, &musterv1.CancelRunRequest{Run: id}); return err },
		"GetRun":    func() error { _, err := runs.GetRun(ghost, &musterv1.GetRunRequest{Run: id}); return err },
		"WatchRun": func() error {
			_, err := must(runs.WatchRun(ghost, &musterv1.WatchRunRequest{Run: id}))(t).Recv()
			return err
		},
	})
	uri := "spiffe://" + g.callers.operator.Fleet + "/user/ghost"
	for listener := range methodOfOperators {
		if why := g.callers.throughGateway(t, listener, uri); why != "OPERATOR_NOT_RECORDED" {
			t.Errorf("%s refuses the call for %q", listener, why)
		}
	}
	must(f.Muster("operator", "add", "ghost"))(t)
	for listener := range methodOfOperators {
		until(t, listener+" accepts the new operator", func() bool { return g.callers.throughGateway(t, listener, uri) == "-" })
	}
	_, err := runs.GetRun(g.as("ghost"), &musterv1.GetRunRequest{Run: id})
	check(t, err)

	_, err = runs.CancelRun(g.as("admin"), &musterv1.CancelRunRequest{Run: id})
	check(t, err)
	var records []auditRecord
	check(t, f.JSON(&records, "audit", "--json", "--run", id, "--kind", "run"))
	if len(records) != 2 || !strings.HasSuffix(records[0].Actor, "/user/admin") || records[0].VouchedBy != g.callers.uri("Gateway") {
		t.Errorf("the records of a run that was cancelled through the gateway: %+v", records)
	}
	if len(records) == 2 && records[1].VouchedBy != "" {
		t.Errorf("the run was created directly: %+v", records[1])
	}
	if out := must(f.Muster("audit", "--run", id))(t); !strings.Contains(out, "user/admin via service/gateway/walker") {
		t.Errorf("muster audit prints %s", out)
	}
}
