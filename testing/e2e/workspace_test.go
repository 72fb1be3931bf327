package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// countScript is the command of an image that counts its runs in its workspace, waits if its parameter is set, and exits
// with the code of another parameter.
const countScript = `
value() { sed -n 's/.*"'$1'":\([a-z0-9]*\).*/\1/p' /state/parameters.json; }
cd /state/workspace
count=$(cat count 2>/dev/null || echo 0)
echo "had $count"
mkdir -p folder/below
[ "$count" = 0 ] || [ "$(cat folder/below/file)" = "run $count" ] || echo "a file is lost"
echo $((count + 1)) >count
echo "run $((count + 1))" >folder/below/file
ln -sf /etc/passwd link
while [ "$(value wait)" = true ] && [ ! -e /state/go ]; do sleep 0.1; done
exit $(value code)
`

const countType = `
apiVersion: muster/v1
kind: TemplateType
name: count
version: 1.0.0
image: IMAGE
contract: 1
limits: {memory: 64MiB, time: 5m}
parameters:
  wait: {schema: {type: boolean}, delegation: default, value: false}
  code: {schema: {type: integer}, delegation: default, value: 0}
`

// newCounting is a fleet with the type "count", and a node that admits it with workspaces whose names begin with "net-".
func newCounting(t *testing.T) *deploying {
	t.Helper()
	d := &deploying{Fleet: up(t), folder: t.TempDir()}
	d.docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, d.docker.Close()) })
	image := must(d.docker.PushBusybox("types/count", "/bin/sh", "-c", countScript))(t)
	d.node = join(t, d.Fleet, "n1", "{}", nil, []string{"DOCKER_HOST=unix://" + d.docker.Socket})
	d.setPolicy(t, "actions: [deployment]\n    workspaces: [\"net-*\"]")
	must(d.Muster("type", "push", d.write(t, "count.yaml", strings.Replace(countType, "IMAGE", image, 1))))(t)
	return d
}

// shownWorkspace is what `muster workspace show --json` prints.
type shownWorkspace struct {
	Workspace, State, Deployment, Node, Problem string
	Latest                                      int
	Versions                                    []struct {
		Version, Size, Omitted int
		RestoredFrom           int `json:"restored_from"`
		Node, Deployment       string
	}
}

func (d *deploying) workspace(t *testing.T, name string) (shown shownWorkspace) {
	t.Helper()
	check(t, json.Unmarshal([]byte(must(d.Muster("workspace", "show", "--json", name))(t)), &shown))
	return shown
}

func (d *deploying) awaitWorkspace(t *testing.T, name, state string, version int) (shown shownWorkspace) {
	t.Helper()
	check(t, fleet.Until(2*time.Minute, "workspace "+name+" is "+state, func() bool {
		out, err := d.Muster("workspace", "show", "--json", name)
		if err != nil {
			return false
		}
		shown = shownWorkspace{}
		check(t, json.Unmarshal([]byte(out), &shown))
		return shown.State == state && shown.Latest == version
	}))
	return shown
}

// count deploys the type with the workspace.
func (d *deploying) count(workspace string, arguments ...string) (string, error) {
	return d.Muster(append([]string{"deploy", "--type", "count", "--node", "n1", "--workspace", workspace}, arguments...)...)
}

// saved returns the archives that the node has saved and not sent.
func (d *deploying) saved(t *testing.T) []string {
	t.Helper()
	return must(filepath.Glob(filepath.Join(d.node.folder(), "workspaces", "*", "archive")))(t)
}

// awaitAudit waits until the audit log has one record of the workspace with this text in it.
func (d *deploying) awaitAudit(t *testing.T, workspace, text string) {
	t.Helper()
	until(t, "the audit log has: "+text, func() bool {
		var records []auditRecord
		check(t, d.JSON(&records, "audit", "--subject", "workspace/"+workspace))
		return len(records) == 1 && strings.Contains(records[0].Text, text) && strings.HasSuffix(records[0].Actor, "/user/admin")
	})
}

