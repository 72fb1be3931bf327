package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// submit delivers a small result by gRPC.
func submit(t *testing.T, credential *fleet.Credential, run, plugin, node, body string) error {
	t.Helper()
	connection := must(credential.GRPC())(t)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	_, err := musterv1.NewResultServiceClient(connection).SubmitResult(ctx, smallResult(run, plugin, node, body))
	return err
}

// put delivers by HTTPS and returns the status code, or the error of a failed connection.
func put(t *testing.T, credential *fleet.Credential, node, body string) (int, error) {
	t.Helper()
	client := must(credential.HTTP())(t)
	request := must(http.NewRequest(http.MethodPut,
		credential.AggregatorURL+"/api/v1/results/by-node/"+node+"/"+credential.Plugin, strings.NewReader(body)))(t)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	response.Body.Close()
	return response.StatusCode, nil
}

// wantHandshakeRefused fails unless the connection failed without an answer of HTTP or gRPC.
func wantHandshakeRefused(t *testing.T, what string, code int, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s was answered %d, want a refusal in the handshake", what, code)
	}
}

func TestCredentialIsRefusedByAnotherRun(t *testing.T) {
	t.Parallel()
	f := up(t)
	a := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	b := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	mine, foreign := must(f.Export(a, "logs", "n1"))(t), must(f.Export(b, "logs", "n1"))(t)

	// At the other run's listener, even if the client trusts its run CA.
	stranger := *mine
	stranger.AggregatorURL, stranger.CA = foreign.AggregatorURL, foreign.CA
	code, err := put(t, &stranger, "n1", "x")
	wantHandshakeRefused(t, "a leaf of another run", code, err)
	// By gRPC the handshake is with the fleet; the permission is limited to the run.
	if err := submit(t, mine, b, "logs", "n1", "x"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a leaf of run A delivered into run B: %v", err)
	}
	if got := operator(t, f).result(t, b, "logs", "n1"); got.Outcome != musterv1.Outcome_OUTCOME_PENDING {
		t.Errorf("run B has changed: %v", got)
	}
	// Both credentials still work for their own run.
	for id, credential := range map[string]*fleet.Credential{a: mine, b: foreign} {
		if code, err := put(t, credential, "n1", "of "+id); err != nil || code != 200 {
			t.Errorf("run %s: %d %v", id, code, err)
		}
	}
}

func TestCredentialIsLimitedToItsPair(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet"), sidecarPlugin("other", "DaemonSet")}, "n1", "n2")
	credential := must(f.Export(id, "logs", "n1"))(t)
	for _, c := range []struct{ plugin, node string }{{"logs", "n2"}, {"other", "n1"}, {"logs", "global"}} {
		if err := submit(t, credential, id, c.plugin, c.node, "x"); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s on %s: %v, want PERMISSION_DENIED", c.plugin, c.node, err)
		}
	}
	any := must(f.Export(id, "logs", ""))(t)
	if err := submit(t, any, id, "logs", "n9", "x"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("any-node credential, an unplanned node: %v, want PERMISSION_DENIED", err)
	}
	check(t, submit(t, any, id, "logs", "n2", "x"))
	a := operator(t, f)
	if got := a.result(t, id, "logs", "n2"); !got.Delivery.GetNodeUnproven() {
		t.Errorf("a delivery for any node is not marked: %v", got)
	}
	if got := a.result(t, id, "logs", "n1"); got.Outcome != musterv1.Outcome_OUTCOME_PENDING {
		t.Errorf("n1 has changed: %v", got)
	}
}

// forge signs a leaf for this URI with a new CA that has the same subject.
func forge(t *testing.T, like *fleet.Credential, uri string, from, to time.Time) *fleet.Credential {
	t.Helper()
	block, _ := pem.Decode([]byte(like.CA))
	original := must(x509.ParseCertificate(block.Bytes))(t)
	caKey, key := newKey(t), newKey(t)
	authority := &x509.Certificate{SerialNumber: original.SerialNumber, RawSubject: original.RawSubject, IsCA: true,
		BasicConstraintsValid: true, SubjectKeyId: original.SubjectKeyId, NotBefore: original.NotBefore, NotAfter: original.NotAfter}
	name := must(url.Parse(uri))(t)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "leaf"}, URIs: []*url.URL{name},
		NotBefore: from, NotAfter: to, AuthorityKeyId: original.SubjectKeyId,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der := must(x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, caKey))(t)
	forged := *like
	forged.Certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	forged.Key = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(key))(t)}))
	return &forged
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

// leafURI returns the URI in a credential's certificate.
func leafURI(t *testing.T, credential *fleet.Credential) string {
	t.Helper()
	block, _ := pem.Decode([]byte(credential.Certificate))
	return must(x509.ParseCertificate(block.Bytes))(t).URIs[0].String()
}

