package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// openPolicy admits the commands of the tests.
const openPolicy = `commands:
  - argv: [/bin/echo, "**"]
    environment: [GREETING]
  - argv: [/bin/sh, -c, "*"]
  - argv: [/bin/sleep, "*"]
`

// node is a machine that joined, and its agent.
type node struct {
	machine
	name  string
	agent *fleet.RunningProgram
	extra []string // more environment variables
}

// join joins a machine with a new token and a policy.
func join(t *testing.T, f *fleet.Fleet, name, policy string, on *fleet.Host, environment []string, arguments ...string) *node {
	t.Helper()
	n := &node{machine: newMachine(t, f), name: name, extra: environment}
	n.on = on
	file := token(t, f, append([]string{"--node", name}, arguments...)...)
	if _, stderr, code := n.muster(t, environment, "node", "join", "--token-file", file); code != 0 {
		t.Fatalf("%s joins: exit %d: %s", name, code, stderr)
	}
	if policy != "" {
		check(t, os.WriteFile(filepath.Join(n.folder(), "policy.yaml"), []byte(policy), 0o600))
	}
	return n
}

func (n *node) folder() string { return filepath.Join(n.home, "node") }

// attach starts its agent and waits until it is attached.
func (n *node) attach(t *testing.T) {
	t.Helper()
	n.start(t)
	n.awaitAttached(t, true)
}

func (n *node) start(t *testing.T) {
	t.Helper()
	n.agent = must(n.fleet.Start(n.on, append([]string{"MUSTER_HOME=" + n.home}, n.extra...), fleet.Muster, "agent", "attach"))(t)
	agent := n.agent
	t.Cleanup(func() { endAndLog(t, n.name, agent) })
}

func (n *node) awaitAttached(t *testing.T, attached bool) {
	t.Helper()
	// A parent that was lost several times in a row is retried after up to a minute.
	check(t, fleet.Until(2*time.Minute, n.name+" is attached or detached", func() bool {
		byName, err := listNodes(n.fleet)
		return err == nil && byName[n.name]["attached"] == attached
	}))
}

// attached returns an attached node of that name with the policy of the tests.
func attached(t *testing.T, f *fleet.Fleet, name string, arguments ...string) *node {
	t.Helper()
	n := join(t, f, name, openPolicy, nil, nil, arguments...)
	n.attach(t)
	return n
}

// records returns the output of `muster exec --json` or `muster job logs --json`.
func records(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if line == "" {
			continue
		}
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%q is not JSON: %v", line, err)
		}
		all = append(all, record)
	}
	return all
}

// finals returns the last record of each node.
func finals(t *testing.T, out string) map[string]map[string]any {
	t.Helper()
	byNode := map[string]map[string]any{}
	for _, record := range records(t, out) {
		if record["event"] == "final" {
			byNode[record["node"].(string)] = record
		}
	}
	return byNode
}

// execOn runs `muster exec`; it returns stdout, stderr and the exit code.
func execOn(t *testing.T, f *fleet.Fleet, arguments ...string) (stdout, stderr string, code int) {
	t.Helper()
	return machine{fleet: f, home: f.Home}.muster(t, nil, append([]string{"exec"}, arguments...)...)
}

func TestExecShowsOutputAndOutcomes(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1", "--label", "rack=b1")
	attached(t, f, "n2")
	out, stderr, code := execOn(t, f, "--all", "--", "/bin/sh", "-c", "echo to stdout; echo to stderr >&2; printf tail")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, name := range []string{"n1", "n2"} {
		if !strings.Contains(out, name+": to stdout\n") || !strings.Contains(out, name+": tail\n") || !strings.Contains(stderr, name+": to stderr\n") {
			t.Errorf("%s is missing:\n%s\n%s", name, out, stderr)
		}
	}
	if out, _, _ := execOn(t, f, "--label", "rack=b1", "--", "/bin/echo", "hello"); out != "n1: hello\n" {
		t.Errorf("by label: %q", out)
	}
	for _, words := range [][]string{{"--node", "n1", "--", "/bin/echo"}, {"--node", "n1", "/bin/echo"}} {
		if out, _, _ := execOn(t, f, append(words, "[a,b]", "--node", "n2", "--json")...); out != "n1: [a,b] --node n2 --json\n" {
			t.Errorf("%v printed %q", words, out)
		}
	}
	out, stderr, code = execOn(t, f, "--node", "n1,n2,n9", "--json", "--", "/bin/sh", "-c", "exit 3")
	if code != 9 {
		t.Errorf("a command that fails: exit %d: %s", code, stderr)
	}
	ends := finals(t, out)
	if len(ends) != 3 || ends["n1"]["exit_code"] != 3.0 || ends["n9"]["outcome"] != "unknown" {
		t.Errorf("the last records are %v", ends)
	}
	if ends["n1"]["records_verified"] != true || ends["n9"]["records_verified"] != false {
		t.Errorf("the records of n1 are not the signed ones, or those of n9 are: %v", ends)
	}
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1,n9", "--ttl", "1s", "--detach", "--", "/bin/echo", "done"))(t))
	_, err := f.Muster("job", "logs", "-f", job)
	wantExit(t, err, 9)
	if _, err := f.Muster("job", "logs", job, "--node", "n1"); err != nil {
		t.Errorf("the logs of a node that succeeded: %v", err)
	}
	if out := must(f.Muster("job", "show", job))(t); !strings.Contains(out, "n9: unknown") {
		t.Errorf("the failed node is not named:\n%s", out)
	}
}

func TestCommandOutsidePolicyIsRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	bare := join(t, f, "n2", "", nil, nil)
	bare.attach(t)
	marker := filepath.Join(t.TempDir(), "marker")
	out, _, code := execOn(t, f, "--all", "--json", "--", "/usr/bin/touch", marker)
	ends := finals(t, out)
	for _, name := range []string{"n1", "n2"} {
		if ends[name]["outcome"] != "refused" || ends[name]["reason"] != "POLICY_REFUSED" {
			t.Errorf("%s: %v", name, ends[name])
		}
	}
	if _, err := os.Stat(marker); err == nil || code != 9 {
		t.Errorf("the command ran; exit %d", code)
	}
	if _, stderr, code := execOn(t, f, "--node", "n1", "--env", "A=1", "--env", "A=2", "--", "/bin/true"); code != 2 || !strings.Contains(stderr, "the variable A is set twice") {
		t.Errorf("a variable twice: exit %d: %s", code, stderr)
	}
	out, _, _ = execOn(t, f, "--node", "n1", "--env", "GREETING=hi there", "--", "/bin/echo", "$GREETING", ";", "id")
	if out != "n1: $GREETING ; id\n" {
		t.Errorf("the arguments were interpreted by a shell: %q", out)
	}
}

func TestDetachedJobRunsUntilCancelled(t *testing.T) {
	t.Parallel()
	f := up(t)
	attached(t, f, "n1")
	out, stderr, code := execOn(t, f, "--node", "n1", "--detach", "--deadline", "10m", "--", "/bin/sh", "-c", "echo begun; exec sleep 600")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	job := strings.TrimSpace(out)
	until(t, "its output is shown", func() bool {
		out, _ := f.Muster("job", "logs", job)
		return out == "n1: begun\n"
	})
	var shown map[string]any
	check(t, f.JSON(&shown, "job", "show", job, "--json"))
	if shown["state"] != "running" || shown["running"] != 1.0 {
		t.Errorf("it is shown as %v", shown)
	}
	must(f.Muster("job", "cancel", job))(t)
	until(t, "it has ended", func() bool {
		check(t, f.JSON(&shown, "job", "show", job, "--json"))
		return shown["state"] == "cancelled"
	})
	if outcomes := shown["outcomes"].(map[string]any); outcomes["cancelled"] != 1.0 {
		t.Errorf("it ended as %v", shown)
	}
	if out := must(f.Muster("job", "list"))(t); !strings.Contains(out, job[:12]) || !strings.Contains(out, "cancelled") {
		t.Errorf("job list prints\n%s", out)
	}
}

