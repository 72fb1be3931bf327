package app_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

// progressOf returns a run of four pairs: one of each kind.
func progressOf(run string) *musterv1.RunStatus {
	at := timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return &musterv1.RunStatus{
		Run: run, State: musterv1.RunState_RUN_STATE_RUNNING, PercentComplete: 0.75, CreateTime: at, Time: timestamppb.Now(),
		Counts:   &musterv1.ResultCounts{Planned: 4, Pending: 1, Genuine: 1, Errors: 1, TimedOut: 1},
		Reasons:  []*musterv1.ReasonCount{{Reason: musterv1.Reason_REASON_NOT_RESPONDING, Count: 1}},
		Estimate: &musterv1.Estimate{Earliest: at, Latest: at},
		Plugins:  []*musterv1.PluginStatus{{Plugin: "e2e", Once: true, PercentComplete: 1}, {Plugin: "logs", PercentComplete: 0.5}},
		Pairs: []*musterv1.PairStatus{
			{Plugin: "e2e", Node: "global", Outcome: musterv1.Outcome_OUTCOME_GENUINE, Size: 7},
			{Plugin: "logs", Node: "n1", Outcome: musterv1.Outcome_OUTCOME_PENDING, Presence: musterv1.Presence_PRESENCE_SUSPECT,
				Reason: musterv1.Reason_REASON_NOT_RESPONDING, ReasonSince: at, Detail: "silent", Next: "wait",
				HeartbeatAge: &durationpb.Duration{Seconds: 42, Nanos: 900_000_000}, Phase: musterv1.Phase_PHASE_WORKING,
				Progress: &musterv1.Progress{Message: "<b>half</b>", Total: 10, Completed: 5, Failures: []string{"x"}}},
			{Plugin: "logs", Node: "n2", Outcome: musterv1.Outcome_OUTCOME_ERROR, Error: "no disk", HeartbeatAge: &durationpb.Duration{}},
			{Plugin: "logs", Node: "n3", Outcome: musterv1.Outcome_OUTCOME_TIMED_OUT, Reason: musterv1.Reason_REASON_TIMED_OUT,
				Fault: &musterv1.Fault{Check: musterv1.Fault_CHECK_TLS, Address: "h:1", Message: "m", NextStep: "s"}},
		},
	}
}

// startWithStatus starts a gateway with the status of run A and of the newer run B.
func startWithStatus(t *testing.T, change ...func(*testGateway)) (*testGateway, *mustertest.Run) {
	t.Helper()
	w := start(t, change...)
	other := w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
	w.aggregator.SetStatus(progressOf(runA))
	w.aggregator.SetStatus(progressOf(runB))
	return w, other
}

func viewer(run *mustertest.Run) tls.Certificate { return run.Signed.Leaf(run.URI("viewer")) }

func (w *testGateway) page(path string) string { return "https://" + w.gateway.Addresses.Status + path }

// statusClient returns a client of the status listener, with or without a certificate.
func (w *testGateway) statusClient(leaf ...tls.Certificate) *http.Client {
	settings := &tls.Config{RootCAs: w.fleet.Root.Pool()}
	if len(leaf) > 0 { // sent whatever the server requests
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &leaf[0], nil }
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: settings}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// The first fields of the response and of each pair are exactly those of the original design.
func TestStatusHasFormatOfDesign(t *testing.T) {
	w, _ := startWithStatus(t, func(w *testGateway) { w.aggregator.PageSize = 3 }) // the rest is on a second page
	a := call(t, w.statusClient(viewer(w.runA)), "GET", w.page("/status"), nil)
	if a.code != 200 || a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" ||
		a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("%d %v %s", a.code, a.header, a.body)
	}
	var got struct {
		Status  string
		Percent json.Number `json:"percent_complete"`
		Plugins []map[string]any
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Status != "running" || got.Percent != "0.75" || len(got.Plugins) != 4 || strings.Contains(a.body, `"percent_complete":"`) {
		t.Fatalf("%s", a.body)
	}
	type word = map[string]any
	for i, want := range []word{
		{"name": "e2e", "node": "", "status": "complete", "size": 7.0},
		{"name": "logs", "node": "n1", "status": "running", "last-heartbeat": 42.0, "state": "suspect", "reason": "not-responding",
			"since": "2026-01-02T03:04:05Z", "detail": "silent", "next": "wait", "message": "<b>half</b>", "phase": "working"},
		{"name": "logs", "node": "n2", "status": "failed", "error": "no disk", "last-heartbeat": 0.0},
		{"name": "logs", "node": "n3", "status": "timed_out", "reason": "timed-out"},
	} {
		pair := got.Plugins[i]
		nested := fmt.Sprint(pair["progress"], pair["fault"])
		delete(pair, "progress")
		delete(pair, "fault")
		if fmt.Sprint(pair) != fmt.Sprint(want) { // maps print in the order of their keys
			t.Errorf("pair %d: %v, want %v", i, pair, want)
		}
		if wanted := []string{"<nil> <nil>", "map[completed:5 failures:[x] total:10] <nil>", "<nil> <nil>",
			"<nil> map[address:h:1 check:tls message:m next_step:s]"}[i]; nested != wanted {
			t.Errorf("pair %d: %s, want %s", i, nested, wanted)
		}
	}
	if strings.Contains(a.body, "<b>") {
		t.Error("a browser could sniff this as HTML: " + a.body)
	}
	all := decode(t, a.body)
	if all["run"] != runA || all["state"] != "running" || fmt.Sprint(all["reasons"]) != "map[not-responding:1]" || all["counts"] == nil ||
		all["estimate"] == nil || len(all["summary"].([]any)) != 2 {
		t.Errorf("%s", a.body)
	}
}

