package rest

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"muster.example/gateway/gen"
)

// policyRoles are the roles in services/common/identity/rpc_table.cc.
var policyRoles = map[string]roles{
	"kOperators": operator, "Role::kOperator": operator, "Role::kAggregator": aggregator, "Role::kStatus": statusService,
	"Role::kGateway": gateway, "Role::kRelay": relay, "Role::kJobs": jobs, "Role::kNode": node, "Role::kRunNode": runNode,
	"Role::kRunPlugin": runPlugin,
	"Role::kRunViewer": runViewer, "kDeliverers": deliverers, "kProvenNodes": node | runNode,
	"kServices": aggregator | statusService | gateway | relay | jobs,
}

// policy returns the roles of each method, and `direct` for those that the gateway may not call for others.
func policy(t *testing.T) map[string]roles {
	t.Helper()
	text, err := os.ReadFile("../../services/common/identity/rpc_table.cc")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "kTable[] = {")
	table, _, _ = strings.Cut(table, "}  // namespace")
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

func TestDocumentDescribesErrorsOfEveryOperation(t *testing.T) {
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(gen.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method, text := range methods {
			var operation struct{ Responses map[string]any }
			if method == "parameters" {
				continue
			}
			if err := json.Unmarshal(text, &operation); err != nil || operation.Responses["default"] == nil {
				t.Errorf("%s %s: %v, answers %v", method, path, err, operation.Responses)
			}
		}
	}
}

// The table of the services decides; each method with a path has to be in the gateway's copy.
func TestCallersMatchPolicyOfServices(t *testing.T) {
	text, err := os.ReadFile("../../proto/muster/v1/http.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		HTTP struct{ Rules []struct{ Selector string } }
	}
	if err := yaml.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	all, err := newOperations()
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, one := range all {
		documented[one.rpc] = true
	}
	want := policy(t)
	want[archiveContent], want[resultContent] = want["/muster.v1.ArchiveService/ReadArchive"], want["/muster.v1.ResultService/ReadResult"]
	want[dashboardLink], want[openAPI] = operator, anybody
	names := []string{archiveContent, resultContent, dashboardLink, openAPI}
	for _, rule := range api.HTTP.Rules {
		at := strings.LastIndexByte(rule.Selector, '.')
		names = append(names, "/"+rule.Selector[:at]+"/"+rule.Selector[at+1:])
	}
	for _, name := range names {
		if got := callers[name]; got != want[name] || got == 0 || !documented[name] {
			t.Errorf("%s: %v, want %v, documented %v", name, got, want[name], documented[name])
		}
	}
	if len(names) != len(callers) {
		t.Errorf("%d methods, %d in the table", len(names), len(callers))
	}
}
