package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// wantRefusedEverywhere fails unless the run's listener and gRPC refuse this credential.
func wantRefusedEverywhere(t *testing.T, what string, credential *fleet.Credential, run, node string) {
	t.Helper()
	code, err := put(t, credential, node, "x")
	wantHandshakeRefused(t, what+", at the listener", code, err)
	if err := submit(t, credential, run, credential.Plugin, node, "x"); status.Code(err) != codes.Unavailable {
		t.Errorf("%s got %v by gRPC, want a refusal in the handshake", what, err)
	}
}

// Valid except for its time: refused in every handshake, counted, and detected by our own programs before they connect.
func TestExpiredCertificateIsRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	credential := must(f.Export(id, "logs", "n1"))(t)
	authority := must(f.StealAuthority(credential))(t)
	now := time.Now()
	uri := leafURI(t, credential)
	expired := must(authority.Sign(credential, uri, now.Add(-time.Hour), now.Add(-time.Second)))(t)

	wantRefusedEverywhere(t, "an expired certificate", expired, id, "n1")
	file := must(f.WriteFile("result", "x"))(t)
	if code, message := curl(t, expired, "-T", file, expired.AggregatorURL+"/api/v1/results/by-node/n1/logs"); code != "" ||
		!strings.Contains(message, "expired") {
		t.Errorf("curl got %q %q, want the alert of TLS", code, message)
	}
	until(t, "the refusals are counted", func() bool {
		return counted(t, f, "gateway", `muster_gateway_refused_handshakes_total{listener="run",reason="expired"}`) >= 2 &&
			counted(t, f, "aggregator", `muster_rpc_refused_handshakes_total{reason="bad_certificate"}`) >= 1
	})
	path := must(f.WriteCredential("expired.json", expired))(t)
	for _, arguments := range [][]string{{"submit", file}, {"agent"}} {
		_, err := f.Muster(append(arguments, "--config", path)...)
		wantExit(t, err, 2, "expired at", "muster credentials export")
	}
	if got := operator(t, f).result(t, id, "logs", "n1"); got.Outcome != musterv1.Outcome_OUTCOME_PENDING {
		t.Errorf("the run has changed: %v", got)
	}

	// The same certificate with a current time is accepted.
	current := must(authority.Sign(credential, uri, now.Add(-time.Hour), now.Add(time.Hour)))(t)
	if code, err := put(t, current, "n1", "x"); err != nil || code != http.StatusOK {
		t.Errorf("a certificate of today: %d %v", code, err)
	}
	check(t, submit(t, current, id, "logs", "n1", "x"))
}

// A stolen run CA can sign any identity, but it is not accepted outside of its run.
func TestStolenRunCAIsRefusedByOtherRuns(t *testing.T) {
	t.Parallel()
	f := up(t)
	mine := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	other := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	credential, victim := must(f.Export(mine, "logs", "n1"))(t), must(f.Export(other, "logs", "n1"))(t)
	authority := must(f.StealAuthority(credential))(t)
	fleetName := must(f.Operator())(t).Fleet
	now := time.Now()
	for _, uri := range []string{
		leafURI(t, victim),
		"spiffe://" + fleetName + "/user/admin",
		"spiffe://" + fleetName + "/node/n1",
		"spiffe://" + fleetName + "/service/gateway/g1",
		"spiffe://" + mine + ".another/plugin/logs/node/n1",
	} {
		forged := must(authority.Sign(victim, uri, now.Add(-time.Hour), now.Add(time.Hour)))(t)
		wantRefusedEverywhere(t, "a leaf for "+uri, forged, other, "n1")
	}
	if got := operator(t, f).result(t, other, "logs", "n1"); got.Outcome != musterv1.Outcome_OUTCOME_PENDING {
		t.Errorf("the other run has changed: %v", got)
	}
	own := must(authority.Sign(credential, leafURI(t, credential), now.Add(-time.Hour), now.Add(time.Hour)))(t)
	check(t, submit(t, own, mine, "logs", "n1", "what the thief may say"))
}