// Each deployment finds the folder as the one before left it, whatever its exit code was, through two relays. One
// deployment at a time has it. An older version can be restored.
func TestWorkspaceKeepsAFolderBetweenDeployments(t *testing.T) {
	t.Parallel()
	d := newCounting(t)
	_, address := localRelay(t, d.Fleet, "r1", "")
	d.node.attachAt(t, address)
	if out := must(d.count("net-a", "--wait"))(t); !strings.Contains(out, "n1: had 0\n") || !strings.Contains(out, "net-a, empty at its start") {
		t.Errorf("the first deployment prints %s", out)
	}
	d.awaitWorkspace(t, "net-a", "free", 1)
	out, err := d.count("net-a", "--wait", "--set", "code=3")
	wantExit(t, err, 9, "")
	if !strings.Contains(out, "n1: had 1\n") || !strings.Contains(out, "net-a, at its start version 1") {
		t.Errorf("the second deployment prints %s", out)
	}
	shown := d.awaitWorkspace(t, "net-a", "free", 2)
	if len(shown.Versions) != 2 || shown.Versions[0].Version != 2 || shown.Versions[0].Node != "n1" || shown.Versions[0].Omitted != 1 {
		t.Errorf("the versions are %+v", shown.Versions)
	}
	var all []shownDeployment
	check(t, json.Unmarshal([]byte(must(d.Muster("deployment", "list", "--json"))(t)), &all))
	out, err = d.Muster("deployment", "retry", all[0].Deployment, "--wait")
	wantExit(t, err, 9, "")
	if !strings.Contains(out, "n1: had 2\n") { // and not the version of the first attempt
		t.Errorf("the retry prints %s", out)
	}
	d.awaitWorkspace(t, "net-a", "free", 3)

	id := strings.TrimSpace(must(d.count("net-a", "--set", "wait=true"))(t))
	d.runningContainer(t)
	if _, err := d.count("net-a"); err == nil || !strings.Contains(err.Error(), "WORKSPACE_IN_USE") || !strings.Contains(err.Error(), id) {
		t.Errorf("a second deployment at the same time: %v", err)
	}
	if shown := d.workspace(t, "net-a"); shown.State != "in use" || shown.Deployment != id || shown.Node != "n1" {
		t.Errorf("the workspace in use is %+v", shown)
	}
	for _, arguments := range [][]string{{"workspace", "unlock", "net-a"}, {"workspace", "restore", "net-a", "1"}} {
		if _, err := d.Muster(arguments...); err == nil || !strings.Contains(err.Error(), "WORKSPACE_IN_USE") {
			t.Errorf("muster %v while it is in use: %v", arguments, err)
		}
	}
	must(d.Muster("deployment", "cancel", id))(t)
	d.awaitWorkspace(t, "net-a", "free", 4) // also a cancelled container has changed it

	var restored shownWorkspace
	check(t, json.Unmarshal([]byte(must(d.Muster("workspace", "restore", "net-a", "1", "--json"))(t)), &restored))
	if shown := d.workspace(t, "net-a"); restored.Latest != 5 || shown.Latest != 5 || shown.Versions[0].RestoredFrom != 1 {
		t.Errorf("the restored workspace is %+v", shown)
	}
	d.awaitAudit(t, "net-a", "Z: version 1, as version 5")
	if out := must(d.count("net-a", "--wait"))(t); !strings.Contains(out, "n1: had 1\n") || strings.Contains(out, "a file is lost") {
		t.Errorf("the deployment with the restored version prints %s", out)
	}
	d.awaitWorkspace(t, "net-a", "free", 6)
	until(t, "the node has sent all", func() bool { return len(d.saved(t)) == 0 })
	var versions []struct{ Version int }
	check(t, json.Unmarshal([]byte(must(d.Muster("workspace", "versions", "net-a", "--json"))(t)), &versions))
	if len(versions) != 6 || versions[0].Version != 6 {
		t.Errorf("muster workspace versions prints %+v", versions)
	}
	noContainers(t, d.docker)
	if found := unencrypted(t, filepath.Join(d.Home, "jobs", "workspaces")); len(found) > 0 {
		t.Errorf("these files of the jobs service are not encrypted: %v", found)
	}
}

// unencrypted returns the files below the folder that begin as a gzip stream, and the number of the others is at least 1.
func unencrypted(t *testing.T, folder string) (found []string) {
	t.Helper()
	others := 0
	check(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content := must(os.ReadFile(path))(t)
		if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
			found = append(found, path)
		}
		others++
		return nil
	}))
	if others == 0 {
		t.Errorf("%s has no files", folder)
	}
	return found
}

