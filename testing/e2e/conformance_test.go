package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// conformanceReport is the output of the type conformance.
type conformanceReport struct {
	Version int
	Status  string
	Probes  []conformanceProbe
}

type conformanceProbe struct {
	ID, Area, Status, Measured, Expected, Text string
	Required                                   bool
}

// probing is a fleet with the type conformance, and a node that admits it.
type probing struct {
	*deploying
	image string
}

func newProbing(t *testing.T) *probing {
	t.Helper()
	p := &probing{deploying: &deploying{Fleet: up(t), folder: t.TempDir()}}
	p.docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, p.docker.Close()) })
	p.image = must(p.docker.PushConformance("../.."))(t)
	p.node = join(t, p.Fleet, "n1", "", nil, []string{"DOCKER_HOST=unix://" + p.docker.Socket})
	p.setPolicy(t, "actions: [deployment]")
	p.node.attach(t)
	document := string(must(os.ReadFile("../../deploy/conformance/conformance.yaml"))(t))
	document = regexp.MustCompile(`(?m)^image: .*$`).ReplaceAllString(document, "image: "+p.image)
	must(p.Muster("type", "push", p.write(t, "conformance.yaml", document)))(t)
	return p
}

// run runs the probes on the node, and returns the id of the deployment and the report.
func (p *probing) run(t *testing.T) (deployment string, report conformanceReport) {
	t.Helper()
	// The exit code is 9 if a probe fails.
	out, _ := p.Muster("conformance", "run", "--node", "n1", "--json")
	var nodes []struct {
		Deployment string
		Report     conformanceReport
	}
	if err := json.Unmarshal([]byte(out), &nodes); err != nil || len(nodes) != 1 {
		t.Fatalf("muster conformance run prints %s: %v", out, err)
	}
	return nodes[0].Deployment, nodes[0].Report
}

// The probes run on a node that has joined, and again once Docker has another version.
func TestDueNodesAreProbed(t *testing.T) {
	t.Parallel()
	p := newProbing(t)
	until(t, "n1 tells the version of its Docker", func() bool {
		out, err := p.Muster("node", "show", "n1")
		return err == nil && regexp.MustCompile(`docker [0-9]`).MatchString(out)
	})
	due := func() []string {
		t.Helper()
		var reports []struct{ Node string }
		check(t, p.JSON(&reports, "conformance", "run", "--due", "--json"))
		nodes := []string{}
		for _, report := range reports {
			nodes = append(nodes, report.Node)
		}
		return nodes
	}
	if got := due(); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("the probes run on %q, want n1", got)
	}
	if got := due(); len(got) != 0 {
		t.Errorf("the probes run again on %q", got)
	}
	p.node.agent.End()
	check(t, os.WriteFile(filepath.Join(p.node.folder(), "docker-version"), []byte(`{"version":"19.3.0","time":"2020-01-01T00:00:00Z"}`), 0o600))
	p.node.start(t)
	until(t, "the probes run for the new version", func() bool { return slices.Equal(due(), []string{"n1"}) })
	var node struct {
		Info struct {
			Adapters []struct{ Name, Version, Problem string }
		}
	}
	check(t, p.JSON(&node, "node", "show", "n1", "--json"))
	if len(node.Info.Adapters) != 2 || node.Info.Adapters[0].Name != "docker" || node.Info.Adapters[0].Problem != "" {
		t.Errorf("muster node show prints the adapters %+v", node.Info.Adapters)
	}
	if _, err := p.Muster("conformance", "run", "--due", "--node", "n1"); err == nil {
		t.Error("--due is accepted with --node")
	}
	_, err := p.Muster("conformance", "run", "--node", "missing")
	wantExit(t, err, 9, "1 of 1 node sent no report", "missing: unknown node: ", "next: ")

	other := must(p.docker.PushBusybox("types/other", "/bin/sh", "-c", "echo 1 >/state/outputs/report"))(t)
	must(p.Muster("type", "push", p.write(t, "other.yaml",
		"apiVersion: muster/v1\nkind: TemplateType\nname: conformance\nversion: 99.0.0\ncontract: 1\nimage: "+other+"\noutputs: {report: {}}\n")))(t)
	_, err = p.Muster("conformance", "run", "--node", "n1", "--type", "conformance@99.0.0")
	wantExit(t, err, 9, "1 of 1 node sent no report", "n1: its output \"report\" is no report of conformance")
}

