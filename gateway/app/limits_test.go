package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

// Only operators may send long JSON, and only for a new run, job or deployment.
func TestBodyLimitDependsOnCallerAndRoute(t *testing.T) {
	w := start(t)
	long := `{"x":"` + strings.Repeat("x", int(limits.Body)) + `"}`
	for _, c := range []struct {
		uri, path string
		code      int
	}{
		{alice, "/api/v1/runs", 400}, // it is read: the field is unknown
		{alice, "/api/v1/jobs", 400},
		{alice, "/api/v1/deployments", 400},
		{alice, "/api/v1/deployments:plan", 400},
		{alice, "/api/v1/runs/" + runA + "/viewers", 413},
		{nodeOne, "/api/v1/runs/" + runA + "/heartbeats/logs/n1", 413},
		{nodeOne, "/api/v1/runs/" + runA + "/progress/logs/n1", 413},
	} {
		if a := call(t, w.operator(c.uri), "POST", w.url(c.path), strings.NewReader(long)); a.code != c.code {
			t.Errorf("%s %s: %d %.200s", c.uri, c.path, a.code, a.body)
		}
	}
}

// The bytes of all requests of an identity are bounded, also of those that do not end.
func TestBytesOfRequestsInProgressAreBounded(t *testing.T) {
	w := start(t)
	leaf := w.fleet.Intermediate.Leaf(alice)
	piece := strings.Repeat("x", int(limits.PlanBody)-100)
	count := int(limits.BodiesOfIdentity / limits.PlanBody)
	for range count {
		conn, err := w.connect(w.gateway.Addresses.Gateway, &leaf)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = fmt.Fprintf(conn, "POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(piece)+7, `{"name`+piece)
		}()
	}
	mustertest.Await(t, "the others were read", func() bool { return w.metric("body_bytes", "") >= float64(count*(len(piece)-4096)) }) // the end may be buffered
	a := call(t, w.operator(alice), "POST", w.url("/api/v1/runs"), strings.NewReader(`{"x":"`+piece+`"}`))
	if a.code != 429 || decode(t, a.body)["reason"] != "TOO_MANY_REQUEST_BYTES" || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %.200s", a.code, a.body)
	}
	if w.metric("limit_refusals_total", `reason="bodies"`) != 1 {
		t.Error("the refusal is not counted")
	}
	if a := call(t, w.operator(nodeOne), "POST", w.url("/api/v1/runs/"+runA+"/heartbeats/logs/n1"), strings.NewReader("{}")); a.code != 200 {
		t.Errorf("another identity: %d %s", a.code, a.body)
	}
}

// The bytes of the requests of all identities are bounded, too.
func TestBytesOfAllRequestsInProgressAreBounded(t *testing.T) {
	w := start(t)
	piece := strings.Repeat("x", int(limits.PlanBody)-100)
	each, senders := int(limits.BodiesOfIdentity/limits.PlanBody), int(limits.Bodies/limits.BodiesOfIdentity)
	for i := range senders {
		leaf := w.fleet.Intermediate.Leaf(alice + strconv.Itoa(i))
		for range each {
			conn, err := w.connect(w.gateway.Addresses.Gateway, &leaf)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = fmt.Fprintf(conn, "POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(piece)+7, `{"name`+piece)
			}()
		}
	}
	mustertest.Await(t, "the others were read", func() bool {
		return w.metric("body_bytes", "") >= float64(senders*each*(len(piece)-4096))
	})
	a := call(t, w.operator(alice), "POST", w.url("/api/v1/runs"), strings.NewReader(`{"x":"`+piece+`"}`))
	if a.code != 429 || decode(t, a.body)["reason"] != "TOO_MANY_REQUEST_BYTES" {
		t.Errorf("%d %.200s", a.code, a.body)
	}
}

