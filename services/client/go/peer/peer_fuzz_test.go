package peer

import (
	"crypto/x509"
	"net/url"
	"testing"
)

// An identity has one spelling, and a certificate with it yields the same.
func FuzzIdentityHasOneSpelling(f *testing.F) {
	for _, uri := range []string{
		"spiffe://f.muster/service/gateway/g1", "spiffe://f.muster/user/alice", "spiffe://f.muster/node/n1", "spiffe://f.muster/node/global",
		"spiffe://00000000000000aa.f.muster/plugin/p", "spiffe://00000000000000aa.f.muster/plugin/p/node/global",
		"spiffe://00000000000000aa.f.muster/listener", "spiffe://00000000000000aa.f.muster/viewer", "spiffe://f.muster/user/a%2Fb",
		"spiffe://f.muster/user/..a", "SPIFFE://f.muster/user/a?", "spiffe:f.muster/user/a",
	} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		if parsed, err := url.Parse(uri); err == nil {
			id, err := FromCertificate(&x509.Certificate{URIs: []*url.URL{parsed}})
			if direct, fault := Parse(parsed.String()); err == nil && (fault != nil || id != direct) {
				t.Errorf("%q: %+v, but %+v %v", uri, id, direct, fault)
			}
		}
		id, err := Parse(uri)
		if err != nil {
			return
		}
		paths := map[Kind]string{Service: "service/" + id.Role + "/" + id.Name, User: "user/" + id.Name, Node: "node/" + id.Name,
			AnyNode: "plugin/" + id.Plugin, PluginNode: "plugin/" + id.Plugin + "/node/" + id.PlanNode, Listener: "listener", Viewer: "viewer"}
		host := id.Fleet
		if id.Run != "" {
			host = id.Run + "." + host
		}
		if again := "spiffe://" + host + "/" + paths[id.Kind]; again != uri {
			t.Errorf("%q became %q", uri, again)
		}
		if got, err := FromCertificate(&x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: host, Path: "/" + paths[id.Kind]}}}); err != nil || got != id {
			t.Errorf("%q in a certificate: %+v %v", uri, got, err)
		}
		if id.DeliversFor(id.Run, id.Plugin, "other") == nil && id.Kind != AnyNode && id.Name != "other" && id.PlanNode != "other" {
			t.Errorf("%q delivers for others", uri)
		}
	})
}
