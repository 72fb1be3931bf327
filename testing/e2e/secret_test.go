package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// theSecret is the value in the tests: nothing else contains it.
const theSecret = "tulip-7-umbrella-9"

// vaultScript is the command of an image that reads a secret, waits if its parameter is set, and prints it.
const vaultScript = `
wait=$(sed -n 's/.*"wait":\([a-z]*\).*/\1/p' /state/parameters.json)
echo "the secret has $(wc -c </secrets/db) bytes"
while [ "$wait" = true ] && [ ! -e /state/go ]; do sleep 0.1; done
cat /secrets/db
[ "$(cat /secrets/db)" = "tulip-7-umbrella"-9 ] && echo " is right"
`

const vaultType = `
apiVersion: muster/v1
kind: TemplateType
name: vault
version: 1.0.0
image: IMAGE
contract: 1
limits: {memory: 64MiB, time: 2m}
parameters:
  wait: {schema: {type: boolean}, delegation: default, value: false}
secrets:
  db: {required: true, description: the password of the database}
`

// newVault is a fleet with the type "vault", the secret prod/db, and a node whose policy admits both.
func newVault(t *testing.T) *deploying {
	t.Helper()
	d := &deploying{Fleet: up(t), folder: t.TempDir()}
	d.docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, d.docker.Close()) })
	image := must(d.docker.PushBusybox("types/vault", "/bin/sh", "-c", vaultScript))(t)
	d.node = join(t, d.Fleet, "n1", "{}", nil, []string{"DOCKER_HOST=unix://" + d.docker.Socket})
	d.setPolicy(t, "actions: [deployment]\n    secrets: [\"prod/*\"]")
	must(d.Muster("type", "push", d.write(t, "vault.yaml", strings.Replace(vaultType, "IMAGE", image, 1))))(t)
	must(d.Muster("secret", "put", "prod/db", "--file", d.write(t, "value", theSecret)))(t)
	check(t, os.Remove(filepath.Join(d.folder, "value")))
	t.Cleanup(func() { d.noSecretFolders(t, "at the end") })
	return d
}

// secretsInMemory returns the files with this name in the folders of the jobs of the node with secrets, in the memory of
// this machine. services/agent/jobs/secret_folders.cc names their folder.
func (d *deploying) secretsInMemory(t *testing.T, name string) []string {
	t.Helper()
	digest := sha256.Sum256([]byte(d.node.folder() + "\nn1"))
	return must(filepath.Glob("/dev/shm/muster-secrets-" + hex.EncodeToString(digest[:8]) + "/*/" + name))(t)
}

func (d *deploying) noSecretFolders(t *testing.T, when string) {
	t.Helper()
	for _, file := range d.secretsInMemory(t, "db") {
		if content, err := os.ReadFile(file); err == nil && string(content) == theSecret {
			t.Errorf("%s %s exists", when, file)
		}
	}
}

// filesWithSecret returns the files below these folders that contain the secret.
func filesWithSecret(t *testing.T, folders ...string) (found []string) {
	t.Helper()
	for _, folder := range folders {
		check(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil // it was removed meanwhile, or has no content
			}
			content, err := os.ReadFile(path)
			if err == nil && bytes.Contains(content, []byte(theSecret)) {
				found = append(found, path)
			}
			return nil
		}))
	}
	return found
}

// runningContainer waits for the container of the deployment, and returns its name.
func (d *deploying) runningContainer(t *testing.T) (name string) {
	t.Helper()
	until(t, "the container runs", func() bool {
		names := strings.Fields(must(d.docker.Run("ps", "--format", "{{.Names}}"))(t)) // without those that are only created
		if len(names) == 1 {
			name = names[0]
		}
		return len(names) == 1
	})
	return name
}

// letGo ends the wait of the container.
func (d *deploying) letGo(t *testing.T, job string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(d.node.folder(), "jobs", job, "state", "go"), nil, 0o644))
}

// A node behind two relays gets the secret. Neither disks nor Docker's description of the container have it, no command
// shows it, and it is masked where the container prints it.
func TestSecretReachesTheContainerAlone(t *testing.T) {
	t.Parallel()
	d := newVault(t)
	relay, address := localRelay(t, d.Fleet, "r1", "")
	d.node.attachAt(t, address)
	id := strings.TrimSpace(must(d.Muster("deploy", "--type", "vault", "--node", "n1", "--set", "wait=true", "--secret", "db=prod/db"))(t))
	container := d.runningContainer(t)
	until(t, "the secret is in memory", func() bool { return len(d.secretsInMemory(t, "db")) > 0 })
	inspected := must(d.docker.Run("inspect", container))(t)
	if strings.Contains(inspected, theSecret) || !strings.Contains(inspected, "/secrets") {
		t.Errorf("docker inspect prints %s", inspected)
	}
	var shown struct {
		Job     string
		Secrets []struct {
			Name, Secret string
			Version      int
		}
	}
	check(t, json.Unmarshal([]byte(must(d.Muster("deployment", "show", "--json", id))(t)), &shown))
	if len(shown.Secrets) != 1 || shown.Secrets[0].Secret != "prod/db" || shown.Secrets[0].Version != 1 {
		t.Errorf("the deployment has the secrets %+v", shown.Secrets)
	}
	folders := []string{d.Home, d.node.home, relay.home, filepath.Dir(d.docker.Socket)}
	if found := filesWithSecret(t, folders...); len(found) > 0 {
		t.Errorf("these files have the secret while the container runs: %v", found)
	}
	d.letGo(t, shown.Job)
	until(t, "the deployment ends", func() bool { return d.show(t, id).State == "succeeded" })
	logs := must(d.Muster("deployment", "logs", id))(t)
	masked := strings.Repeat("*", len(theSecret))
	if strings.Contains(logs, theSecret) || !strings.Contains(logs, "n1: the secret has 18 bytes\nn1: "+masked+" is right\n") {
		t.Errorf("the output is %q", logs)
	}
	noContainers(t, d.docker)
	d.noSecretFolders(t, "after the end")
	if found := filesWithSecret(t, folders...); len(found) > 0 {
		t.Errorf("these files have the secret at the end: %v", found)
	}
	log := d.jobsLog(t)
	if !strings.Contains(log, "secrets are sent to a node") || !strings.Contains(log, "prod/db@1") {
		t.Errorf("the log of the jobs service has no delivery: %s", log)
	}
	for _, arguments := range [][]string{{"secret", "list"}, {"secret", "list", "--json"}, {"deployment", "show", id}} {
		if out := must(d.Muster(arguments...))(t); strings.Contains(out, theSecret) || !strings.Contains(out, "prod/db") {
			t.Errorf("muster %v prints %s", arguments, out)
		}
	}
}

