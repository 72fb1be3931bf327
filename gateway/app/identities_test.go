package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster.example/gateway/legacy"
	"muster.example/gateway/viewing"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

// identities are all kinds of callers. "none" has no certificate, "stranger" one of another fleet.
const identities = "none stranger self-signed expired revoked listener viewer viewer-b plugin any-node plugin-b node node-2 relay aggregator status gateway user"

// leaves returns a certificate of each kind.
func (w *testGateway) leaves(other *mustertest.Run) map[string]*tls.Certificate {
	service := func(role string) *tls.Certificate { return ptr(w.fleet.Service(role, role+"1")) }
	foreign := mustertest.NewFleet()
	return map[string]*tls.Certificate{
		"none": nil, "stranger": ptr(foreign.Intermediate.Leaf(alice)), "self-signed": ptr(w.runA.SelfSigned.Leaf(w.runA.URI("plugin/logs/node/n1"))),
		"expired": ptr(w.fleet.Intermediate.Expired(alice)), "revoked": ptr(w.fleet.Intermediate.Leaf("spiffe://" + mustertest.Domain + "/user/mallory")),
		"listener": ptr(w.runA.Signed.Leaf(w.runA.URI("listener"))), "viewer": ptr(viewer(w.runA)), "viewer-b": ptr(viewer(other)),
		"plugin": ptr(w.runA.Signed.Leaf(w.runA.URI("plugin/logs/node/n1"))), "any-node": ptr(w.runA.Signed.Leaf(w.runA.URI("plugin/logs"))),
		"plugin-b": ptr(other.Signed.Leaf(other.URI("plugin/logs/node/n1"))),
		"node":     ptr(w.fleet.Intermediate.Leaf(nodeOne)), "node-2": ptr(w.fleet.Intermediate.Leaf("spiffe://" + mustertest.Domain + "/node/n2")),
		"relay": service("relay"), "aggregator": service("aggregator"), "status": service("status"), "gateway": service("gateway"),
		"user": ptr(w.fleet.Intermediate.Leaf(alice)),
	}
}

// The table of callers and calls, at each listener. A cell that is not named is "no": a refused handshake, or 401, 403 or 405. The
// services check the object of a call, such as the run of a plugin, in addition.
const (
	mayNobody   = ""
	mayUsers    = "user"
	mayDeliver  = "plugin any-node plugin-b node node-2"
	mayReadRuns = "user gateway " + mayDeliver
	mayMember   = "listener viewer viewer-b relay aggregator status " + mayReadRuns
	mayView     = "viewer viewer-b user"
)

