package rest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// policyRoles are the roles in services/common/identity/rpc_authorization.cc.
var policyRoles = map[string]roles{
	"kOperators": operator, "Role::kOperator": operator, "Role::kAggregator": aggregator, "Role::kStatus": statusService,
	"Role::kGateway": gateway, "Role::kRelay": relay, "Role::kNode": node, "Role::kRunNode": runNode, "Role::kRunPlugin": runPlugin,
	"Role::kRunViewer": runViewer, "kDeliverers": deliverers, "kProvenNodes": node | runNode,
	"kServices": aggregator | statusService | gateway | relay,
}

// policy returns the roles of each method, and `direct` for those that the gateway may not call for others.
func policy(t *testing.T) map[string]roles {
	t.Helper()
	text, err := os.ReadFile("../../services/common/identity/rpc_authorization.cc")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "kTable[] = {")
	table, _, _ = strings.Cut(table, "const Row* FindRow")
	all := map[string]roles{}
	starts := regexp.MustCompile(`\{"(/muster\.v1\.[^"]+)"`).FindAllStringSubmatchIndex(table, -1)
	for i, at := range starts {
		end := len(table)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		row, set := table[at[1]:end], roles(0)
		grants, rest, _ := strings.Cut(row, "}}}")
		for _, name := range regexp.MustCompile(`\bkOperators|\bkDeliverers|\bkProvenNodes|\bkServices|Role::k\w+`).FindAllString(grants, -1) {
			one, known := policyRoles[name]
			if !known {
				t.Fatalf("unknown role %s in %s", name, row)
			}
			set |= one
		}
		if strings.HasPrefix(strings.TrimLeft(rest, ", \n"), "kDirectOnly") {
			set = direct
		}
		all[table[at[2]:at[3]]] = set
	}
	return all
}

// The table of the services decides; each method with a body has to be in the gateway's copy.
func TestBodyReadersMatchPolicyOfServices(t *testing.T) {
	text, err := os.ReadFile("../../proto/muster/v1/http.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		HTTP struct {
			Rules []struct{ Selector, Body string }
		}
	}
	if err := yaml.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	want, found := policy(t), 0
	for _, rule := range api.HTTP.Rules {
		at := strings.LastIndexByte(rule.Selector, '.')
		method := "/" + rule.Selector[:at] + "/" + rule.Selector[at+1:]
		if rule.Body == "" {
			continue
		}
		found++
		if got, ok := bodyReaders[method]; !ok || got != want[method] || got == 0 {
			t.Errorf("%s: %b, want %b", method, got, want[method])
		}
	}
	if found == 0 || found != len(bodyReaders) {
		t.Errorf("%d methods with a body, %d in the table", found, len(bodyReaders))
	}
}
