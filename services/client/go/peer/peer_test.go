package peer

import (
	"strings"
	"testing"
)

func TestParseAcceptsExactlyOneSpelling(t *testing.T) {
	const run = "00000000000000aa"
	for uri, want := range map[string]Identity{
		"spiffe://f.muster/service/gateway/g1":               {Kind: Service, Fleet: "f.muster", Role: "gateway", Name: "g1"},
		"spiffe://f.muster/user/alice":                       {Kind: User, Fleet: "f.muster", Name: "alice"},
		"spiffe://f.muster/node/n1":                          {Kind: Node, Fleet: "f.muster", Name: "n1"},
		"spiffe://" + run + ".f.muster/plugin/p":             {Kind: AnyNode, Fleet: "f.muster", Run: run, Plugin: "p"},
		"spiffe://" + run + ".f.muster/plugin/p/node/n1":     {Kind: PluginNode, Fleet: "f.muster", Run: run, Plugin: "p", PlanNode: "n1"},
		"spiffe://" + run + ".f.muster/plugin/p/node/global": {Kind: PluginNode, Fleet: "f.muster", Run: run, Plugin: "p", PlanNode: "global"},
		"spiffe://" + run + ".f.muster/listener":             {Kind: Listener, Fleet: "f.muster", Run: run},
	} {
		want.URI = uri
		if got, err := Parse(uri); err != nil || got != want {
			t.Errorf("%s: %+v %v", uri, got, err)
		}
	}
	for _, uri := range []string{
		"", "spiffe://", "spiffe://f.muster", "spiffe://f.muster/", "http://f.muster/user/a", "SPIFFE://f.muster/user/a",
		"spiffe://F.muster/user/a", "spiffe://f.muster/user/", "spiffe://f.muster/user/a/", "spiffe://f.muster//user/a",
		"spiffe://f.muster/user/a/b", "spiffe://f.muster/user/.a", "spiffe://f.muster/user/a%2Fb", "spiffe://f.muster/user/a b",
		"spiffe://f.muster/user/a?x", "spiffe://f.muster/user/a#x", "spiffe://u@f.muster/user/a", "spiffe://f.muster:1/user/a",
		"spiffe://f.muster/user/" + strings.Repeat("a", 254), "spiffe://f.muster/node/global", "spiffe://f.muster/plugin/p",
		"spiffe://x." + run + ".f.muster/plugin/p", "spiffe://" + run + "/plugin/p", "spiffe://00000000000000AA.f.muster/plugin/p",
		"spiffe://" + run + ".f.muster/plugin/p/node", "spiffe://" + run + ".f.muster/plugin/p/nodes/n", "spiffe://f.muster/service/gateway",
		"spiffe://f.muster/user/../user/a", "spiffe://f.muster/user/a\n",
	} {
		if got, err := Parse(uri); err == nil {
			t.Errorf("%q: %+v", uri, got)
		}
	}
}

func TestDeliversForRequiresMatchingPair(t *testing.T) {
	const run, other = "00000000000000aa", "00000000000000bb"
	for uri, fits := range map[string]bool{
		"spiffe://" + run + ".f.muster/plugin/p/node/n1":   true,
		"spiffe://" + run + ".f.muster/plugin/p":           true,
		"spiffe://f.muster/node/n1":                        true,
		"spiffe://" + run + ".f.muster/plugin/p/node/n2":   false,
		"spiffe://" + run + ".f.muster/plugin/q/node/n1":   false,
		"spiffe://" + run + ".f.muster/plugin/q":           false,
		"spiffe://" + other + ".f.muster/plugin/p/node/n1": false,
		"spiffe://" + other + ".f.muster/plugin/p":         false,
		"spiffe://f.muster/node/n2":                        false,
		"spiffe://f.muster/user/n1":                        false,
		"spiffe://f.muster/service/gateway/n1":             false,
		"spiffe://" + run + ".f.muster/listener":           false,
	} {
		id, err := Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		if err := id.DeliversFor(run, "p", "n1"); (err == nil) != fits {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
