package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// The parts of deploy/lib.sh that install and compile, which testing/test does before.
const quickstartLibrary = `. %[1]s/deploy/lib.sh
install_packages() { :; }
install_go() { :; }
use_go() { :; }
bazel() { :; }
install_programs() { mkdir -p "$1" && cp --remove-destination %[2]s/muster* "$1"; }
`

const quickstartPort = "9000" // in the network of the test, all ports are free

// quickstart is deploy/quickstart with the programs of the test.
type quickstart struct {
	*fleet.Fleet
	root  string // a checkout with another deploy/lib.sh
	tools string // programs that come before those of the system
}

func newQuickstart(t *testing.T) *quickstart {
	t.Helper()
	f := must(fleet.New(""))(t)
	closeAtEnd(t, f)
	q := &quickstart{Fleet: f, root: t.TempDir(), tools: t.TempDir()}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(f.Home, "cache", "log", "quickstart.log"))
			t.Logf("--- the log\n%s", text)
		}
		for _, agent := range q.agents() {
			agent.Kill()
		}
	})
	checkout := must(filepath.Abs("../.."))(t)
	check(t, os.Mkdir(filepath.Join(q.root, "deploy"), 0o700))
	check(t, os.Symlink(filepath.Join(checkout, "deploy", "quickstart"), filepath.Join(q.root, "deploy", "quickstart")))
	check(t, os.WriteFile(filepath.Join(q.root, "deploy", "lib.sh"), fmt.Appendf(nil, quickstartLibrary, checkout, f.Bin), 0o600))
	q.tool(t, "uname", `[ "$1" = -n ] && exec echo "first host" || exec /usr/bin/uname "$@"`)
	return q
}

// tool puts a shell script in the place of a program.
func (q *quickstart) tool(t *testing.T, name, script string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(q.tools, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}

// run runs the script, where /etc/os-release has this text unless it is empty; it returns what it printed, and its exit code.
func (q *quickstart) run(t *testing.T, system string) (printed string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), crashSoon)
	defer cancel()
	script := filepath.Join(q.root, "deploy", "quickstart")
	command := exec.CommandContext(ctx, script)
	if system != "" {
		file := must(q.WriteFile("os-release", system))(t)
		command = exec.CommandContext(ctx, "unshare", "--mount", "/bin/sh", "-c", `mount --bind "$0" /etc/os-release && exec "$1"`, file, script)
	}
	command.Env = append(os.Environ(), "MUSTER_HOME="+q.Home, "MUSTER_CACHE="+filepath.Join(q.Home, "cache"), "MUSTER_PORT="+quickstartPort,
		"PATH="+q.tools+":"+os.Getenv("PATH"))
	command.Stdout = must(os.Create(filepath.Join(q.root, "printed")))(t) // not a pipe, which the agent would keep open
	command.Stderr = command.Stdout
	_ = command.Run()
	check(t, ctx.Err())
	return string(must(os.ReadFile(filepath.Join(q.root, "printed")))(t)), command.ProcessState.ExitCode()
}

// agents returns the processes of the agent that the script started.
func (q *quickstart) agents() (agents []fleet.Process) {
	for _, process := range q.Processes() {
		if process.Name == fleet.Muster && strings.Join(process.Arguments, " ") == "agent attach" {
			agents = append(agents, process)
		}
	}
	return agents
}

// agent returns the only one.
func (q *quickstart) agent(t *testing.T) fleet.Process {
	t.Helper()
	return must(q.Process(fleet.Muster, "agent", "attach"))(t)
}

// deploy/quickstart starts the services at the chosen ports, and shows the result of a run and the output of a command. A
// repetition on a machine with another name keeps the node, and starts its agent again.
func TestQuickstartIsRepeatedUnderAnotherHostName(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	q := newQuickstart(t)
	printed, code := q.run(t, "")
	if code != 0 || !strings.Contains(printed, "Facts of first-host (") || !strings.Contains(printed, "load average") {
		t.Fatalf("exit %d: %s", code, printed)
	}
	var addresses map[string]string
	check(t, json.Unmarshal(must(os.ReadFile(filepath.Join(q.Home, "run", "aggregator.addresses.json")))(t), &addresses))
	if !strings.HasSuffix(addresses["aggregator"], ":"+quickstartPort) {
		t.Errorf("the aggregator is at %v", addresses)
	}
	if archives := must(filepath.Glob(filepath.Join(q.Home, "archives", "*.tar.gz")))(t); len(archives) != 1 {
		t.Errorf("the archives are %v", archives)
	}
	first := q.agent(t)

	q.tool(t, "uname", `[ "$1" = -n ] && exec echo second || exec /usr/bin/uname "$@"`)
	if printed, code := q.run(t, "ID=debian\nVERSION_ID=12\n"); code != 0 || !strings.Contains(printed, "Facts of first-host (") {
		t.Fatalf("the repetition: exit %d: %s", code, printed)
	}
	if second := q.agent(t); second.PID == first.PID {
		t.Errorf("the agent is still %v", first)
	}
	if list := nodes(t, q.Fleet); len(list) != 1 || list["first-host"]["attached"] != true {
		t.Errorf("the nodes are %v", list)
	}
}

// deploy/quickstart fails, with the reason, if the command of its end or the end of the running agent fails, and on another
// system before it changes anything.
func TestQuickstartFailsWithTheReason(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	q := newQuickstart(t)
	for _, system := range []string{"ID=ubuntu\nVERSION_ID=22.04\n", "ID=debian\nVERSION_ID=13\n"} {
		printed, code := q.run(t, system)
		if code != 1 || !strings.Contains(printed, "this requires Debian 12, not ") || !strings.Contains(printed, "MUSTER_ANY_SYSTEM=1") {
			t.Errorf("on %q: exit %d: %s", system, code, printed)
		}
	}
	if _, err := os.Stat(filepath.Join(q.Home, "bin")); !os.IsNotExist(err) {
		t.Errorf("another system has the programs: %v", err)
	}

	check(t, os.Mkdir(filepath.Join(q.Home, "node"), 0o700))
	check(t, os.WriteFile(filepath.Join(q.Home, "node", "policy.yaml"), []byte("commands: []\n"), 0o600))
	printed, code := q.run(t, "")
	if code != 1 || !strings.Contains(printed, "Facts of first-host (") || !strings.Contains(printed, "quickstart: the command failed: see the end of") {
		t.Errorf("with a command outside the policy: exit %d: %s", code, printed)
	}

	agent := q.agent(t)
	check(t, agent.Stop())
	q.tool(t, "sleep", "exec /bin/sleep 0.02") // the script waits 90 times
	printed, code = q.run(t, "")
	if code != 1 || !strings.Contains(printed, fmt.Sprintf("the running agent (process %d) did not end", agent.PID)) {
		t.Errorf("with an agent that does not end: exit %d: %s", code, printed)
	}
	check(t, agent.Continue())
	until(t, "the agent ends", func() bool { return len(q.agents()) == 0 })

	// The programs of the next start cannot attach.
	check(t, os.Rename(filepath.Join(q.Home, "node", "tls"), filepath.Join(q.Home, "node", "tls.away")))
	printed, code = q.run(t, "")
	if code != 1 || !strings.Contains(printed, "the node did not attach: see ") {
		t.Errorf("with an agent that cannot attach: exit %d: %s", code, printed)
	}
}