func TestForgedCertificateFailsHandshake(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "logs", "n1"))(t)
	now := time.Now()
	forged := forge(t, credential, leafURI(t, credential), now.Add(-time.Hour), now.Add(time.Hour))
	if forged.Certificate == credential.Certificate {
		t.Fatal("nothing was forged")
	}
	code, err := put(t, forged, "n1", "x")
	wantHandshakeRefused(t, "the listener: a forged leaf", code, err)
	if err := submit(t, forged, id, "logs", "n1", "x"); status.Code(err) != codes.Unavailable {
		t.Errorf("gRPC: a forged leaf got %v, want a refusal in the handshake", err)
	}
	none := *credential
	client := must(none.HTTP())(t)
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = nil
	response, err := client.Get(credential.AggregatorURL)
	if err == nil {
		code = response.StatusCode
		response.Body.Close()
	}
	wantHandshakeRefused(t, "the listener: no certificate", code, err)
}

// The certificate of a run CA is critically constrained to its run.
func TestRunCAIsConstrainedToItsRun(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "logs", "n1"))(t)
	_, rest := pem.Decode([]byte(credential.Certificate))
	block, _ := pem.Decode(rest)
	if block == nil {
		t.Fatal("client_cert has no certificate of the run CA after the leaf")
	}
	authority := must(x509.ParseCertificate(block.Bytes))(t)
	host := strings.Split(strings.TrimPrefix(leafURI(t, credential), "spiffe://"), "/")[0]
	if len(authority.PermittedURIDomains) != 1 || authority.PermittedURIDomains[0] != host ||
		!authority.PermittedDNSDomainsCritical || !authority.MaxPathLenZero {
		t.Errorf("constraints: %v, critical %v, path length zero %v; want %s alone, true, true",
			authority.PermittedURIDomains, authority.PermittedDNSDomainsCritical, authority.MaxPathLenZero, host)
	}
}

func TestOperatorOfAnotherFleetFailsHandshake(t *testing.T) {
	t.Parallel()
	mine, other := must(up(t).Operator())(t), must(up(t).Operator())(t)
	stranger := *mine
	stranger.Aggregator, stranger.FleetCA = other.Aggregator, other.FleetCA
	connection := must(stranger.GRPC(tls.VersionTLS13))(t)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	_, err := musterv1.NewRunServiceClient(connection).ListRuns(ctx, &musterv1.ListRunsRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want a refusal in the handshake", err)
	}
}

func TestGRPCRequiresTLS13(t *testing.T) {
	t.Parallel()
	f := up(t)
	o := must(f.Operator())(t)
	for version, want := range map[uint16]codes.Code{tls.VersionTLS12: codes.Unavailable, tls.VersionTLS13: codes.OK} {
		connection := must(o.GRPC(version))(t)
		defer connection.Close()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		_, err := musterv1.NewRunServiceClient(connection).ListRuns(ctx, &musterv1.ListRunsRequest{})
		if status.Code(err) != want {
			t.Errorf("TLS %s: %v, want %v", tls.VersionName(version), err, want)
		}
	}
}

// Refused handshakes at a gRPC port are counted with the reason.
func TestRefusedGRPCHandshakesAreCounted(t *testing.T) {
	t.Parallel()
	f := up(t)
	o := must(f.Operator())(t)
	list := func(connection *grpc.ClientConn) {
		t.Helper()
		defer connection.Close()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if _, err := musterv1.NewRunServiceClient(connection).ListRuns(ctx, &musterv1.ListRunsRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want no connection", err)
		}
	}
	for _, c := range []struct {
		reason string
		knock  func()
	}{
		{"below_tls13", func() { list(must(o.GRPC(tls.VersionTLS12))(t)) }},
		{"no_certificate", func() {
			list(must(grpc.NewClient("passthrough:///"+o.Aggregator[0], grpc.WithTransportCredentials(
				credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))))(t))
		}},
		{"plaintext", func() { _, _ = http.Get("http://" + o.Aggregator[0]) }},
	} {
		series := `muster_rpc_refused_handshakes_total{reason="` + c.reason + `"}`
		before := counted(t, f, "aggregator", series)
		c.knock()
		until(t, c.reason+" is counted", func() bool { return counted(t, f, "aggregator", series) > before })
	}
}

func TestRevokedOperatorIsRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	second := must(f.Muster("operator", "add", "second"))(t)
	file := must(f.WriteFile("second.json", second))(t)
	must(f.Muster("runs", "--context", file))(t)
	must(f.Muster("operator", "revoke", "second"))(t)
	until(t, "the revoked operator is refused", func() bool {
		_, err := f.Muster("runs", "--context", file)
		return err != nil
	})
	must(f.Muster("runs"))(t)
}