func TestRunStatesHaveNamesOfDesign(t *testing.T) {
	w, _ := startWithStatus(t)
	for state, want := range map[musterv1.RunState]string{
		musterv1.RunState_RUN_STATE_PLANNED: "running", musterv1.RunState_RUN_STATE_RUNNING: "running",
		musterv1.RunState_RUN_STATE_POST_PROCESSING: "post-processing", musterv1.RunState_RUN_STATE_COMPLETE: "complete",
		musterv1.RunState_RUN_STATE_FAILED: "failed", musterv1.RunState_RUN_STATE_CANCELLED: "cancelled",
	} {
		status := progressOf(runA)
		status.State, status.Pairs = state, nil
		w.aggregator.SetStatus(status)
		a := call(t, w.statusClient(viewer(w.runA)), "GET", w.page("/status"), nil)
		if members := decode(t, a.body); members["status"] != want || fmt.Sprint(members["plugins"]) != "[]" {
			t.Errorf("%s: %s", state, a.body)
		}
	}
}

func TestStatusIsAuthorizedByCaller(t *testing.T) {
	w, other := startWithStatus(t)
	user := w.fleet.Intermediate.Leaf(alice)
	for _, c := range []struct {
		name, query string
		leaf        tls.Certificate
		code        int
		says        string
	}{
		{"a viewer", "", viewer(w.runA), 200, `"run":"` + runA},
		{"another run's viewer", "", viewer(other), 200, `"run":"` + runB},
		{"a viewer that names its own run", "?run=" + runA, viewer(w.runA), 200, `"run":"` + runA},
		{"a viewer that names none", "?run=", viewer(w.runA), 200, `"run":"` + runA},
		{"a viewer that names another run", "?run=" + runB, viewer(w.runA), 403, "NOT_YOURS"},
		{"a viewer that names both", "?run=" + runA + "&run=" + runB, viewer(w.runA), 403, "NOT_YOURS"},
		{"a viewer that names an unknown run", "?run=0000000000000000", viewer(w.runA), 403, "NOT_YOURS"},
		{"an operator: the newest", "", user, 200, `"run":"` + runB},
		{"an operator names one", "?run=" + runA, user, 200, `"run":"` + runA},
		{"an operator names an unknown run", "?run=0000000000000000", user, 404, "RUN_NOT_FOUND"},
		{"a sidecar's credential", "", w.runA.Signed.Leaf(w.runA.URI("plugin/logs/node/n1")), 403, "ROLE_NOT_ALLOWED"},
		{"a node's", "", w.fleet.Intermediate.Leaf("spiffe://" + mustertest.Domain + "/node/n1"), 403, "ROLE_NOT_ALLOWED"},
		{"a service's", "", w.fleet.Service("status", "s1"), 403, "ROLE_NOT_ALLOWED"},
		{"another fleet's name", "", w.fleet.Intermediate.Leaf("spiffe://other.muster/user/alice"), 403, "ROLE_NOT_ALLOWED"},
	} {
		a := call(t, w.statusClient(c.leaf), "GET", w.page("/status"+c.query), nil)
		if a.code != c.code || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: %d %s", c.name, a.code, a.body)
		}
		if members := decode(t, a.body); c.code >= 400 && (members["message"] == "" || members["next_step"] == "") {
			t.Errorf("%s: %s", c.name, a.body)
		}
		if c.code == 200 {
			continue
		}
		a = call(t, w.statusClient(c.leaf), "GET", w.page("/status"+c.query), nil, "Accept", "text/event-stream")
		if a.code != c.code || !strings.Contains(a.body, c.says) || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s asks for events: %d %v %s", c.name, a.code, a.header, a.body)
		}
	}
	a := call(t, w.statusClient(), "GET", w.page("/status"), nil)
	if a.code != 401 || decode(t, a.body)["reason"] != "CERTIFICATE_MISSING" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("without a certificate: %d %s", a.code, a.body)
	}
	w.aggregator.Stop()
	if a := call(t, w.statusClient(user), "GET", w.page("/status"), nil); a.code != 503 || decode(t, a.body)["reason"] != "STATUS_UNREACHABLE" {
		t.Errorf("without a status service: %d %s", a.code, a.body)
	}
}