var mayCallREST = map[string]string{
	"GET /api/v1/openapi.json":                   mayMember,
	"POST /api/v1/dashboard-links":               mayUsers,
	"POST /api/v1/runs":                          mayUsers,
	"GET /api/v1/runs":                           "user gateway",
	"GET /api/v1/runs/{}":                        mayReadRuns,
	"GET /api/v1/runs/{}:watch":                  mayReadRuns,
	"POST /api/v1/runs/{}:cancel":                mayUsers,
	"DELETE /api/v1/runs/{}":                     mayUsers,
	"POST /api/v1/runs/{}:pin":                   mayUsers,
	"POST /api/v1/runs/{}:unpin":                 mayUsers,
	"GET /api/v1/retention":                      mayUsers,
	"POST /api/v1/runs/{}/credentials":           mayNobody,
	"POST /api/v1/runs/{}/viewers":               mayUsers,
	"PUT /api/v1/runs/{}/status-listener":        mayUsers,
	"GET /api/v1/runs/{}/results":                mayUsers,
	"GET /api/v1/runs/{}/results/{}/{}":          "user " + mayDeliver,
	"GET /api/v1/runs/{}/results/{}/{}/content":  "user plugin plugin-b node node-2",
	"HEAD /api/v1/runs/{}/results/{}/{}/content": "user plugin plugin-b node node-2",
	"GET /api/v1/runs/{}/archive":                mayUsers,
	"GET /api/v1/runs/{}/archive/content":        mayUsers,
	"HEAD /api/v1/runs/{}/archive/content":       mayUsers,
	"GET /api/v1/runs/{}/status":                 mayView + " " + mayDeliver,
	"GET /api/v1/runs/{}/status:watch":           mayView,
	"GET /api/v1/nodes":                          mayUsers,
	"GET /api/v1/nodes/{}":                       mayUsers,
	"POST /api/v1/runs/{}/heartbeats/{}/{}":      mayDeliver,
	"POST /api/v1/runs/{}/progress/{}/{}":        mayDeliver,
	"POST /api/v1/certificates:renew":            mayNobody,
	"POST /api/v1/operators":                     mayNobody,
	"POST /api/v1/command-certificates":          mayNobody,
	"POST /api/v1/operators/{}:revoke":           mayNobody,
	"GET /api/v1/operators":                      mayUsers,
	"GET /api/v1/audit":                          mayUsers,
	"POST /api/v1/enrollment/tokens":             mayNobody,
	"GET /api/v1/enrollment/tokens":              mayUsers,
	"POST /api/v1/enrollment/tokens/{}:revoke":   mayUsers,
	"GET /api/v1/enrollment/nodes":               mayUsers,
	"GET /api/v1/enrollment/nodes/{}":            "user relay",
	"POST /api/v1/enrollment/nodes/{}:label":     mayUsers,
	"POST /api/v1/enrollment/nodes/{}:revoke":    mayUsers,
	"DELETE /api/v1/enrollment/nodes/{}":         mayNobody,
	"GET /api/v1/attached":                       "user gateway",
	"POST /api/v1/jobs":                          "user gateway",
	"GET /api/v1/jobs/{}":                        "user gateway",
	"GET /api/v1/jobs":                           mayUsers,
	"GET /api/v1/jobs/{}:watch":                  "user gateway",
	"POST /api/v1/jobs/{}:cancel":                "user gateway",
	"POST /api/v1/template-types":                mayUsers,
	"GET /api/v1/template-types/{}":              mayUsers,
	"GET /api/v1/template-types":                 mayUsers,
	"POST /api/v1/templates":                     mayUsers,
	"GET /api/v1/templates/{}":                   mayUsers,
	"GET /api/v1/templates":                      mayUsers,
	"POST /api/v1/deployments:plan":              mayUsers,
	"POST /api/v1/deployments":                   mayUsers,
	"GET /api/v1/deployments/{}":                 mayUsers,
	"GET /api/v1/deployments":                    mayUsers,
	"POST /api/v1/deployments/{}:cancel":         mayUsers,
	"GET /api/v1/conformance":                    mayUsers,
	"GET /api/v1/conformance/{}":                 mayUsers,
	"GET /api/v1/conformance-baseline":           mayUsers,
	"GET /api/v1/secrets":                        mayUsers,
	"GET /api/v1/workspaces":                     mayUsers,
	"GET /api/v1/workspaces/{}":                  mayUsers,
	"DELETE /api/v1/workspaces/{}":               mayUsers,
	"GET /api/v1/shares":                         "user node node-2",
	"GET /api/v1/shares/{}/{}/{}":                "user relay node node-2",
	"DELETE /api/v1/shares/{}/{}/{}":             "user relay node node-2",
}

var mayCallStatus = map[string]string{
	"GET /status": mayView, "HEAD /status": mayView,
	// Without a token there is no session, and without a session no harm in its end.
	"GET /login": mayNobody, "POST /logout": mayMember + " none revoked",
}

var mayCallLegacy = map[string]string{
	"PUT /api/v1/results/by-node/{}/{}":   "plugin any-node",
	"PUT /api/v1/results/by_node/{}/{}":   "plugin any-node",
	"PUT /api/v1/results/global/{}":       "any-node",
	"POST /api/v1/progress/by-node/{}/{}": "plugin any-node",
	"POST /api/v1/progress/global/{}":     "any-node",
	"GET /api/v1/health/by-node/{}/{}":    "plugin any-node",
	"GET /api/v1/health/global/{}":        "any-node",
}

