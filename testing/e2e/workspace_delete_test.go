package e2e

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// archives returns the files in which the jobs service has versions of workspaces.
func (d *deploying) archives(t *testing.T) (found []string) {
	t.Helper()
	check(t, filepath.WalkDir(filepath.Join(d.Home, "jobs", "workspaces"), func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // removed meanwhile
			return nil
		}
		if err == nil && entry.Type().IsRegular() && entry.Name() != "lock" {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// deletedWorkspace is what `muster deployment show --json` prints of a deleted workspace.
type deletedWorkspace struct {
	Deletion *struct {
		By   string `json:"deleted_by"`
		Time string `json:"delete_time"`
	} `json:"workspace_deletion"`
	Nodes []struct {
		Refused string `json:"workspace_refused_time"`
	}
}

func (d *deploying) deletionShownBy(t *testing.T, deployment string) (shown deletedWorkspace) {
	t.Helper()
	check(t, d.JSON(&shown, "deployment", "show", "--json", deployment))
	return shown
}

// deleteOverREST returns the code of the answer of the gateway.
func (d *deploying) deleteOverREST(t *testing.T, workspace, query string) int {
	t.Helper()
	o := must(d.Operator())(t)
	client := must(o.HTTP())(t)
	defer client.CloseIdleConnections()
	return codeOf(t, client, must(http.NewRequest(http.MethodDelete, o.Gateway[0]+"/api/v1/workspaces/"+workspace+query, nil))(t))
}

// A workspace in use is not deleted. A deletion removes its archives too, also if the jobs service is killed after its
// answer. A later one of the name begins empty.
func TestDeletedWorkspaceStaysDeletedAfterAKill(t *testing.T) {
	t.Parallel()
	d := newCounting(t)
	d.node.attach(t)
	first := strings.TrimSpace(must(d.count("net-a", "--set", "wait=true"))(t))
	d.runningContainer(t)
	for _, more := range [][]string{nil, {"--deployment", first}} {
		_, err := d.Muster(append([]string{"workspace", "delete", "net-a"}, more...)...)
		wantExit(t, err, 64+9, "WORKSPACE_IN_USE", first, "muster deployment cancel "+first)
	}
	must(d.Muster("deployment", "cancel", first))(t)
	d.awaitWorkspace(t, "net-a", "free", 1)
	must(d.count("net-a", "--wait"))(t)
	d.awaitWorkspace(t, "net-a", "free", 2)
	if len(d.archives(t)) == 0 {
		t.Error("there are no archives")
	}

	var deleted struct{ Workspace string }
	check(t, json.Unmarshal([]byte(must(d.Muster("workspace", "delete", "net-a", "--json"))(t)), &deleted))
	killAndHold(t, d.Fleet, fleet.Jobs)()
	if deleted.Workspace != "net-a" {
		t.Errorf("muster workspace delete prints %+v", deleted)
	}
	if out := must(d.Muster("workspace", "list"))(t); strings.Contains(out, "net-a") {
		t.Errorf("a deleted workspace is listed: %s", out)
	}
	for _, command := range []string{"show net-a", "versions net-a", "restore net-a 1", "unlock net-a", "delete net-a"} {
		_, err := d.Muster(append([]string{"workspace"}, strings.Fields(command)...)...)
		wantExit(t, err, 64+5, "WORKSPACE_NOT_FOUND")
	}
	until(t, "the archives are removed", func() bool { return len(d.archives(t)) == 0 })
	d.awaitAudit(t, "net-a", "2 versions, the newest is 2 with SHA-256 ")
	_, err := d.Muster("deployment", "retry", first)
	wantExit(t, err, 64+9, "WORKSPACE_DELETED", first, "/user/admin at ")
	if out := must(d.Muster("deployment", "show", first))(t); !strings.Contains(out, "a later workspace of this name is another one") {
		t.Errorf("the deployment does not show that its workspace was deleted: %s", out)
	}

	if out := must(d.count("net-a", "--wait"))(t); !strings.Contains(out, "n1: had 0\n") {
		t.Errorf("a deployment with a later workspace of the name prints %s", out)
	}
	if shown := d.awaitWorkspace(t, "net-a", "free", 1); len(shown.Versions) != 1 {
		t.Errorf("the versions are %+v", shown.Versions)
	}
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		if got := d.deleteOverREST(t, "net-a", ""); got != want {
			t.Errorf("DELETE through the gateway: %d, want %d", got, want)
		}
	}
}

// A suspect workspace is deleted only without the version of a named deployment. When the node of that one comes back, its
// version neither revives the workspace nor enters a later one of the name. The node keeps it for a day.
func TestLateVersionOfADeletedWorkspaceIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	d := newCounting(t)
	d.node.attach(t)
	lost := d.loseNode(t, "net-a")
	d.awaitWorkspace(t, "net-a", "suspect", 0)
	_, err := d.Muster("workspace", "delete", "net-a")
	wantExit(t, err, 64+9, "WORKSPACE_SUSPECT", "muster workspace delete net-a --deployment "+lost)
	for query, want := range map[string]int{"": http.StatusConflict, "?deployment=" + lost: http.StatusForbidden} {
		if got := d.deleteOverREST(t, "net-a", query); got != want {
			t.Errorf("DELETE %s through the gateway: %d, want %d", query, got, want)
		}
	}
	must(d.Muster("workspace", "delete", "net-a", "--deployment", lost[:10]))(t)
	_, err = d.Muster("workspace", "show", "net-a")
	wantExit(t, err, 64+5, "WORKSPACE_NOT_FOUND")
	d.awaitAudit(t, "net-a", "no versions; taken from deployment "+lost+" on node n1")

	later := strings.TrimSpace(must(d.count("net-a"))(t)) // it waits for the node
	d.node.attach(t)
	refused := func() []string {
		return must(filepath.Glob(filepath.Join(d.node.folder(), "workspaces-refused", "*", "archive")))(t)
	}
	check(t, fleet.Until(2*time.Minute, "the version of the node is refused", func() bool { return len(refused()) == 1 }))
	if job := d.show(t, lost).Job; !strings.Contains(refused()[0], job) {
		t.Errorf("the node keeps %v, and not the version of job %s", refused(), job)
	}
	shown := d.awaitWorkspace(t, "net-a", "free", 1)
	if len(shown.Versions) != 1 || shown.Versions[0].Deployment != later {
		t.Errorf("the later workspace is %+v", shown)
	}
	if out := must(d.Muster("deployment", "logs", later))(t); !strings.Contains(out, "had 0") {
		t.Errorf("the later workspace did not begin empty: %s", out)
	}
	until(t, "the node has nothing more to send", func() bool { return len(d.saved(t)) == 0 })

	of := d.deletionShownBy(t, lost)
	if of.Deletion == nil || !strings.HasSuffix(of.Deletion.By, "/user/admin") || of.Deletion.Time == "" || len(of.Nodes) != 1 || of.Nodes[0].Refused == "" {
		t.Errorf("the deployment shows %+v", of)
	}
	if out := must(d.Muster("deployment", "show", lost))(t); !strings.Contains(out, "the version that n1 sent was refused") {
		t.Errorf("the deployment does not show what became of its version: %s", out)
	}
	if of := d.deletionShownBy(t, later); of.Deletion != nil || len(of.Nodes) != 1 || of.Nodes[0].Refused != "" {
		t.Errorf("the later deployment shows %+v", of)
	}
}