// A certificate that does not chain to the fleet's root fails in the handshake and is counted by reason.
func TestInvalidCertificateFailsHandshake(t *testing.T) {
	w, other := startWithStatus(t)
	for _, c := range []struct {
		name, reason string
		leaf         tls.Certificate
	}{
		{"another fleet's", "other_authority", mustertest.NewFleet().NewRun(runA).Signed.Leaf(w.runA.URI("viewer"))},
		{"a run's without its chain", "other_authority", w.runA.SelfSigned.Leaf(w.runA.URI("viewer"))},
		{"forged by another run", "", other.Signed.Leaf(w.runA.URI("viewer"))},
		{"an operator's, forged by a run", "", w.runA.Signed.Leaf(alice)},
		{"expired", "expired", w.runA.Signed.Expired(w.runA.URI("viewer"))},
	} {
		before := w.metric("refused_handshakes_total", `listener="status"`)
		if a, err := try(w.statusClient(c.leaf), "GET", w.page("/status"), nil); err == nil {
			t.Errorf("%s: answered %d %s", c.name, a.code, a.body)
		}
		mustertest.Await(t, c.name+" is counted", func() bool { return w.metric("refused_handshakes_total", `listener="status"`) == before+1 })
		if c.reason != "" && w.metric("refused_handshakes_total", `reason="`+c.reason+`"`) == 0 {
			t.Errorf("%s: not counted as %s", c.name, c.reason)
		}
	}
}

func (w *testGateway) revoke(subject string) {
	w.aggregator.Tell(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Revoked_{
		Revoked: &musterv1.FollowChangesResponse_Revoked{Subject: subject}}})
}

func TestRevokedViewerIsRefused(t *testing.T) {
	w, _ := startWithStatus(t)
	client := w.statusClient(viewer(w.runA))
	w.revoke(w.runA.URI("viewer"))
	mustertest.Await(t, "the viewer is refused", func() bool {
		a := call(t, client, "GET", w.page("/status"), nil)
		return a.code == 403 && decode(t, a.body)["reason"] == "REVOKED"
	})
}

func TestUnchangedStatusReturns304(t *testing.T) {
	w, _ := startWithStatus(t)
	client := w.statusClient(viewer(w.runA))
	tag := call(t, client, "GET", w.page("/status"), nil).header.Get("ETag")
	status := progressOf(runA)
	status.Time = timestamppb.New(time.Now().Add(time.Hour)) // the time alone does not change the ETag
	w.aggregator.SetStatus(status)
	for asked, want := range map[string]int{tag: 304, `"x", ` + strings.TrimPrefix(tag, "W/"): 304, "*": 304, `W/"x"`: 200, "": 200} {
		a := call(t, client, "GET", w.page("/status"), nil, "If-None-Match", asked)
		if a.code != want || (a.code == 304) != (a.body == "") || a.header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %d %s", asked, a.code, a.body)
		}
	}
	status.Pairs[1].Progress.Completed++
	w.aggregator.SetStatus(status)
	if a := call(t, client, "GET", w.page("/status"), nil, "If-None-Match", tag); a.code != 200 || !strings.Contains(a.body, `"completed":6`) {
		t.Errorf("after a change: %d %s", a.code, a.body)
	}
	if a := call(t, client, "HEAD", w.page("/status"), nil); a.code != 200 || a.body != "" || a.header.Get("ETag") == tag {
		t.Errorf("HEAD: %d %v", a.code, a.header)
	}
}

