package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// siteScript is the command of an image that knows two actions.
const siteScript = `
grep -q '"token":"12345"' /state/parameters.json && echo "$MUSTER_ACTION with the token"
sleep $(sed -n 's/.*"seconds":\([0-9]*\).*/\1/p' /state/parameters.json)
[ "$MUSTER_ACTION" = destroy ] || echo '"up"' >/state/outputs/state
`

const siteType = `
apiVersion: muster/v1
kind: TemplateType
name: site
version: 1.0.0
image: %s
contract: 1
actions: [deploy, destroy]
parameters:
  seconds: {schema: {type: integer}, delegation: default, value: 0}
  token: {schema: {type: string}, sensitive: true}
outputs:
  state: {schema: {type: string}, required: true}
`

// newSite is a fleet with the type above.
func newSite(t *testing.T) *deploying {
	t.Helper()
	d := newDeploying(t)
	image := must(d.docker.PushBusybox("types/site", "/bin/sh", "-c", siteScript))(t)
	must(d.Muster("type", "push", d.write(t, "site.yaml", fmt.Sprintf(siteType, image))))(t)
	return d
}

// related is what `muster deployment show --json` prints about retries and destructions.
type related struct {
	State, Action string
	RetryOf       string `json:"retry_of"`
	Destroys      string
	Forced        bool
	Retries       []struct{ Deployment, State string }
	DestroyedBy   []struct{ Deployment, State string } `json:"destroyed_by"`
	Nodes         []struct {
		Node      string
		RetriedBy string `json:"retried_by"`
	}
}

func (d *deploying) related(t *testing.T, deployment string) (r related) {
	t.Helper()
	check(t, json.Unmarshal([]byte(must(d.Muster("deployment", "show", "--json", deployment))(t)), &r))
	return r
}

// refused checks that a command fails with this reason and a next step.
func (d *deploying) refused(t *testing.T, reason string, arguments ...string) {
	t.Helper()
	out, err := d.Muster(arguments...)
	text := out + fmt.Sprint(err)
	if err == nil || !strings.Contains(text, reason) || !strings.Contains(text, "next") {
		t.Errorf("muster %v is not refused with %q and a next step: %s", arguments, reason, text)
	}
}

// An operator tries a deployment again where it failed: with the same content, also the sensitive part, and once.
func TestDeploymentIsRetriedWhereItFailed(t *testing.T) {
	t.Parallel()
	d := newSite(t)
	out, err := d.Muster("deploy", "--type", "site", "--node", "n1,missing", "--set", "seconds=3", "--set-text", "token=12345", "--deadline", "1s",
		"--wait", "--json")
	wantExit(t, err, 9, "")
	var first shownDeployment
	check(t, json.Unmarshal([]byte(out), &first))
	d.refused(t, "missing2: it is not a node", "deployment", "retry", first.Deployment, "--node", "n1,missing2,missing")
	d.refused(t, "give only one", "deployment", "retry", first.Deployment, "--node", "n1", "--label", "a=b")

	// The content is shown before it is signed, without sensitive values.
	command := d.Command(context.Background(), "deployment", "retry", first.Deployment[:8], "--node", "n1", "--deadline", "1m", "--wait")
	shown := must(command.CombinedOutput())(t)
	for _, want := range []string{"RETRY OF   " + first.Deployment, "seconds = 3", "token = (sensitive)", "nodes      n1\n", "n1: deploy with the token\n",
		"retry of    " + first.Deployment, `n1: state = "up"`} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("muster deployment retry prints no %q:\n%s", want, shown)
		}
	}
	if strings.Contains(string(shown), "12345") {
		t.Errorf("a sensitive value is printed:\n%s", shown)
	}
	of := d.related(t, first.Deployment)
	if len(of.Retries) != 1 || of.Retries[0].State != "succeeded" {
		t.Fatalf("the retried deployment names no retry: %+v", of)
	}
	if retry := d.related(t, of.Retries[0].Deployment); retry.RetryOf != first.Deployment || retry.State != "succeeded" {
		t.Errorf("the retry is %+v", retry)
	}
	d.refused(t, "retries it", "deployment", "retry", first.Deployment, "--node", "n1", "--force")
	d.refused(t, "n1: it succeeded", "deployment", "retry", of.Retries[0].Deployment)
	// The other node never started it.
	var second shownDeployment
	check(t, json.Unmarshal([]byte(must(d.Muster("deployment", "retry", first.Deployment, "--json"))(t)), &second))
	until(t, "the second retry has ended", func() bool { return d.show(t, second.Deployment).State == "failed" })
	if nodes := d.show(t, second.Deployment).Nodes; len(nodes) != 1 || nodes[0].Node != "missing" {
		t.Errorf("the second retry has the nodes %+v", nodes)
	}
	noContainers(t, d.docker)
}