func TestCommandWaitsForDetachedNode(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := attached(t, f, "n1")
	n.agent.End()
	n.awaitAttached(t, false)
	out, _, code := execOn(t, f, "--node", "n1", "--ttl", "1s", "--json", "--", "/bin/echo", "never")
	if ends := finals(t, out); code != 9 || ends["n1"]["outcome"] != "unreachable" {
		t.Errorf("exit %d: %v", code, ends)
	}
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--ttl", "10m", "--detach", "--", "/bin/echo", "at last"))(t))
	n.attach(t)
	out, err := f.Muster("job", "logs", "-f", job)
	if err != nil || out != "n1: at last\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// A node that has joined is waited for, too, before it has attached for the first time.
func TestCommandWaitsForAJoinedNodeThatNeverAttached(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := join(t, f, "n1", openPolicy, nil, nil)
	_, stderr, code := execOn(t, f, "--node", "n1", "--ttl", "1s", "--", "/bin/echo", "early")
	if code != 9 || !strings.Contains(stderr, "n1 failed: unreachable") || !strings.Contains(stderr, "`muster node show n1`") {
		t.Errorf("a command for a node that never attached: exit %d: %s", code, stderr)
	}
	if out := must(f.Muster("node", "show", "n1"))(t); !strings.Contains(out, "no, and not within the last week") {
		t.Errorf("muster node show prints %s", out)
	}
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--ttl", "10m", "--detach", "--", "/bin/echo", "at last"))(t))
	n.attach(t)
	out, err := f.Muster("job", "logs", "-f", job)
	if err != nil || out != "n1: at last\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// The outcome of an unreachable node is final: the command does not run when the node attaches later.
func TestCommandForUnreachableNodeNeverRunsLater(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := attached(t, f, "n1")
	n.agent.End()
	n.awaitAttached(t, false)
	marker := filepath.Join(t.TempDir(), "marker")
	out, _, code := execOn(t, f, "--node", "n1", "--ttl", "1s", "--json", "--", "/bin/sh", "-c", "touch "+marker)
	if ends := finals(t, out); code != 9 || ends["n1"]["outcome"] != "unreachable" {
		t.Errorf("exit %d: %v", code, ends)
	}
	n.attach(t)
	// The relay sends the commands of a node in order: this one would be the second.
	if out, stderr, _ := execOn(t, f, "--node", "n1", "--", "/bin/echo", "hello"); out != "n1: hello\n" {
		t.Errorf("a later command: %q, %s", out, stderr)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran after its outcome was final")
	}
}

// The command is in transit to a suspended agent: whether it ran is not known, and it is cancelled when the agent resumes.
func TestCommandSentToSuspendedAgentIsIndeterminateAndCancelled(t *testing.T) {
	t.Parallel()
	f := up(t)
	check(t, f.Configure("relay", map[string]string{"interval": "1s"}))
	n := attached(t, f, "n1")
	check(t, n.agent.Stop())
	out, _, code := execOn(t, f, "--node", "n1", "--ttl", "1s", "--json", "--", "/bin/sleep", "50")
	if ends := finals(t, out); code != 9 || ends["n1"]["outcome"] != "indeterminate" {
		t.Errorf("exit %d: %v", code, ends)
	}
	check(t, n.agent.Continue())
	until(t, "no command is left", func() bool {
		out, _, _ := execOn(t, f, "--node", "n1", "--", "/bin/sh", "-c", "pgrep -P $PPID -x sleep || echo none")
		return out == "n1: none\n"
	})
}

// A restarted root relay knows the commands that run.
func TestCancelAfterRestartOfTheRelayEndsTheCommand(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := attached(t, f, "n1")
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--deadline", "10m", "--detach", "--", "/bin/sh", "-c", "echo begun; exec sleep 600"))(t))
	until(t, "its output is shown", func() bool {
		out, _ := f.Muster("job", "logs", job)
		return out == "n1: begun\n"
	})
	killUntilRestart(t, f, fleet.Relay) // the node may be attached again within a moment
	n.awaitAttached(t, true)
	must(f.Muster("job", "cancel", job))(t)
	if final := awaitFinal(t, f, job, "n1"); final["outcome"] != "cancelled" || final["sequence"] == 0.0 {
		t.Errorf("the command ended as %v", final)
	}
}

// The root relay is killed while commands run: the output of the nodes is complete and without duplicates.
func TestKilledRelayLosesNoOutput(t *testing.T) {
	t.Parallel()
	f := up(t)
	for _, name := range []string{"n1", "n2"} {
		attached(t, f, name)
	}
	job := strings.TrimSpace(must(f.Muster("exec", "--all", "--deadline", "5m", "--detach", "--", "/bin/sh", "-c",
		"i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); sleep 0.02; done"))(t))
	for range 2 {
		until(t, "output arrives", func() bool {
			out, _ := f.Muster("job", "logs", job)
			return strings.Contains(out, "n1: line ")
		})
		relay := must(f.Process(fleet.Relay))(t)
		relay.Kill()
	}
	out, err := f.Muster("job", "logs", "-f", job)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, 400, "n1", "n2")
	shown := must(f.Muster("job", "logs", "--json", job))(t)
	for name, final := range finals(t, shown) {
		if final["records_verified"] != true {
			t.Errorf("the records of %s are not the signed ones: %v", name, final)
		}
	}
}

func TestRunStartsAttachedNodes(t *testing.T) {
	t.Parallel()
	f := up(t)
	policy := openPolicy + "  - argv: [/bin/sh, -c, \"*\"]\n    actions: [collect]\n"
	for _, name := range []string{"n1", "n2"} {
		join(t, f, name, policy, nil, nil).attach(t)
	}
	id := run(t, f, []string{execPlugin("hello", "DaemonSet", `echo "of $(uname -s)" > "$RESULTS_DIR/f"; echo "$RESULTS_DIR/f" > "$RESULTS_DIR/done"`)}, "n1", "n2")
	if out, err := f.Muster("wait", id); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	a := operator(t, f)
	for _, name := range []string{"n1", "n2"} {
		result := a.result(t, id, "hello", name)
		if result.GetDelivery().GetUri() == "" || !result.GetDelivery().GetSigned() {
			t.Errorf("%s delivered %v", name, result)
		}
	}
}