func TestAttentionReturnsOnlyPairsThatNeedIt(t *testing.T) {
	w, _ := startWithStatus(t)
	status := progressOf(runA)
	status.Stragglers = []*musterv1.PairStatus{status.Pairs[1]}
	for i := range 30 {
		status.Pairs = append(status.Pairs,
			&musterv1.PairStatus{Plugin: "p", Node: fmt.Sprint("quiet", i), Outcome: musterv1.Outcome_OUTCOME_GENUINE},
			&musterv1.PairStatus{Plugin: "p", Node: fmt.Sprint("bad", i), Outcome: musterv1.Outcome_OUTCOME_ERROR})
	}
	running := &musterv1.PairStatus{Plugin: "p", Node: "working", Outcome: musterv1.Outcome_OUTCOME_PENDING,
		Reason: musterv1.Reason_REASON_RUNNING, Progress: &musterv1.Progress{Total: 2}}
	status.Pairs = append(status.Pairs, running, &musterv1.PairStatus{Plugin: "p", Node: "mute",
		Outcome: musterv1.Outcome_OUTCOME_PENDING, Reason: musterv1.Reason_REASON_RUNNING})
	late := &musterv1.PairStatus{Plugin: "p", Node: "late",
		Outcome: musterv1.Outcome_OUTCOME_PENDING, Reason: musterv1.Reason_REASON_NOT_STARTED}
	status.Pairs = append(status.Pairs, late)
	status.Stragglers = append(status.Stragglers, late) // after the start grace it is one, too
	status.Reasons = append(status.Reasons, &musterv1.ReasonCount{Reason: musterv1.Reason_REASON_NOT_STARTED, Count: 1})
	w.aggregator.SetStatus(status)
	var got struct{ Plugins []struct{ Node string } }
	a := call(t, w.statusClient(viewer(w.runA)), "GET", w.page("/status?only=attention"), nil)
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, pair := range got.Plugins {
		nodes = append(nodes, pair.Node)
	}
	want := []string{"n1", "working", "late", "n2", "bad0", "bad1", "bad2", "bad3", "bad4", "bad5", "bad6", "bad7", "bad8", "n3"}
	if !slices.Equal(nodes, want) {
		t.Errorf("%v, want %v", nodes, want)
	}
}

// No caller can change anything through the status listener.
func TestStatusListenerIsReadOnly(t *testing.T) {
	w, _ := startWithStatus(t)
	client := w.statusClient(w.fleet.Intermediate.Leaf(alice))
	for _, path := range []string{"/status", "/api/v1/runs", "/api/v1/dashboard-links", "/api/v1/runs/" + runA + ":cancel"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			a := call(t, client, method, w.page(path), strings.NewReader("{}"))
			if a.code != 405 || a.header.Get("Allow") != "GET, HEAD" || decode(t, a.body)["reason"] != "METHOD_NOT_ALLOWED" {
				t.Errorf("%s %s: %d %s", method, path, a.code, a.body)
			}
		}
	}
	if a := call(t, client, "GET", w.page("/api/v1/runs"), nil); a.code != 200 || !strings.Contains(a.body, runA) {
		t.Errorf("reading: %d %s", a.code, a.body)
	}
	if a := call(t, w.statusClient(), "GET", w.page("/api/v1/runs"), nil); a.code != 401 {
		t.Errorf("reading without an identity: %d %s", a.code, a.body)
	}
	if a := call(t, w.statusClient(), "GET", w.page("/"), nil); a.code != 200 || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src") {
		t.Errorf("the dashboard's page: %d %v", a.code, a.header)
	}
}

func TestCORSRequiresConfiguredOrigin(t *testing.T) {
	const product = "https://product.example"
	for _, configured := range []bool{false, true} {
		w, _ := startWithStatus(t, func(w *testGateway) {
			if configured {
				w.config.StatusOrigins = []string{product}
			}
		})
		client := w.statusClient(viewer(w.runA))
		for _, origin := range []string{product, "https://evil.example", "null", product + ".evil.example"} {
			want := ""
			if configured && origin == product {
				want = product
			}
			a := call(t, client, "GET", w.page("/status"), nil, "Origin", origin)
			if got := a.header.Get("Access-Control-Allow-Origin"); a.code != 200 || got != want ||
				(a.header.Get("Access-Control-Allow-Credentials") == "true") != (want != "") {
				t.Errorf("configured %v, from %s: %d %v", configured, origin, a.code, a.header)
			}
			// A CORS preflight has no certificate.
			a = call(t, w.statusClient(), "OPTIONS", w.page("/status"), nil, "Origin", origin, "Access-Control-Request-Method", "GET")
			if want != "" && (a.code != 204 || a.header.Get("Access-Control-Allow-Methods") != "GET") || want == "" && a.code != 401 {
				t.Errorf("configured %v, may %s: %d %v", configured, origin, a.code, a.header)
			}
		}
		if a := call(t, client, "GET", w.page("/api/v1/runs"), nil, "Origin", product); a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("the API is open too: %v", a.header)
		}
	}
}