// A workspace is for one node, and the node's policy has to admit it. A refused deployment leaves it free.
func TestWorkspaceIsRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	d := newCounting(t)
	d.node.attach(t)
	_, err := d.Muster("deploy", "--type", "count", "--all", "--workspace", "net-a")
	wantExit(t, err, 2, "--workspace is for one node")
	_, err = d.Muster("deploy", "--type", "count", "--node", "n1,n2", "--workspace", "net-a")
	wantExit(t, err, 2, "--workspace is for one node")
	if _, err := d.count("../x"); err == nil || !strings.Contains(err.Error(), "INVALID_WORKSPACE") {
		t.Errorf("an invalid name: %v", err)
	}
	out, err := d.count("other", "--wait")
	wantExit(t, err, 9, "")
	if !strings.Contains(out, "workspaces: [\"net-*\", \"other\"]") {
		t.Errorf("the policy does not admit it: %s", out)
	}
	if out := must(d.Muster("workspace", "list"))(t); strings.Contains(out, "other") {
		t.Errorf("a workspace that nothing was saved into is listed: %s", out)
	}
	if _, err := d.Muster("workspace", "show", "other"); err == nil || !strings.Contains(err.Error(), "WORKSPACE_NOT_FOUND") {
		t.Errorf("muster workspace show of no workspace: %v", err)
	}
	noContainers(t, d.docker)
}

// The agent is killed while the container runs, and again when the saved workspace waits for the jobs service. Nothing is
// lost, and nothing is stored twice.
func TestKilledAgentSavesTheWorkspaceOnce(t *testing.T) {
	t.Parallel()
	d := newCounting(t)
	d.node.attach(t)
	id := strings.TrimSpace(must(d.count("net-a", "--set", "wait=true"))(t))
	job := d.show(t, id).Job
	d.runningContainer(t)
	d.node.agent.End()
	d.letGo(t, job)
	until(t, "the container has ended", func() bool {
		out := must(d.docker.Run("ps", "--all", "--format", "{{.State}}"))(t)
		return strings.TrimSpace(out) == "exited"
	})
	back := killAndHold(t, d.Fleet, fleet.Jobs)
	d.node.start(t)
	check(t, fleet.Until(2*time.Minute, "the workspace is saved on the node", func() bool { return len(d.saved(t)) == 1 }))
	d.node.agent.End()
	if saved := d.saved(t); len(saved) != 1 || !strings.Contains(saved[0], job) {
		t.Fatalf("the node has %v", saved)
	}
	back()
	d.node.start(t)
	shown := d.awaitWorkspace(t, "net-a", "free", 1)
	if len(shown.Versions) != 1 || shown.Versions[0].Deployment != id {
		t.Errorf("the versions are %+v", shown.Versions)
	}
	until(t, "the node has sent all", func() bool { return len(d.saved(t)) == 0 })
	if out := must(d.count("net-a", "--wait"))(t); !strings.Contains(out, "n1: had 1\n") {
		t.Errorf("the next deployment prints %s", out)
	}
	d.awaitWorkspace(t, "net-a", "free", 2)
}

// loseNode creates a deployment with the workspace, whose node is lost while its container runs, and awaits its end.
func (d *deploying) loseNode(t *testing.T, workspace string) (id string) {
	t.Helper()
	id = strings.TrimSpace(must(d.count(workspace, "--set", "wait=true", "--deadline", "15s"))(t))
	until(t, "the relay knows that it has started", func() bool {
		out, _ := d.Muster("deployment", "logs", id)
		return strings.Contains(out, "had ")
	})
	d.node.agent.End()
	check(t, fleet.Until(2*time.Minute, "the deployment fails", func() bool { return d.show(t, id).State == "failed" }))
	return id
}