// cell calls a route with a certificate of each kind, and compares who is admitted.
func (w *testGateway) cell(name, may string, leaves map[string]*tls.Certificate, roots *x509.CertPool, method, url string) {
	w.t.Helper()
	for _, kind := range strings.Fields(identities) {
		settings := &tls.Config{RootCAs: roots}
		if leaf := leaves[kind]; leaf != nil {
			settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return leaf, nil }
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: settings},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		var a answer
		request, err := http.NewRequest(method, url, strings.NewReader("{}"))
		if err != nil {
			w.t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			a.code = response.StatusCode
			if a.code == 403 {
				content, _ := io.ReadAll(response.Body)
				a.body = string(content)
			}
			response.Body.Close() // a watch does not end
		}
		service := strings.Contains(a.body, `"NOT_YOURS"`) // the service has checked the object of the call
		admitted := err == nil && a.code != 401 && (a.code != 403 || service) && a.code != 405
		if want := slices.Contains(strings.Fields(may), kind); admitted != want {
			w.t.Errorf("%s: %s: admitted %v, want %v (%d, %v)", name, kind, admitted, want, a.code, err)
		}
	}
}

// Every listener, every route, every kind of caller. The routes are those of the router: a new one without a row fails.
func TestWhoMayCallWhat(t *testing.T) {
	w, other := startWithStatus(t, relaying)
	leaves := w.leaves(other)
	w.aggregator.Tell(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Revoked_{
		Revoked: &musterv1.FollowChangesResponse_Revoked{Subject: "spiffe://" + mustertest.Domain + "/user/mallory"}}})
	mustertest.Await(t, "mallory is revoked", func() bool {
		return call(t, w.statusClient(*leaves["revoked"]), "GET", w.page("/status"), nil).code == 403
	})
	routes := append(rules(t), legacy.Route{Method: "GET", Path: "/api/v1/openapi.json"}, legacy.Route{Method: "POST", Path: "/api/v1/dashboard-links"})
	for _, content := range []string{"/api/v1/runs/{run}/archive/content", "/api/v1/runs/{run}/results/{plugin}/{node}/content"} {
		routes = append(routes, legacy.Route{Method: "GET", Path: content}, legacy.Route{Method: "HEAD", Path: content})
	}
	missing := func(table map[string]string, route string) (string, bool) {
		may, known := table[route]
		if !known {
			t.Errorf("%s has no row", route)
		}
		return may, known
	}
	for _, route := range routes {
		path := braces.ReplaceAllString(route.Path, "{}")
		may, known := missing(mayCallREST, route.Method+" "+path)
		if !known {
			continue
		}
		concrete := concretePath(path)
		w.cell("REST: "+route.Method+" "+path, may, leaves, w.fleet.Root.Pool(), route.Method, w.url(concrete))
		reads := mayNobody // of the status listener: only what people may read
		if route.Method == "GET" || route.Method == "HEAD" {
			reads = intersection(may, mayView)
		}
		w.cell("status: "+route.Method+" "+path, reads, leaves, w.fleet.Root.Pool(), route.Method, w.page(concrete))
	}
	for _, route := range viewing.Routes {
		if may, known := missing(mayCallStatus, route.Method+" "+route.Path); known {
			w.cell("status: "+route.Method+" "+route.Path, may, leaves, w.fleet.Root.Pool(), route.Method, w.page(route.Path))
		}
	}
	// A listener of a run knows its run CA only: the certificates have no chain to the fleet's.
	own := map[string]*tls.Certificate{}
	for kind, leaf := range leaves {
		own[kind] = leaf
	}
	own["plugin"], own["any-node"] = leaves["self-signed"], ptr(w.runA.SelfSigned.Leaf(w.runA.URI("plugin/logs")))
	own["viewer"], own["listener"] = ptr(w.runA.SelfSigned.Leaf(w.runA.URI("viewer"))), ptr(w.runA.SelfSigned.Leaf(w.runA.URI("listener")))
	own["plugin-b"], own["self-signed"] = ptr(other.SelfSigned.Leaf(other.URI("plugin/logs/node/n1"))), ptr(w.runA.SelfSigned.Leaf(alice))
	for _, route := range legacy.Routes {
		path := braces.ReplaceAllString(route.Path, "{}")
		if may, known := missing(mayCallLegacy, route.Method+" "+path); known {
			concrete := strings.Replace(strings.Replace(path, "{}/{}", "n1/logs", 1), "global/{}", "global/logs", 1)
			w.cell("legacy: "+route.Method+" "+path, may, own, w.runA.SelfSigned.Pool(), route.Method, "https://"+w.address()+concrete)
		}
	}
}