// A node whose containers are as the contract says passes every probe, and what the container wrote arrives byte for byte.
func TestConformantNodePassesEveryProbe(t *testing.T) {
	t.Parallel()
	p := newProbing(t)
	deployment, report := p.run(t)
	for _, probe := range report.Probes {
		if probe.Status == "fail" || probe.Status == "warn" {
			t.Errorf("%s: %s, measured %q, expected %q: %s", probe.ID, probe.Status, probe.Measured, probe.Expected, probe.Text)
		}
	}
	if report.Status != "pass" || len(report.Probes) < 40 {
		t.Errorf("the report has %d probes, and the status %s", len(report.Probes), report.Status)
	}

	var stderr bytes.Buffer
	for _, line := range strings.Split(strings.TrimSpace(must(p.Muster("deployment", "logs", "--json", deployment))(t)), "\n") {
		var record struct {
			Event string
			Data  string
			Bytes string `json:"data_base64"`
		}
		check(t, json.Unmarshal([]byte(line), &record))
		if record.Event == "stderr" {
			stderr.WriteString(record.Data)
			stderr.Write(must(base64.StdEncoding.DecodeString(record.Bytes))(t))
		}
	}
	at := slices.IndexFunc(report.Probes, func(probe conformanceProbe) bool { return probe.ID == "output.bytes" })
	if want := fmt.Sprintf("%d bytes on stderr with the SHA-256 %x", stderr.Len(), sha256.Sum256(stderr.Bytes())); report.Probes[at].Measured != want {
		t.Errorf("the container wrote %s; these arrived: %s", report.Probes[at].Measured, want)
	}
}

// A rule that weakens the containers of a node fails the probes of what it weakens, and no others.
func TestWeakenedNodeFailsItsProbes(t *testing.T) {
	t.Parallel()
	p := newProbing(t)
	p.setPolicy(t, "actions: [deployment]\n    user: \"0:0\"")
	_, report := p.run(t)
	var failed []string
	for _, probe := range report.Probes {
		if probe.Status == "fail" {
			failed = append(failed, probe.ID)
		}
	}
	if report.Status != "fail" || !slices.Equal(failed, []string{"identity.user"}) {
		t.Errorf("the report of a container of root is %s, and fails %q", report.Status, failed)
	}
}

// Once there is a baseline, a node whose containers have become weaker gets no deployments.
func TestBaselineAdmitsConformantNodes(t *testing.T) {
	t.Parallel()
	p := newProbing(t)
	greet := must(p.docker.PushBusybox("types/greet", "/bin/sh", "-c", greetScript))(t)
	must(p.Muster("type", "push", p.write(t, "greet.yaml", greetType("1.0.0", greet))))(t)
	deploy := []string{"deploy", "--type", "greet", "--node", "n1", "--set", "name=Ada", "--wait"}

	if out := must(p.Muster("conformance", "run", "--node", "n1"))(t); !strings.Contains(out, "pass    limits.memory-enforced") {
		t.Errorf("muster conformance run prints %s", out)
	}
	var baseline struct {
		Node       string
		MaxAge     int    `json:"max_age_seconds"`
		Deployment string `json:"deployment"`
		Report     conformanceReport
	}
	check(t, p.JSON(&baseline, "conformance", "baseline", "set", "n1", "--max-age", "7d", "--json"))
	if baseline.Node != "n1" || baseline.MaxAge != 7*24*3600 || baseline.Report.Status != "pass" {
		t.Errorf("muster conformance baseline set prints %+v", baseline)
	}
	if out := must(p.Muster("conformance", "baseline", "show"))(t); !strings.Contains(out, "report of node n1") {
		t.Errorf("muster conformance baseline show prints %s", out)
	}
	check(t, p.JSON(&baseline, "conformance", "baseline", "show", "--json"))
	must(p.Muster(deploy...))(t)

	p.setPolicy(t, "actions: [deployment]\n    user: \"0:0\"")
	if _, err := p.Muster("conformance", "run", "--node", "n1"); err == nil {
		t.Error("muster conformance run succeeds on a node that differs from the baseline")
	}
	_, err := p.Muster(deploy...)
	if err == nil || !strings.Contains(err.Error(), "NOT_CONFORMANT") || !strings.Contains(err.Error(), "n1: identity.user does not pass") {
		t.Errorf("muster deploy on a node that differs from the baseline: %v", err)
	}
	if out := must(p.Muster("conformance", "show"))(t); !strings.Contains(out, "different") || !strings.Contains(out, "identity.user: fail, 0:0") {
		t.Errorf("muster conformance show prints %s", out)
	}
	if out := must(p.Muster("conformance", "show", "n1", "--junit"))(t); !strings.Contains(out, `failures="1"`) {
		t.Errorf("muster conformance show --junit prints %s", out)
	}
	if out := must(p.Muster(append(deploy, "--skip-conformance")...))(t); !strings.Contains(out, "not checked") {
		t.Errorf("muster deploy --skip-conformance prints %s", out)
	}
	check(t, p.JSON(&baseline, "conformance", "baseline", "remove", "--json"))
	must(p.Muster(deploy...))(t)
}