// A name with a mistake would otherwise be ignored, and the call do more than was asked for.
func TestUnknownFieldsAndParametersAreRefused(t *testing.T) {
	w, _ := startWithStatus(t)
	for _, c := range []struct{ method, url, body, reason, name, meant string }{
		{"DELETE", w.url("/api/v1/shares/n1/n2/f?realy=r1"), "", "UNKNOWN_PARAMETER", "realy", "Write relay,"},
		{"DELETE", w.url("/api/v1/runs/" + runA + "?dry_run=true"), "", "UNKNOWN_PARAMETER", "dry_run", ""},
		{"DELETE", w.url("/api/v1/runs/" + runA + "?run=" + runB), "", "UNKNOWN_PARAMETER", "run", ""}, // of the path
		{"POST", w.url("/api/v1/runs?title=x"), "{}", "UNKNOWN_PARAMETER", "title", ""},
		{"POST", w.url("/api/v1/jobs/" + jobID + ":cancel?nodes=n1"), "", "UNKNOWN_PARAMETER", "nodes", ""},
		{"GET", w.url("/api/v1/runs?pageSiz=1"), "", "UNKNOWN_PARAMETER", "pageSiz", "Write pageSize,"},
		{"GET", w.url(archivePath + "?offset=5"), "", "UNKNOWN_PARAMETER", "offset", ""},
		{"POST", w.url("/api/v1/dashboard-links?x=1"), "", "UNKNOWN_PARAMETER", "x", ""},
		{"POST", w.url("/api/v1/runs"), `{"titel":"x"}`, "UNKNOWN_FIELD", "titel", "Write title,"},
		{"POST", w.url("/api/v1/jobs"), `{"command":{"nothingLikeIt":"x"}}`, "UNKNOWN_FIELD", "nothingLikeIt", ""},
		{"POST", w.url("/api/v1/runs"), `{"title":"\ud83d"}`, "BAD_REQUEST", `\ud83d is half of a character`, "Correct the request"},
		{"POST", w.url("/api/v1/runs"), `{"title":"\\\ude00\ud83d"}`, "BAD_REQUEST", `\ude00 is half of a character`, ""},
		{"GET", w.page("/status?rnu=" + runA), "", "UNKNOWN_PARAMETER", "rnu", "Write run,"},
		{"GET", w.page("/status?only=atention"), "", "BAD_REQUEST", "only", ""},
		{"GET", w.page("/api/v1/runs?pageSiz=1"), "", "UNKNOWN_PARAMETER", "pageSiz", "Write pageSize,"},
	} {
		a := call(t, w.operator(alice), c.method, c.url, strings.NewReader(c.body))
		body := decode(t, a.body)
		if next, _ := body["next_step"].(string); a.code != 400 || body["reason"] != c.reason ||
			!strings.Contains(fmt.Sprint(body["message"]), c.name) || !strings.HasPrefix(next, c.meant) || next == "" {
			t.Errorf("%s %s %s: %d %s", c.method, c.url, c.body, a.code, a.body)
		}
	}
	for _, good := range []string{"page_size=5", "pageSize=5", ""} {
		if a := call(t, w.operator(alice), "GET", w.url("/api/v1/runs?"+good), nil); a.code != 200 {
			t.Errorf("%s: %d %s", good, a.code, a.body)
		}
	}
}

func TestFirstErrorOfWatchIsAnsweredAsOthers(t *testing.T) {
	w, _ := startWithStatus(t)
	for path, want := range map[string]struct {
		code   int
		reason string
	}{
		w.url("/api/v1/runs/0000000000000000/status:watch"):  {404, "RUN_NOT_FOUND"},
		w.page("/api/v1/runs/0000000000000000/status:watch"): {404, "RUN_NOT_FOUND"},
		w.url("/api/v1/jobs/none:watch"):                     {404, "JOB_NOT_FOUND"},
		w.url("/api/v1/runs/" + runA + ":watch"):             {501, "UNKNOWN_METHOD"},
		w.url("/api/v1/nothing:watch"):                       {404, "PATH_NOT_FOUND"},
	} {
		a := call(t, w.operator(alice), "GET", path, nil)
		body := decode(t, a.body)
		if a.code != want.code || body["reason"] != want.reason || body["message"] == "" || len(body) != 3 ||
			a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s", path, a.code, a.header, a.body)
		}
	}
}

