package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// The jobs service is killed after it has stored a destruction, and again while its container runs: it runs once.
func TestKilledJobsServiceDestroysADeploymentOnce(t *testing.T) {
	t.Parallel()
	d := newSite(t)
	var first shownDeployment
	out := must(d.Muster("deploy", "--type", "site", "--node", "n1", "--set", "seconds=4", "--set-text", "token=12345", "--wait", "--json"))(t)
	check(t, json.Unmarshal([]byte(out), &first))
	destruction := strings.TrimSpace(must(d.Muster("deployment", "destroy", first.Deployment))(t))
	killUntilRestart(t, d.Fleet, fleet.Jobs)
	until(t, "the destruction runs", func() bool {
		out, err := d.Muster("deployment", "show", destruction)
		return err == nil && strings.Contains(out, "n1: running\n")
	})
	killUntilRestart(t, d.Fleet, fleet.Jobs)
	until(t, "the destruction has succeeded", func() bool {
		out, err := d.Muster("deployment", "show", "--json", destruction)
		return err == nil && strings.Contains(out, `"state":"succeeded"`)
	})
	if out := must(d.Muster("deployment", "logs", destruction))(t); out != "n1: destroy with the token\n" {
		t.Errorf("the action destroy prints %q", out)
	}
	if of := d.related(t, first.Deployment); len(of.DestroyedBy) != 1 || of.DestroyedBy[0].State != "succeeded" {
		t.Errorf("the deployment is destroyed by %+v", of.DestroyedBy)
	}
	d.refused(t, "is destroyed already", "deployment", "destroy", first.Deployment)
	noContainers(t, d.docker)
}

// The list of nodes of a deployment that is tried again is as long as a command may have, and its names are long.
func TestDeploymentWithTheMostNodesIsRetried(t *testing.T) {
	t.Parallel()
	const most = 50_000
	f := up(t)
	document := typeDocument("walked", "1.0.0", "")
	must(f.Muster("type", "push", must(f.WriteFile("walked.yaml", document))(t)))(t)
	list := func(count int) string {
		var names strings.Builder
		for i := range count {
			fmt.Fprintf(&names, "%s-%05d\n", strings.Repeat("long", 25), i)
		}
		return must(f.WriteFile(fmt.Sprintf("names-%d.txt", count), names.String()))(t)
	}
	tooLong := list(most + 1)
	for _, command := range [][]string{{"deploy", "--type", "walked", "--nodes-file", tooLong}, {"exec", "--nodes-file", tooLong, "/bin/true"}} {
		out, err := f.Muster(command...)
		text := out + fmt.Sprint(err)
		if err == nil || !strings.Contains(text, "a command for 50001 nodes: the limit is 50000") || !strings.Contains(text, "--all") {
			t.Errorf("muster %s with %d nodes: %s", command[0], most+1, text)
		}
	}
	first := strings.TrimSpace(must(f.Muster("deploy", "--type", "walked", "--nodes-file", list(most), "--ttl", "1s"))(t))
	ended := func(deployment string) func() bool {
		return func() bool { return state(t, f, deployment) == "failed" }
	}
	check(t, fleet.Until(2*time.Minute, "the nodes are unknown", ended(first)))
	retry := strings.TrimSpace(must(f.Muster("deployment", "retry", first))(t))
	check(t, fleet.Until(2*time.Minute, "the retry has ended", ended(retry)))
	out := must(f.Muster("deployment", "show", retry))(t)
	if len(out) > 64<<10 || !strings.Contains(out, "unknown node") || !strings.Contains(out, "and 49950 more nodes") {
		t.Errorf("muster deployment show prints %d bytes: %.2000s", len(out), out)
	}
	if peak := peakMemory(services(t, f)[fleet.Jobs]); peak > walkMemory {
		t.Errorf("the jobs service took %d MiB", peak>>20)
	}
}

// state returns the state of a deployment in the list.
func state(t *testing.T, f *fleet.Fleet, deployment string) string {
	t.Helper()
	var list []struct{ Deployment, State string }
	check(t, json.Unmarshal([]byte(must(f.Muster("deployment", "list", "--json"))(t)), &list))
	for _, each := range list {
		if each.Deployment == deployment {
			return each.State
		}
	}
	return ""
}