// A deployment whose outcome is unknown runs again only with --force.
func TestUnknownOutcomeIsRetriedWithForce(t *testing.T) {
	t.Parallel()
	d := newSite(t)
	id := strings.TrimSpace(must(d.Muster("deploy", "--type", "site", "--node", "n1", "--set", "seconds=600", "--deadline", "20m"))(t))
	until(t, "the deployment runs", func() bool { return strings.Contains(must(d.Muster("deployment", "show", id))(t), "n1: running\n") })
	d.refused(t, "has not ended", "deployment", "retry", id)
	// The jobs service never learns how the container ended.
	back := killAndHold(t, d.Fleet, fleet.Relay, "--config", filepath.Join(d.Home, "config", "relay.yaml"))
	d.node.agent.End()
	check(t, os.RemoveAll(filepath.Join(d.Home, "relay", "jobs")))
	back()
	until(t, "the deployment has failed", func() bool { return d.show(t, id).State == "failed" })
	d.refused(t, "its outcome is not known, and it may have run", "deployment", "retry", id)
	retry := strings.TrimSpace(must(d.Muster("deployment", "retry", id, "--force"))(t))
	if got := d.related(t, retry); !got.Forced || got.RetryOf != id {
		t.Errorf("the forced retry is %+v", got)
	}
	must(d.Muster("deployment", "cancel", retry))(t)
}

// An operator destroys a deployment: refused by the policy at first, then with its parameters, and once.
func TestDeploymentIsDestroyed(t *testing.T) {
	t.Parallel()
	d := newSite(t)
	out := must(d.Muster("deploy", "--type", "site", "--node", "n1", "--set-text", "token=12345", "--wait", "--json"))(t)
	var first shownDeployment
	check(t, json.Unmarshal([]byte(out), &first))
	d.setPolicy(t, "actions: [container]")
	out, err := d.Muster("deployment", "destroy", first.Deployment, "--wait")
	wantExit(t, err, 9, "")
	if text := out + fmt.Sprint(err); !strings.Contains(text, "POLICY_REFUSED") {
		t.Errorf("a node without a rule for deployments: %s", text)
	}
	d.setPolicy(t, "actions: [deployment]")
	var destruction shownDeployment
	check(t, json.Unmarshal([]byte(must(d.Muster("deployment", "destroy", first.Deployment, "--wait", "--json"))(t)), &destruction))
	if out := must(d.Muster("deployment", "logs", destruction.Deployment))(t); out != "n1: destroy with the token\n" {
		t.Errorf("the action destroy prints %q", out)
	}
	if got := d.related(t, destruction.Deployment); got.Destroys != first.Deployment || got.Action != "destroy" || got.State != "succeeded" {
		t.Errorf("the destruction is %+v", got)
	}
	if of := d.related(t, first.Deployment); len(of.DestroyedBy) != 2 || of.DestroyedBy[0].State != "failed" || of.DestroyedBy[1].State != "succeeded" {
		t.Errorf("the deployment is destroyed by %+v", of.DestroyedBy)
	}
	if out := must(d.Muster("deployment", "show", first.Deployment))(t); !strings.Contains(out, "destroyed by  "+destruction.Deployment) {
		t.Errorf("muster deployment show prints %s", out)
	}
	d.refused(t, "is destroyed already", "deployment", "destroy", first.Deployment)
	d.refused(t, "destroys it", "deployment", "retry", first.Deployment)
	other := strings.TrimSpace(must(d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada"))(t))
	until(t, "the other deployment succeeds", func() bool { return d.show(t, other).State == "succeeded" })
	d.refused(t, "has no action", "deployment", "destroy", other)
	noContainers(t, d.docker)
}