func intersection(a, b string) string {
	var both []string
	for _, one := range strings.Fields(a) {
		if slices.Contains(strings.Fields(b), one) {
			both = append(both, one)
		}
	}
	return strings.Join(both, " ")
}

var braces = regexp.MustCompile(`\{[^}]*\}`)

// concretePath replaces the names in a path.
func concretePath(path string) string {
	path = strings.Replace(path, "/runs/{}", "/runs/"+runA, 1)
	path = strings.Replace(path, "/{}/{}", "/logs/n1", 1)
	return strings.ReplaceAll(path, "{}", "x")
}

// A run's own status listener serves the status only.
func TestWhoMayCallStatusListenerOfRun(t *testing.T) {
	w, other := startWithStatus(t)
	w.aggregator.AddStatusListener(runA, &musterv1.GetStatusListenerResponse{})
	mustertest.Await(t, "the listener is open", func() bool { return w.aggregator.StatusPort(runA) != 0 })
	address := fmt.Sprintf("https://127.0.0.1:%d", w.aggregator.StatusPort(runA))
	leaves := w.leaves(other)
	leaves["revoked"] = nil // see TestWhoMayCallWhat
	for path, may := range map[string]string{"/status": "viewer user"} {
		w.cell("own status: GET "+path, may, leaves, w.fleet.Root.Pool(), "GET", address+path)
		w.cell("own status: POST "+path, mayNobody, leaves, w.fleet.Root.Pool(), "POST", address+path)
	}
	for _, path := range []string{"/", "/login", "/logout", "/api/v1/runs", "/api/v1/runs/" + runA + "/status"} {
		if a := call(t, w.statusClient(*leaves["user"]), "GET", address+path, nil); a.code != 404 {
			t.Errorf("%s: %d", path, a.code)
		}
	}
}

// Rudder's listener admits by address and by Rudder's own certificates, not by identities of the fleet: from another
// address, no caller may do anything, and its file folder needs a certificate of a node.
func TestWhoMayCallRudder(t *testing.T) {
	known := mustertest.NewFleet() // of a Rudder node
	nodeLeaf := known.Intermediate.Leaf(alice)
	w, other := startWithStatus(t, relaying, func(w *testGateway) {
		w.config.Rudder.ClientCAFile = write(w.t, "clients.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: known.Root.Certificate.Raw})))
	})
	leaves := w.leaves(other)
	leaves["rudder"] = &nodeLeaf
	for kind, leaf := range leaves {
		settings := &tls.Config{InsecureSkipVerify: true}
		if leaf != nil {
			settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return leaf, nil }
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: settings}}
		a := call(t, client, "GET", "https://"+w.gateway.Addresses.Rudder+"/rudder/relay-api/shared-folder/x", nil)
		if (a.code != 403) != (kind == "rudder") {
			t.Errorf("the shared folder: %s: %d %s", kind, a.code, a.body)
		}
	}
}
