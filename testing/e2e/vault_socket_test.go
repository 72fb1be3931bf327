package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// clientScript reads the secrets with the client of the real project, as a template would. Each step prints a line; the
// values are compared in the container, because they are masked in its output.
const clientScript = `
export HOME=/tmp
is() { [ "$2" = "$3" ] && echo "$1: right" || echo "$1: wrong: $2"; }
no() { name=$1; shift; if out=$("$@" 2>&1); then echo "$name: $out"; else echo "$name: refused with $(echo "$out" | grep -o 'Code: [0-9]*')"; fi; }
is entry "$(bao kv get -field=db "$VAULT_PATH")" "$(cat /secrets/db)"
is mount "$(bao kv get -mount=secret -field=db deployment)" "$(cat /secrets/db)"
is single "$(bao kv get -field=value "$VAULT_PATH/db")" "$(cat /secrets/db)"
is version "$(bao kv get -version=1 -field=value "$VAULT_PATH/db")" "$(cat /secrets/db)"
is list "$(bao kv list -format=json "$VAULT_PATH" | tr -d ' \n')" '["db"]'
is lookup "$(bao token lookup -format=json | grep -c "$MUSTER_DEPLOYMENT")" 1
is none "$(bao kv get "$VAULT_PATH/none" 2>&1 | grep -c 'No value found')" 1
no other bao kv get secret/other
no engine bao kv get kv/deployment
no put bao kv put "$VAULT_PATH" a=b
no revoke bao token revoke -self
no token env VAULT_TOKEN=s.0123 bao kv get "$VAULT_PATH"
echo "the token is $VAULT_TOKEN"
ls /secrets/vault.sock
while [ ! -e /state/go ]; do sleep 0.1; done
for i in 1 2 3 4 5 6 7 8 9 10; do
	again=$(bao kv get -field=value "$VAULT_PATH/db" 2>&1) && break
done
is again "$again" "$(cat /secrets/db)"
`

// newClient is a fleet with the type "client", whose image has the client, and the secret prod/db.
func newClient(t *testing.T) *deploying {
	t.Helper()
	d := newVault(t)
	check(t, d.docker.AddProgram(must(fleet.InstallOpenBao("../.."))(t)))
	image := must(d.docker.PushBusybox("types/client", "/bin/sh", "-c", clientScript))(t)
	document := strings.NewReplacer("IMAGE", image, "name: vault", "name: client", "memory: 64MiB", "memory: 512MiB, processes: 200").Replace(vaultType)
	must(d.Muster("type", "push", d.write(t, "client.yaml", document+"vault: true\n")))(t)
	d.setPolicy(t, "actions: [deployment]\n    secrets: [\"prod/*\"]\n    user: \"65532:65532\"")
	return d
}

// The container reads its secrets by Vault's protocol, also after a restart of the agent, and nothing else. Another process
// gets nothing with its token, which is in no log, and the final record has the number of reads.
func TestContainerReadsItsSecretsFromAVault(t *testing.T) {
	t.Parallel()
	d := newClient(t)
	d.node.attach(t)
	id := strings.TrimSpace(must(d.Muster("deploy", "--type", "client", "--node", "n1", "--secret", "db=prod/db"))(t))
	container := d.runningContainer(t)
	var logs string
	check(t, fleet.Until(2*time.Minute, "the container waits", func() bool {
		logs, _ = d.Muster("deployment", "logs", id)
		return strings.Contains(logs, "/secrets/vault.sock")
	}))
	for _, step := range []string{"entry", "mount", "single", "version", "list", "lookup", "none"} {
		if !strings.Contains(logs, "n1: "+step+": right\n") {
			t.Errorf("the step %s failed: %s", step, logs)
		}
	}
	for _, step := range []string{"other", "engine", "put", "revoke", "token"} {
		if !strings.Contains(logs, "n1: "+step+": refused with Code: 403\n") {
			t.Errorf("the step %s was not refused: %s", step, logs)
		}
	}
	inspected := must(d.docker.Run("inspect", container))(t)
	token := regexp.MustCompile(`VAULT_TOKEN=(s\.[0-9a-f]{32})"`).FindStringSubmatch(inspected)
	if token == nil || strings.Contains(inspected, theSecret) {
		t.Fatalf("docker inspect prints %s", inspected)
	}
	if strings.Contains(logs, token[1]) || !strings.Contains(logs, "the token is "+strings.Repeat("*", len(token[1]))) {
		t.Errorf("the token is in the output: %s", logs)
	}
	socket := d.secretsInMemory(t, "vault.sock")
	if len(socket) != 1 {
		t.Fatalf("the sockets are %v", socket)
	}
	thief := exec.Command(must(fleet.InstallOpenBao("../.."))(t), "kv", "get", "secret/deployment")
	thief.Env = []string{"HOME=" + d.folder, "VAULT_MAX_RETRIES=0", "VAULT_ADDR=unix://" + socket[0], "VAULT_TOKEN=" + token[1]}
	if out, err := thief.CombinedOutput(); err == nil || strings.Contains(string(out), theSecret) {
		t.Errorf("a process outside of the container reads %s", out)
	}
	d.node.agent.End() // the container runs on
	d.node.start(t)
	d.node.awaitAttached(t, true)
	d.letGo(t, d.show(t, id).Job)
	check(t, fleet.Until(2*time.Minute, "the deployment succeeds", func() bool { return d.show(t, id).State == "succeeded" }))
	logs = must(d.Muster("deployment", "logs", id))(t)
	if !strings.Contains(logs, "n1: again: right\n") || strings.Contains(logs, token[1]) {
		t.Errorf("after a restart of the agent: %s", logs)
	}
	if final := d.show(t, id).Nodes[0].Final; final.Detail != "reads of secrets: db 5" {
		t.Errorf("the final record is %+v", final)
	}
	if left := d.secretsInMemory(t, "*"); len(left) > 0 {
		t.Errorf("these files are left: %v", left)
	}
	for _, folder := range []string{d.Home, d.node.home} {
		out, err := exec.Command("grep", "-rlF", "--", token[1], folder).CombinedOutput()
		if err == nil {
			t.Errorf("these files have the token: %s", out)
		}
	}
}

// Without the field of the document there is no socket, and no variable.
func TestContainerHasNoVaultUnlessItsTypeAsksForIt(t *testing.T) {
	t.Parallel()
	d := newVault(t)
	d.node.attach(t)
	id := strings.TrimSpace(must(d.Muster("deploy", "--type", "vault", "--node", "n1", "--set", "wait=true", "--secret", "db=prod/db"))(t))
	container := d.runningContainer(t)
	if inspected := must(d.docker.Run("inspect", container))(t); strings.Contains(inspected, "VAULT_") {
		t.Errorf("docker inspect prints %s", inspected)
	}
	var shown struct{ Job string }
	check(t, json.Unmarshal([]byte(must(d.Muster("deployment", "show", "--json", id))(t)), &shown))
	if files := d.secretsInMemory(t, "*"); len(files) != 1 || filepath.Base(files[0]) != "db" {
		t.Errorf("the files in memory are %v", files)
	}
	d.letGo(t, shown.Job)
	until(t, "the deployment ends", func() bool { return d.show(t, id).State == "succeeded" })
}
