package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// A deployment of the type remote-node makes another machine a node by SSH, and removes it. The machine then
// refuses its key.
func TestRemoteNodeIsDeployedBySSH(t *testing.T) {
	t.Parallel()
	f := up(t)
	machine := newDebian(t, fleet.DockerInstalled)
	docker := must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, docker.Close()) })
	image := must(docker.PushRemoteNode("../..", filepath.Join(f.Bin, fleet.Muster)))(t)
	p := &playbook{Fleet: f, machine: machine}
	policy := "containers:\n  - images: [\"" + docker.Registry + "/types/*\"]\n    actions: [deployment]\n    secrets: [\"n2/*\"]\n    network: host\n"
	n1 := join(t, f, "n1", policy, nil, []string{"DOCKER_HOST=unix://" + docker.Socket})
	n1.attach(t)

	folder := t.TempDir()
	write := func(name, text string) string {
		check(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		return filepath.Join(folder, name)
	}
	document := string(must(os.ReadFile("../../deploy/ansible/remote-node/remote-node.yaml"))(t))
	document = regexp.MustCompile(`(?m)^image: .*$`).ReplaceAllString(document, "image: "+image)
	document = strings.ReplaceAll(document, "network: bridge", "network: host") // the daemon of the test has no other
	must(f.Muster("type", "push", write("type.yaml", document)))(t)
	// The image does not rely on the schemas of the document.
	loose := regexp.MustCompile(`, pattern: "[^"]*"`).ReplaceAllString(strings.Replace(document, "version: 1.0.0", "version: 1.0.1-loose", 1), "")
	must(f.Muster("type", "push", write("loose.yaml", loose)))(t)

	// A key for one deployment, which sshd admits for a short time.
	key := filepath.Join(folder, "key")
	check(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	public := strings.TrimSpace(string(must(os.ReadFile(key + ".pub"))(t)))
	admit := func() {
		must(machine.Run(`echo "restrict,expiry-time=\"$(date -d +1hour +%Y%m%d%H%M)\" ` + public + `" >>/root/.ssh/authorized_keys`))(t)
	}
	store := func(name, file string) { must(f.Muster("secret", "put", name, "--file", file))(t) }
	store("n2/ssh-key", key)
	deployTo := func(version, address, hostKey string, arguments ...string) (string, error) {
		return f.Muster(append([]string{"deploy", "--type", "remote-node@" + version, "--node", "n1", "--wait", "--set-text", "node=n2",
			"--set-text", "address=" + address, "--set", fmt.Sprintf("port=%d", machine.Port),
			"--set-text", "host_key=" + hostKey, "--secret", "ssh_key=n2/ssh-key"}, arguments...)...)
	}

	deploy := func(hostKey string, arguments ...string) (string, error) {
		return deployTo("1.0.0", machine.Address, hostKey, arguments...)
	}

	_, err := deployTo("1.0.1-loose", "-oProxyCommand=reboot", machine.HostKey)
	wantExit(t, err, 9, "the parameter address is not valid")

	// Another machine at this address, or one that intercepts the connection, gets neither the token nor the login.
	foreign := strings.Join(strings.Fields(public)[:2], " ")
	file := token(t, f, "--node", "n2")
	store("n2/token", file)
	out, err := deploy(foreign, "--secret", "token=n2/token")
	wantExit(t, err, 9, "")
	if text := fmt.Sprint(out, err); !strings.Contains(text, "HOST IDENTIFICATION HAS CHANGED") && !strings.Contains(text, "Host key verification failed") {
		t.Errorf("a foreign host key: %s", text)
	}
	_, err = deploy(machine.HostKey)
	wantExit(t, err, 9, "needs the secret token")

	admit()
	out = must(deploy(machine.HostKey, "--secret", "token=n2/token", "--set-file", "policy="+write("policy.yaml", openPolicy),
		"--set", "pins="+string(must(json.Marshal(p.fingerprints(t)))(t))))(t)
	if !strings.Contains(out, `node = "n2"`) || strings.Contains(out, "PRIVATE KEY") {
		t.Errorf("muster deploy prints %s", out)
	}
	p.attachedAs(t, "n2")
	if out, stderr, code := execOn(t, f, "--node", "n2", "--", "/bin/echo", "from the new node"); code != 0 || out != "n2: from the new node\n" {
		t.Errorf("a command on the new node: exit %d: %s%s", code, out, stderr)
	}
	wantKeyGone := func() {
		if keys := must(machine.Run("cat /root/.ssh/authorized_keys"))(t); strings.Contains(keys, public) {
			t.Error("the machine still admits the key of the deployment")
		}
	}
	wantKeyGone()
	admit()
	must(deploy(machine.HostKey, "--action", "remove"))(t)
	wantKeyGone()
	must(machine.Run("test ! -e /var/lib/muster-node"))(t)
	noContainers(t, docker)
}