// A secret that the policy does not admit, or that was deleted, is not sent, and nothing starts.
func TestRefusedSecretStartsNothing(t *testing.T) {
	t.Parallel()
	d := newVault(t)
	d.setPolicy(t, "actions: [deployment]\n    secrets: [\"test/*\"]")
	d.node.attach(t)
	deploy := []string{"deploy", "--type", "vault", "--node", "n1", "--secret", "db=prod/db", "--wait", "--json"}
	outcome := func() (reason, detail string) {
		t.Helper()
		out, _ := d.Muster(deploy...)
		var shown shownDeployment
		check(t, json.Unmarshal([]byte(out), &shown))
		if len(shown.Nodes) != 1 || shown.Nodes[0].Final == nil {
			t.Fatalf("the deployment is %s", out)
		}
		return shown.Nodes[0].Final.Reason, shown.Nodes[0].Final.Detail
	}
	if reason, detail := outcome(); reason != "POLICY_REFUSED" || !strings.Contains(detail, "prod/db") {
		t.Errorf("without a rule for the secret: %s: %s", reason, detail)
	}
	d.setPolicy(t, "actions: [deployment]\n    secrets: [\"prod/*\"]")
	if _, err := d.Muster("deploy", "--type", "vault", "--node", "n1"); err == nil || !strings.Contains(err.Error(), "INVALID_SECRETS") {
		t.Errorf("without a required secret: %v", err)
	}
	// It is deleted after the operator has signed, while the node is unreachable.
	d.node.agent.End()
	d.node.awaitAttached(t, false)
	id := strings.TrimSpace(must(d.Muster("deploy", "--type", "vault", "--node", "n1", "--secret", "db=prod/db", "--ttl", "2m"))(t))
	must(d.Muster("secret", "delete", "prod/db"))(t)
	d.node.attach(t)
	until(t, "the deployment fails", func() bool { return d.show(t, id).State == "failed" })
	final := d.show(t, id).Nodes[0].Final
	if final.Reason != "SECRET_UNAVAILABLE" || !strings.Contains(final.Detail, "SECRET_NOT_FOUND") {
		t.Errorf("with a deleted secret: %+v", final)
	}
	noContainers(t, d.docker)
	if _, err := d.Muster(deploy...); err == nil || !strings.Contains(err.Error(), "SECRET_NOT_FOUND") {
		t.Errorf("a deployment with a deleted secret: %v", err)
	}
}

// The agent is killed while it waits for the jobs service, and again while the container runs. The container starts once,
// with its secret, and nothing stays in memory.
func TestKilledAgentKeepsAndRemovesSecrets(t *testing.T) {
	t.Parallel()
	d := newVault(t)
	d.node.attach(t)
	d.node.agent.End()
	d.node.awaitAttached(t, false)
	id := strings.TrimSpace(must(d.Muster("deploy", "--type", "vault", "--node", "n1", "--set", "wait=true", "--secret", "db=prod/db", "--ttl", "3m"))(t))
	job := d.show(t, id).Job
	until(t, "the relay has the deployment", func() bool { return d.show(t, id).State == "running" })
	back := killAndHold(t, d.Fleet, fleet.Jobs)
	d.node.start(t)
	until(t, "the agent waits for the secret", func() bool {
		_, err := os.Stat(filepath.Join(d.node.folder(), "jobs", job, "state"))
		return err == nil
	})
	d.node.agent.End()
	if names := must(d.docker.Containers())(t); len(names) > 0 {
		t.Errorf("without its secret %v was created", names)
	}
	back()
	d.node.start(t)
	d.runningContainer(t)
	until(t, "the output arrives", func() bool {
		out, _ := d.Muster("deployment", "logs", id)
		return strings.Contains(out, "the secret has 18 bytes")
	})
	d.node.agent.End()
	d.node.start(t)
	d.letGo(t, job)
	check(t, fleet.Until(2*time.Minute, "the deployment succeeds", func() bool { return d.show(t, id).State == "succeeded" }))
	logs := must(d.Muster("deployment", "logs", id))(t)
	if strings.Contains(logs, theSecret) || strings.Count(logs, "the secret has 18 bytes") != 1 || !strings.Contains(logs, "* is right\n") {
		t.Errorf("the output is %q", logs)
	}
	noContainers(t, d.docker)
	d.noSecretFolders(t, "after the end")
}

func (d *deploying) jobsLog(t *testing.T) string {
	t.Helper()
	return string(must(os.ReadFile(must(filepath.Glob(filepath.Join(d.Home, "log", "*jobs.log")))(t)[0]))(t))
}
