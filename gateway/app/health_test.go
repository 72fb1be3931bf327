package app_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// Heartbeats of legacy clients.
func TestHealthReturnsInterval(t *testing.T) {
	w := start(t, func(w *testGateway) { w.aggregator.Interval = 12 * time.Second })
	const health = "/api/v1/health/"
	get := func(method, plugin, node, path string) answer {
		return call(t, oldClient(w.runA, w.leaf(plugin, node)), method, "https://"+w.address()+health+path, nil)
	}
	for _, c := range []struct{ plugin, node, path string }{
		{"logs", "n1", "by-node/n1/logs"}, {"logs", "global", "global/logs"}, {"p.json", "n2", "by-node/n2/p.json"},
	} {
		a := get("GET", c.plugin, c.node, c.path)
		if a.code != 200 || strings.TrimSpace(a.body) != `{"interval_seconds":12}` || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", c.path, a.code, a.body)
		}
	}
	for _, c := range []struct {
		name, method, path string
		code               int
	}{
		{"an unplanned plugin", "GET", "by-node/n1/nothing", 403},
		{"another plugin's", "GET", "by-node/n1/e2e", 403},
		{"another node's", "GET", "by-node/n2/logs", 403},
		{"the one that runs once", "GET", "global/logs", 403},
		{"a name that is none", "GET", "by-node/n1/%2e%2e", 404},
		{"no plugin", "GET", "by-node/n1", 404},
		{"another kind", "GET", "by-rack/n1/logs", 404},
		{"nothing", "GET", "", 404},
		{"POST", "POST", "by-node/n1/logs", 405},
		{"PUT", "PUT", "global/logs", 405},
		{"HEAD", "HEAD", "by-node/n1/logs", 405},
	} {
		if a := get(c.method, "logs", "n1", c.path); a.code != c.code {
			t.Errorf("%s: %d %s", c.name, a.code, a.body)
		}
	}
	// A node that the plan does not name, with a certificate for any node: the status service decides.
	anyNode := w.runA.SelfSigned.Leaf(w.runA.URI("plugin/logs"))
	if a := call(t, oldClient(w.runA, anyNode), "GET", "https://"+w.address()+health+"by-node/n9/logs", nil); a.code != 403 {
		t.Errorf("an unplanned node: %d %s", a.code, a.body)
	}
	if _, err := try(oldClient(w.runA), "GET", "https://"+w.address()+health+"by-node/n1/logs", nil); err == nil {
		t.Error("answered without a certificate")
	}
	w.gateway.Stop()
	for _, caller := range w.aggregator.Callers {
		if caller != "[]" && !strings.Contains(caller, "/plugin/") {
			t.Errorf("the status service was called by %s", caller)
		}
	}
}

func TestHealthWhileStatusServiceIsDownOrBehindIsRetryable(t *testing.T) {
	w := start(t)
	url := "https://" + w.address() + "/api/v1/health/by-node/n1/logs"
	client := oldClient(w.runA, w.leaf("logs", "n1"))
	w.aggregator.Refuse(runA, codes.NotFound, "RUN_NOT_FOUND") // it learns of a new run a little later
	if a := call(t, client, "GET", url, nil); a.code != 503 {
		t.Errorf("behind: %d %s", a.code, a.body)
	}
	w.aggregator.Stop()
	if a := call(t, client, "GET", url, nil); a.code != 503 {
		t.Errorf("away: %d %s", a.code, a.body)
	}
}
