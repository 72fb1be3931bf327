package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// playbook is a controller of Ansible with the role muster_agent, and a machine.
type playbook struct {
	*fleet.Fleet
	machine *fleet.Debian
	folder  string // has a socket of ssh, so its path is short
	temp    string // temporary files of the controller
}

func newDebian(t *testing.T, docker fleet.DockerOfDebian) *fleet.Debian {
	t.Helper()
	machine := must(fleet.StartDebian(docker))(t)
	t.Cleanup(func() { check(t, machine.Close()) })
	return machine
}

// play runs the playbook with variables of the role. It returns what Ansible prints with the arguments of all tasks.
func (p *playbook) play(t *testing.T, variables map[string]any) (string, error) {
	t.Helper()
	host := map[string]any{
		"ansible_host": p.machine.Address, "ansible_port": p.machine.Port, "ansible_user": "root",
		"ansible_ssh_private_key_file": p.machine.KeyFile(),
		"ansible_ssh_common_args":      strings.Join(p.machine.SSHOptions(), " "),
		"ansible_python_interpreter":   "/usr/bin/python3",
		"muster_agent_program":         filepath.Join(p.Bin, fleet.Muster),
		"muster_agent_context":         filepath.Join(p.Home, "context.json"),
	}
	for name, value := range variables {
		host[name] = value
	}
	inventory := filepath.Join(p.folder, "inventory.json")
	text := must(json.Marshal(map[string]any{"all": map[string]any{"hosts": map[string]any{"n2": host}}}))(t)
	check(t, os.WriteFile(inventory, text, 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "ansible-playbook", "-vvv", "--inventory", inventory, "../../deploy/ansible/nodes.yml")
	command.Env = append(os.Environ(), "HOME="+p.folder, "TMPDIR="+p.temp, "ANSIBLE_PIPELINING=1", "ANSIBLE_NOCOLOR=1")
	out, err := command.CombinedOutput()
	return string(out), err
}

var changedTasks = regexp.MustCompile(`(?m)^n2 .* changed=(\d+) `)

// mustPlay plays, and returns the number of changed tasks.
func (p *playbook) mustPlay(t *testing.T, variables map[string]any) string {
	t.Helper()
	out, err := p.play(t, variables)
	changed := changedTasks.FindStringSubmatch(out)
	if err != nil || changed == nil {
		t.Fatalf("ansible-playbook: %v\n%s", err, out)
	}
	p.wantNoToken(t, out)
	return changed[1]
}

// wantNoToken fails if a join token is in the output, or left on the machine or the controller.
func (p *playbook) wantNoToken(t *testing.T, out string) {
	t.Helper()
	if strings.Contains(out, "PRIVATE KEY") {
		t.Error("the output has a private key")
	}
	if left := must(p.machine.Run("find /run /tmp -name '*token*'"))(t); left != "" {
		t.Errorf("the machine has %s", left)
	}
	if left := must(filepath.Glob(filepath.Join(p.temp, "*token*")))(t); len(left) > 0 {
		t.Errorf("the controller has %s", left)
	}
}

// attachedAs fails unless the machine becomes attached within a short time.
func (p *playbook) attachedAs(t *testing.T, name string) map[string]any {
	t.Helper()
	var node map[string]any
	until(t, name+" is attached", func() bool {
		byName, err := listNodes(p.Fleet)
		node = byName[name]
		return err == nil && node["attached"] == true
	})
	return node
}

// fingerprints returns those of the certificates in a join token.
func (p *playbook) fingerprints(t *testing.T) (pins []string) {
	t.Helper()
	for _, file := range []string{"root/ca.crt", "aggregator/command-ca.crt"} {
		out := must(exec.Command("openssl", "x509", "-in", filepath.Join(p.Home, file), "-noout", "-fingerprint", "-sha256").Output())(t)
		_, pin, _ := strings.Cut(strings.TrimSpace(string(out)), "=")
		pins = append(pins, pin)
	}
	return pins
}

// The role makes a machine without Docker a node, changes nothing at its second run, replaces what is new, and removes
// the agent.
func TestAnsibleRoleMakesAMachineANode(t *testing.T) {
	t.Parallel()
	p := &playbook{Fleet: up(t), machine: newDebian(t, fleet.DockerPackage), folder: must(os.MkdirTemp("", "play"))(t), temp: t.TempDir()}
	pins := p.fingerprints(t)

	out, err := p.play(t, map[string]any{"muster_agent_pins": pins[:1]})
	if err == nil || !strings.Contains(out, "which is not in muster_agent_pins") {
		t.Fatalf("a token of a foreign command authority: %v\n%s", err, out)
	}
	p.wantNoToken(t, out)
	if all := nodes(t, p.Fleet); len(all) != 0 {
		t.Errorf("the fleet has %v", all)
	}

	policy := filepath.Join(p.folder, "policy.yaml")
	check(t, os.WriteFile(policy, []byte("commands:\n  - argv: [/usr/bin/docker, version, \"**\"]\n"), 0o600))
	variables := map[string]any{
		"muster_agent_pins": pins, "muster_agent_labels": map[string]string{"rack": "b1", "zone": "a"}, "muster_agent_policy_file": policy,
	}
	if changed := p.mustPlay(t, variables); changed == "0" {
		t.Error("the first run changed nothing")
	}
	node := p.attachedAs(t, "n2")
	if labels := fmt.Sprint(node["labels"]); labels != "map[rack:b1 zone:a]" {
		t.Errorf("the node has the labels %s", labels)
	}
	if out, stderr, code := execOn(t, p.Fleet, "--node", "n2", "--", "/usr/bin/docker", "version", "--format", "{{.Server.Version}}"); code != 0 || !strings.HasPrefix(out, "n2: 2") {
		t.Errorf("Docker on the node: exit %d: %s%s", code, out, stderr)
	}
	if changed := p.mustPlay(t, variables); changed != "0" {
		t.Errorf("the second run changed %s tasks", changed)
	}
	if enabled := must(p.machine.Run("systemctl is-enabled docker muster-agent"))(t); enabled != "enabled\nenabled" {
		t.Errorf("the units are %q", enabled)
	}
	want := must(os.ReadFile("../../deploy/systemd/muster-agent.service"))(t)
	if unit := must(p.machine.Run("cat /etc/systemd/system/muster-agent.service"))(t); unit != strings.TrimSpace(string(want)) {
		t.Errorf("the unit is\n%s", unit)
	}

	variables["muster_agent_environment"] = map[string]string{"EXAMPLE": `a "b" $c ü`}
	if changed := p.mustPlay(t, variables); changed != "2" {
		t.Errorf("another environment changed %s tasks, want the file and the restart", changed)
	}
	const environment = `tr '\0' '\n' </proc/$(systemctl show -P MainPID muster-agent)/environ | grep EXAMPLE`
	if value := must(p.machine.Run(environment))(t); value != `EXAMPLE=a "b" $c ü` {
		t.Errorf("the agent has %s", value)
	}
	p.attachedAs(t, "n2")

	out, err = p.play(t, map[string]any{"muster_agent_node": "n3"})
	if err == nil || !strings.Contains(out, "this machine joined as n2, not as n3") {
		t.Errorf("another name: %v\n%s", err, out)
	}
	p.mustPlay(t, map[string]any{"muster_agent_state": "absent"})
	if left := must(p.machine.Run("ls -d /var/lib/muster* /etc/*/muster* /etc/systemd/system/muster* /usr/local/bin/muster 2>&1 | grep -v 'No such file'; pgrep -x muster; true"))(t); left != "" {
		t.Errorf("the machine still has %s", left)
	}
	until(t, "n2 is detached", func() bool {
		byName, err := listNodes(p.Fleet)
		return err == nil && byName["n2"]["attached"] == false
	})
}

// Every shared library of the program is in a package that the role installs.
func TestAnsibleRoleInstallsTheLibrariesOfTheProgram(t *testing.T) {
	t.Parallel()
	bin := must(fleet.Programs())(t)
	defaults := string(must(os.ReadFile("../../deploy/ansible/roles/muster_agent/defaults/main.yml"))(t))
	program := filepath.Join(bin, fleet.Muster)
	out := must(exec.Command("objdump", "-p", program).Output())(t)
	paths := string(must(exec.Command("ldd", program).Output())(t))
	libraries := regexp.MustCompile(`NEEDED +(\S+)`).FindAllStringSubmatch(string(out), -1)
	if len(libraries) < 10 {
		t.Fatalf("the program needs %q", libraries)
	}
	for _, library := range libraries {
		path := regexp.MustCompile(regexp.QuoteMeta(library[1]) + ` => (\S+)`).FindStringSubmatch(paths)
		if path == nil {
			continue // the loader
		}
		owners := must(exec.Command("dpkg-query", "--search", "*"+path[1]).Output())(t)
		owner, _, _ := strings.Cut(string(owners), ":")
		if owner != "libc6" && owner != "libgcc-s1" && !strings.Contains(defaults, "\n  - "+owner+"\n") {
			t.Errorf("muster_agent_libraries lacks %s, which has %s", owner, path[1])
		}
	}
}