// A workspace whose deployment has an unknown outcome is suspect until its node has saved it, or an operator decides. Then
// the version of the node is refused, and stays there for a day.
func TestWorkspaceOfALostNodeIsSuspect(t *testing.T) {
	t.Parallel()
	d := newCounting(t)
	d.node.attach(t)
	id := d.loseNode(t, "net-a")
	shown := d.awaitWorkspace(t, "net-a", "suspect", 0)
	if shown.Deployment != id || !strings.Contains(shown.Problem, "timed out") {
		t.Errorf("the workspace is %+v", shown)
	}
	if out := must(d.Muster("workspace", "show", "net-a"))(t); !strings.Contains(out, "muster workspace unlock net-a --deployment "+id) {
		t.Errorf("muster workspace show names no next step: %s", out)
	}
	if _, err := d.count("net-a"); err == nil || !strings.Contains(err.Error(), "WORKSPACE_SUSPECT") ||
		!strings.Contains(err.Error(), "muster workspace unlock net-a --deployment "+id) {
		t.Errorf("a deployment with a suspect workspace: %v", err)
	}
	d.node.attach(t)
	d.awaitWorkspace(t, "net-a", "free", 1)

	id = d.loseNode(t, "net-a")
	d.awaitWorkspace(t, "net-a", "suspect", 1)
	other := strings.Repeat("0", 32)
	if _, err := d.Muster("workspace", "unlock", "net-a", "--deployment", other); err == nil || !strings.Contains(err.Error(), "deployment "+id+" has the workspace \"net-a\", not "+other) {
		t.Errorf("a workspace of another deployment is unlocked: %v", err)
	}
	var unlocked shownWorkspace
	check(t, json.Unmarshal([]byte(must(d.Muster("workspace", "unlock", "net-a", "--deployment", id[:10], "--json"))(t)), &unlocked))
	if shown := d.workspace(t, "net-a"); unlocked.State != "free" || shown.State != "free" || shown.Latest != 1 {
		t.Errorf("the unlocked workspace is %+v", shown)
	}
	d.awaitAudit(t, "net-a", "Z: taken from deployment "+id+" on node n1")
	d.node.attach(t)
	check(t, fleet.Until(2*time.Minute, "the version of the node is refused", func() bool {
		return len(must(filepath.Glob(filepath.Join(d.node.folder(), "workspaces-refused", "*", "archive")))(t)) == 1
	}))
	if shown := d.workspace(t, "net-a"); shown.State != "free" || shown.Latest != 1 {
		t.Errorf("the workspace after the refusal is %+v", shown)
	}
}

// A compromised relay can neither make the node drop its workspace, nor store other bytes, nor hide that there is a version.
func TestForgingRelayCannotTakeOrChangeAWorkspace(t *testing.T) {
	t.Parallel()
	d := newCounting(t)
	forger := newForgingRelay(t, d.Fleet, "r9")
	d.node.attachTo(t, forger)
	var lies, changes atomic.Int64
	forger.setSave(func(_ context.Context, request *musterv1.SaveWorkspaceRequest) (*musterv1.SaveWorkspaceResponse, error) {
		lies.Add(1)
		if lies.Load()%2 == 0 {
			return &musterv1.SaveWorkspaceResponse{Lost: "it is not needed"}, nil
		}
		return &musterv1.SaveWorkspaceResponse{Saved: true, Offset: request.Report.Workspace.Size}, nil
	})
	id := strings.TrimSpace(must(d.count("net-a"))(t))
	check(t, fleet.Until(2*time.Minute, "the deployment succeeds", func() bool { return d.show(t, id).State == "succeeded" }))
	check(t, fleet.Until(2*time.Minute, "the relay has lied both ways", func() bool { return lies.Load() >= 2 }))
	shown := d.awaitWorkspace(t, "net-a", "saving", 0) // the signed outcome has the version
	if shown.Deployment != id || len(d.saved(t)) != 1 {
		t.Errorf("the workspace is %+v, and the node has %v", shown, d.saved(t))
	}
	forger.setSave(func(ctx context.Context, request *musterv1.SaveWorkspaceRequest) (*musterv1.SaveWorkspaceResponse, error) {
		if len(request.Data) > 0 {
			request.Data[0] ^= 1
			request.Crc32C = crc32.Checksum(request.Data, crc32.MakeTable(crc32.Castagnoli))
			changes.Add(1)
		}
		return forger.forwardSave(ctx, request)
	})
	check(t, fleet.Until(2*time.Minute, "the relay has changed parts", func() bool { return changes.Load() >= 1 }))
	forger.setSave(func(ctx context.Context, request *musterv1.SaveWorkspaceRequest) (*musterv1.SaveWorkspaceResponse, error) {
		request.Report.Workspace.Sha256[0] ^= 1
		return forger.forwardSave(ctx, request)
	})
	if shown := d.workspace(t, "net-a"); shown.Latest != 0 {
		t.Errorf("a changed version is stored: %+v", shown)
	}
	forger.setSave(forger.forwardSave)
	d.awaitWorkspace(t, "net-a", "free", 1)
	until(t, "the node has sent all", func() bool { return len(d.saved(t)) == 0 })
}
