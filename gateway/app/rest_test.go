package app_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"muster.example/gateway/gen"
	"muster.example/gateway/legacy"
	"muster.example/gateway/limits"
	"muster.example/gateway/viewing"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

const archivePath = "/api/v1/runs/" + runA + "/archive/content"

func TestRESTForwardsOnlyVerifiedIdentity(t *testing.T) {
	w := start(t)
	a := call(t, w.operator(alice), "GET", w.url("/api/v1/runs"), nil,
		"Grpc-Metadata-Muster-Forwarded-Identity", "spiffe://evil/user/root", "Muster-Forwarded-Identity", "spiffe://evil/user/root",
		"Authorization", "Bearer x", "X-Forwarded-For", "1.2.3.4", "Grpc-Timeout", "1n")
	if a.code != 200 || !strings.Contains(a.body, runA) {
		t.Fatalf("answered %d %s", a.code, a.body)
	}
	w.gateway.Stop() // from here on the lists do not change
	if !slices.Contains(w.aggregator.Callers, "["+alice+"]") {
		t.Errorf("the aggregator was called by %v", w.aggregator.Callers)
	}
	for _, caller := range w.aggregator.Callers {
		if caller != "["+alice+"]" && caller != "[]" { // empty: calls of the gateway itself
			t.Errorf("the aggregator was called by %s", caller)
		}
	}
	for _, names := range w.aggregator.MetadataNames {
		for _, name := range names {
			switch name {
			case ":authority", "content-type", "user-agent", "muster-forwarded-identity", "grpc-accept-encoding":
			default:
				t.Errorf("metadata %q was forwarded", name)
			}
		}
	}
	for name := range a.header {
		if strings.HasPrefix(name, "Grpc-") {
			t.Errorf("unexpected header %s in the response", name)
		}
	}
}

func TestRESTErrorsHaveCodeAndReason(t *testing.T) {
	w := start(t)
	for _, c := range []struct {
		method, path string
		code         int
		reason       string
	}{
		{"GET", "/api/v1/runs/" + runA + "/archive", 409, "ARCHIVE_NOT_READY"},
		{"GET", archivePath, 409, "ARCHIVE_NOT_READY"},
		{"GET", "/api/v1/nothing", 404, "PATH_NOT_FOUND"},
		{"PATCH", "/api/v1/runs", 405, "METHOD_NOT_ALLOWED"},
		{"GET", "/api/v1/runs?page_size=x", 400, "BAD_REQUEST"},
		{"GET", "/api/v1/runs/" + runA, 501, "UNKNOWN_METHOD"},
		{"GET", "/api/v1/runs/" + runA + "/results/logs/n1/content", 404, "RESULT_NOT_FOUND"},
		{"GET", "/api/v1/runs/caf%E9/results/logs/n1/content", 404, "RESULT_NOT_FOUND"}, // not UTF-8
		{"GET", "/api/v1/runs/caf%E9", 501, "UNKNOWN_METHOD"},
	} {
		a := call(t, w.operator(alice), c.method, w.url(c.path), nil)
		body := decode(t, a.body)
		if a.code != c.code || body["reason"] != c.reason || body["message"] == "" || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s %v", c.method, c.path, a.code, a.body, a.header)
		}
		if _, ok := body["next_step"]; !ok || len(body) != 3 {
			t.Errorf("%s %s: %s", c.method, c.path, a.body)
		}
	}
}