// watch opens a watch, and returns its lines after the first.
func (w *testGateway) watch(client *http.Client, url string) (*bufio.Reader, int) {
	w.t.Helper()
	response, err := client.Get(url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewReader(response.Body)
	if response.StatusCode == 200 {
		if _, err := lines.ReadString('\n'); err != nil {
			w.t.Fatal(err)
		}
	}
	return lines, response.StatusCode
}

// A stop does not wait for watches, and tells the reason.
func TestWatchesEndWhenGatewayStops(t *testing.T) {
	w := start(t, func(w *testGateway) { w.config.Drain = time.Hour })
	w.aggregator.SetStatus(progressOf(runA))
	lines, _ := w.watch(w.operator(alice), w.url("/api/v1/runs/"+runA+"/status:watch"))
	if w.metric("watches", "") != 1 {
		t.Error("the watch is not counted")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	go func() {
		w.gateway.Stop()
		cancel()
	}()
	last, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(last), "GATEWAY_STOPPING") {
		t.Errorf("%s %v", last, err)
	}
	if <-ctx.Done(); ctx.Err() == context.DeadlineExceeded {
		t.Error("the stop waits for a watch")
	}
}

func TestWatchesOfIdentityAreBounded(t *testing.T) {
	w, _ := startWithStatus(t)
	clients := make([]*http.Client, (limits.WatchesOfIdentity+limits.Streams)/limits.Streams+1)
	first := viewer(w.runA)
	for i := range clients {
		clients[i] = w.statusClient(first)
	}
	for i := range limits.WatchesOfIdentity {
		if _, code := w.watch(clients[i*len(clients)/limits.WatchesOfIdentity], w.page("/api/v1/runs/"+runA+"/status:watch")); code != 200 {
			t.Fatalf("watch %d: %d", i, code)
		}
	}
	a := call(t, clients[0], "GET", w.page("/status"), nil, "Accept", "text/event-stream")
	if a.code != 429 || decode(t, a.body)["reason"] != "TOO_MANY_STREAMS" {
		t.Errorf("%d %s", a.code, a.body)
	}
	if _, code := w.watch(w.statusClient(viewer(w.runA)), w.page("/api/v1/runs/"+runA+"/status:watch")); code != 200 {
		t.Errorf("another viewer of the run: %d", code)
	}
	if _, code := w.watch(w.operator(alice), w.url("/api/v1/runs/"+runA+"/status:watch")); code != 200 {
		t.Errorf("another identity: %d", code)
	}
}

// The limits of watches depend on it.
func TestOnlyStreamsHavePathsOfWatches(t *testing.T) {
	stream := map[string]bool{}
	for _, file := range []protoreflect.FileDescriptor{musterv1.File_muster_v1_runs_proto, musterv1.File_muster_v1_status_proto,
		musterv1.File_muster_v1_jobs_proto, musterv1.File_muster_v1_results_proto, musterv1.File_muster_v1_archives_proto,
		musterv1.File_muster_v1_identities_proto, musterv1.File_muster_v1_enrollment_proto, musterv1.File_muster_v1_attachment_proto,
		musterv1.File_muster_v1_shares_proto, musterv1.File_muster_v1_heartbeats_proto,
		musterv1.File_muster_v1_audit_proto, musterv1.File_muster_v1_templates_proto, musterv1.File_muster_v1_deployments_proto,
		musterv1.File_muster_v1_conformance_proto, musterv1.File_muster_v1_contents_proto, musterv1.File_muster_v1_secrets_proto,
		musterv1.File_muster_v1_workspaces_proto} {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				stream[string(methods.Get(j).FullName())] = methods.Get(j).IsStreamingServer()
			}
		}
	}
	for _, rule := range readRules(t) {
		path := rule["get"] + rule["post"] + rule["put"] + rule["delete"]
		streams, known := stream[rule["selector"]]
		if !known || streams != strings.HasSuffix(path, ":watch") {
			t.Errorf("%s at %s: stream %v, known %v", rule["selector"], path, streams, known)
		}
	}
}

func TestLargeStatusIsCompressed(t *testing.T) {
	w, _ := startWithStatus(t)
	status := progressOf(runA)
	pair := status.Pairs[0]
	for range 500 {
		status.Pairs = append(status.Pairs, pair)
	}
	w.aggregator.SetStatus(status)
	for i, accept := range []string{"gzip", "identity, gzip;q=0"} {
		client := w.statusClient(viewer(w.runA))
		client.Transport.(*http.Transport).DisableCompression = i == 1
		request, _ := http.NewRequest("GET", w.page("/status"), nil)
		if i == 1 {
			request.Header.Set("Accept-Encoding", accept)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.Uncompressed != (i == 0) {
			t.Errorf("%s: compressed %v", accept, response.Uncompressed)
		}
		var got struct{ Plugins []any }
		if err := json.Unmarshal(content, &got); err != nil || len(got.Plugins) != len(status.Pairs) {
			t.Errorf("%s: %v, %d pairs", accept, err, len(got.Plugins))
		}
	}
}