func TestRESTRequiresFleetCertificate(t *testing.T) {
	w := start(t)
	foreign := mustertest.NewFleet()
	for name, leaf := range map[string]*tls.Certificate{
		"none": nil, "another fleet's": ptr(foreign.Intermediate.Leaf(alice)), "expired": ptr(w.fleet.Intermediate.Expired(alice)),
		"self-signed by the run only": ptr(w.runA.SelfSigned.Leaf(w.runA.URI("plugin/logs"))),
		"forged by a run":             ptr(w.runA.Signed.Leaf(alice)),
	} {
		settings := &tls.Config{RootCAs: w.fleet.Root.Pool()}
		if leaf != nil {
			settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return leaf, nil }
		}
		if a, err := try(&http.Client{Transport: &http.Transport{TLSClientConfig: settings}}, "GET", w.url("/api/v1/runs"), nil); err == nil {
			t.Errorf("%s: answered %d %s", name, a.code, a.body)
		}
	}
	// A run credential with its chain belongs to the fleet; the services decide what it may do.
	chained := w.runA.Signed.Leaf(w.runA.URI("plugin/logs/node/n1"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.fleet.Root.Pool(), Certificates: []tls.Certificate{chained}}}}
	if a := call(t, client, "GET", w.url("/api/v1/runs/"+runA+"/results/logs/n1"), nil); a.code != 200 {
		t.Errorf("a run's credential: %d %s", a.code, a.body)
	}
	if a := call(t, w.operator("spiffe://other.muster/user/alice"), "GET", w.url("/api/v1/runs"), nil); a.code != 403 {
		t.Errorf("another fleet's name: %d", a.code)
	}
}

func ptr[T any](value T) *T { return &value }

func TestRESTRefusesRevokedIdentities(t *testing.T) {
	w := start(t)
	client := w.operator(alice)
	if a := call(t, client, "GET", w.url("/api/v1/runs"), nil); a.code != 200 {
		t.Fatal(a)
	}
	revoke := func(subject string) {
		w.aggregator.Tell(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Revoked_{
			Revoked: &musterv1.FollowChangesResponse_Revoked{Subject: subject}}})
	}
	revoke(alice)
	mustertest.Await(t, "alice is refused", func() bool {
		a := call(t, client, "GET", w.url("/api/v1/runs"), nil)
		return a.code == 403 && strings.Contains(a.body, "REVOKED")
	})
	leaf := w.leaf("logs", "n1")
	revoke(hex.EncodeToString(leaf.Leaf.AuthorityKeyId) + ":" + hex.EncodeToString(leaf.Leaf.SerialNumber.Bytes()))
	url := "https://" + w.address() + "/api/v1/results/by-node/n1/logs"
	mustertest.Await(t, "the certificate is refused", func() bool {
		return call(t, oldClient(w.runA, leaf), "PUT", url, strings.NewReader("x")).code == 403
	})
	if a := call(t, oldClient(w.runA, w.leaf("logs", "n1")), "PUT", url, strings.NewReader("x")); a.code != 200 {
		t.Errorf("another certificate of the pair: %d %s", a.code, a.body)
	}
}

func TestDownloadsSupportRanges(t *testing.T) {
	w := start(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	digest := sha256.Sum256(content)
	etag, base := `"`+hex.EncodeToString(digest[:])+`"`, base64.StdEncoding.EncodeToString(digest[:])
	w.aggregator.Archives[runA] = content
	w.put("logs", "n1", string(content), "Content-Disposition", "attachment;filename=r.txt", "Content-Type", "text/html")
	client := w.operator(alice)
	for _, path := range []string{archivePath, "/api/v1/runs/" + runA + "/results/logs/n1/content"} {
		for _, c := range []struct {
			asked        string
			header       []string
			code         int
			first, after int
		}{
			{"", nil, 200, 0, 16000},
			{"bytes=0-0", nil, 206, 0, 1},
			{"bytes=5-9", nil, 206, 5, 10},
			{"bytes=15990-", nil, 206, 15990, 16000},
			{"bytes=15990-99999999999999999999", nil, 206, 15990, 16000},
			{"bytes=-10", nil, 206, 15990, 16000},
			{"bytes=-99999", nil, 206, 0, 16000},
			{"bytes=16000-", nil, 416, 0, 0},
			{"bytes=-0", nil, 416, 0, 0},
			{"bytes=9-5", nil, 200, 0, 16000},
			{"bytes=0-1,5-6", nil, 200, 0, 16000},
			{"bytes=x-y", nil, 200, 0, 16000},
			{"lines=0-1", nil, 200, 0, 16000},
			{"bytes=5-9", []string{"If-Range", etag}, 206, 5, 10},
			{"bytes=5-9", []string{"If-Range", `"other"`}, 200, 0, 16000},
			{"", []string{"If-None-Match", `"x", ` + etag}, 304, 0, 0},
			{"", []string{"If-None-Match", `"x"`}, 200, 0, 16000},
		} {
			for _, method := range []string{"GET", "HEAD"} {
				header := c.header
				if c.asked != "" {
					header = append([]string{"Range", c.asked}, c.header...)
				}
				a := call(t, client, method, w.url(path), nil, header...)
				want := string(content[c.first:c.after])
				if method == "HEAD" {
					want = ""
				}
				if a.code != c.code || c.code < 300 && a.body != want {
					t.Errorf("%s %s %v: %d and %d bytes", method, path, header, a.code, len(a.body))
				}
				if c.code < 300 && (a.header.Get("ETag") != etag || a.header.Get("Digest") != "sha-256="+base ||
					a.header.Get("Repr-Digest") != "sha-256=:"+base+":" || a.header.Get("Accept-Ranges") != "bytes" ||
					a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment")) {
					t.Errorf("%s %s: %v", method, path, a.header)
				}
			}
		}
	}
}

func TestDamagedDownloadIsAborted(t *testing.T) {
	w := start(t)
	w.aggregator.Archives[runA] = make([]byte, 16000)
	w.aggregator.Damage = true
	for _, http2 := range []bool{true, false} {
		client := w.operator(alice)
		client.Transport.(*http.Transport).ForceAttemptHTTP2 = http2
		if a, err := try(client, "GET", w.url(archivePath), nil); err == nil {
			t.Errorf("HTTP/2 %v: the response ended without an error after %d bytes", http2, len(a.body))
		}
	}
	if w.metric("broken_reads_total", "") != 2 {
		t.Error("the broken download is not counted")
	}
}

// Every path of the document is served, and every served path is in the document.
func TestOpenAPIDocumentMatchesRouter(t *testing.T) {
	w := start(t)
	document := decode(t, string(gen.OpenAPI))
	operator := w.operator(alice) // one client, as the connections of an identity are bounded
	served := call(t, operator, "GET", w.url("/api/v1/openapi.json"), nil)
	if served.body != string(gen.OpenAPI) {
		t.Error("another document is served")
	}
	inDocument := map[string]bool{}
	name := regexp.MustCompile(`\{[^}]*\}`)
	for path, methods := range document["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			if method == "parameters" {
				continue
			}
			method = strings.ToUpper(method)
			inDocument[method+" "+name.ReplaceAllString(path, "{}")] = true
			concrete := name.ReplaceAllString(path, "p")
			var a answer
			switch first := strings.Split(path, "/"); {
			case first[1] != "api":
				a = call(t, w.statusClient(w.fleet.Intermediate.Leaf(alice)), method, w.page(concrete), nil)
				if a.header.Get("Content-Type") == "text/html; charset=utf-8" {
					t.Errorf("%s %s is in the document, and a page of the dashboard", method, path)
				}
			case slices.Contains([]string{"results", "progress", "health"}, first[3]):
				a = call(t, oldClient(w.runA, w.leaf("logs", "n1")), method, "https://"+w.address()+concrete, nil)
			default:
				a = call(t, operator, method, w.url(concrete), nil)
			}
			if strings.Contains(a.body, "PATH_NOT_FOUND") || strings.Contains(a.body, "no such path") || a.code == 405 {
				t.Errorf("%s %s is in the document and not served: %d %s", method, path, a.code, a.body)
			}
		}
	}
	routes := []legacy.Route{{Method: "GET", Path: "/api/v1/openapi.json"}, {Method: "POST", Path: "/api/v1/dashboard-links"}}
	routes = append(routes, legacy.Routes...)
	for _, route := range viewing.Routes {
		routes = append(routes, legacy.Route(route))
	}
	for _, content := range []string{archivePath, "/api/v1/runs/{}/results/{}/{}/content"} {
		for _, method := range []string{"GET", "HEAD"} {
			routes = append(routes, legacy.Route{Method: method, Path: strings.ReplaceAll(content, runA, "{}")})
		}
	}
	for _, route := range append(routes, rules(t)...) {
		if k := route.Method + " " + name.ReplaceAllString(route.Path, "{}"); !inDocument[k] {
			t.Errorf("%s is served and not in the document", k)
		}
	}
	if len(inDocument) != len(routes)+len(rules(t)) {
		t.Errorf("%d in the document, %d routes", len(inDocument), len(routes)+len(rules(t)))
	}
}

// rules reads the HTTP rules from which the REST translation is generated.
func rules(t *testing.T) (routes []legacy.Route) {
	t.Helper()
	for _, rule := range readRules(t) {
		for _, method := range []string{"get", "post", "delete", "put", "patch"} {
			if rule[method] != "" {
				routes = append(routes, legacy.Route{Method: strings.ToUpper(method), Path: rule[method]})
			}
		}
	}
	return routes
}

func readRules(t *testing.T) []map[string]string {
	t.Helper()
	content, err := os.ReadFile("../../proto/muster/v1/http.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		HTTP struct{ Rules []map[string]string }
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	return file.HTTP.Rules
}

func TestReadinessFollowsAggregator(t *testing.T) {
	w := start(t)
	inspection := "http://" + w.gateway.Addresses.Inspection
	mustertest.Await(t, "it is ready", func() bool { return call(t, http.DefaultClient, "GET", inspection+"/readyz", nil).code == 200 })
	w.aggregator.Stop()
	mustertest.Await(t, "it is not ready", func() bool { return call(t, http.DefaultClient, "GET", inspection+"/readyz", nil).code == 503 })
	if a := call(t, http.DefaultClient, "GET", inspection+"/livez", nil); a.code != 200 {
		t.Errorf("livez: %d", a.code)
	}
	if a := call(t, w.operator(alice), "GET", w.url("/api/v1/runs"), nil); a.code != 503 || decode(t, a.body)["reason"] != "UNAVAILABLE" {
		t.Errorf("without an aggregator: %d %s", a.code, a.body)
	}
	w.aggregator.Start()
	mustertest.Await(t, "it is ready again", func() bool { return call(t, http.DefaultClient, "GET", inspection+"/readyz", nil).code == 200 })
}

func TestRunsCreatedDuringFeedOutageAreFound(t *testing.T) {
	w := start(t)
	w.address()
	w.aggregator.Stop()
	w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
	w.aggregator.Start()
	if w.aggregator.Port(runB) == 0 {
		t.Error("no port")
	}
}

// A client could add time series without end.
func TestUnknownMethodsShareOneLabel(t *testing.T) {
	w := start(t)
	for _, method := range []string{"BREW", "STEEP"} {
		if a := call(t, w.operator(alice), method, w.url("/api/v1/runs"), nil); a.code < 400 {
			t.Error(method, a.code)
		}
	}
	if got := w.metric("requests_total", `route="other"`); got != 2 {
		t.Error(got)
	}
	if w.metric("requests_total", "BREW") != 0 {
		t.Error("the method is a label")
	}
}

func TestTooLargeResponseOfAServiceIsRefused(t *testing.T) {
	w := start(t)
	path := w.url("/api/v1/runs/" + runA + "/results/logs/n1")
	for size, want := range map[int64]int{limits.Response - 1<<10: 200, limits.Response + 1: 400} {
		w.aggregator.Results[key("logs", "n1")] = &mustertest.Committed{
			Description: &musterv1.ResultDescription{FileName: strings.Repeat("x", int(size))}}
		a := call(t, w.operator(alice), "GET", path, nil)
		if a.code != want || strings.Contains(a.body, "RESPONSE_TOO_LARGE") != (want == 400) {
			t.Errorf("%d bytes: %d %.200s", size, a.code, a.body)
		}
	}
}
