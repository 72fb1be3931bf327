package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// awaitFinal waits for the end of a job on a node and returns the final record.
func awaitFinal(t *testing.T, f *fleet.Fleet, job, node string) map[string]any {
	t.Helper()
	var final map[string]any
	until(t, "job "+job+" has ended on "+node, func() bool {
		out, _, _ := machine{fleet: f, home: f.Home}.muster(t, nil, "job", "logs", "--json", job)
		final = finals(t, out)[node]
		return final != nil
	})
	return final
}

// execDetached starts a job on n1 and returns its id, as soon as the relay accepts signatures of the operator.
func execDetached(t *testing.T, f *fleet.Fleet, command ...string) (job string) {
	t.Helper()
	until(t, "a command is accepted", func() bool {
		out, stderr, code := execOn(t, f, append([]string{"--node", "n1", "--detach", "--"}, command...)...)
		if code != 0 && !strings.Contains(stderr, "NO_COMMAND_AUTHORITY") {
			t.Fatalf("exec: exit %d: %s", code, stderr)
		}
		job = strings.TrimSpace(out)
		return code == 0
	})
	return job
}

func TestAgentAttachesThroughProxy(t *testing.T) {
	t.Parallel()
	f := up(t)
	address, connected := connectProxy(t)
	n := join(t, f, "n1", openPolicy, nil, nil)
	n.extra = []string{"https_proxy=http://" + address, "no_proxy="}
	n.attach(t)
	job := execDetached(t, f, "/bin/echo", "over the proxy")
	awaitFinal(t, f, job, "n1")
	if out := must(f.Muster("job", "logs", job))(t); out != "n1: over the proxy\n" {
		t.Errorf("the job printed %q", out)
	}
	if connected.Load() == 0 {
		t.Error("the agent did not go through the proxy")
	}
}

// The proxy of the environment is for other machines.
func TestServicesAndCommandsNeedNoProxyForThisMachine(t *testing.T) {
	t.Parallel()
	f := must(fleet.New(""))(t)
	closeAtEnd(t, f)
	f.Environment = append(f.Environment, "HTTPS_PROXY=http://127.0.0.1:1") // nothing listens
	check(t, f.Up())
	must(f.Muster("runs"))(t)
	must(f.Muster("dashboard"))(t)
}

func TestSecondAgentOfFolderFails(t *testing.T) {
	t.Parallel()
	n := attached(t, up(t), "n1")
	if _, stderr, code := n.muster(t, nil, "agent", "attach"); code != 1 || !strings.Contains(stderr, "ALREADY_ATTACHED") &&
		!strings.Contains(stderr, "another process is attached") {
		t.Errorf("a second agent: exit %d: %s", code, stderr)
	}
	if _, stderr, code := newMachine(t, n.fleet).muster(t, nil, "agent", "attach"); code != 1 || !strings.Contains(stderr, "muster node join") {
		t.Errorf("without an identity: exit %d: %s", code, stderr)
	}
}

func TestRestartedAgentKillsProcessesOfKilledAgent(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := attached(t, f, "n1")
	pidFile := filepath.Join(n.home, "pid")
	job := execDetached(t, f, "/bin/sh", "-c",
		"sleep 1000 & echo $! > "+pidFile+".part; mv "+pidFile+".part "+pidFile+"; wait")
	until(t, "the command is running", func() bool { return fileExists(pidFile) })
	pid := must(strconv.Atoi(strings.TrimSpace(string(must(os.ReadFile(pidFile))(t)))))(t)
	n.agent.Kill()
	n.start(t)
	if final := awaitFinal(t, f, job, "n1"); final["outcome"] != "lost" || final["reason"] != "AGENT_DIED" {
		t.Errorf("the job ended as %v, want lost (AGENT_DIED)", final)
	}
	until(t, "the command's helper has ended", func() bool { return !processRuns(pid) })
}

func TestStoppedAgentReportsOutcomesOfCommands(t *testing.T) {
	t.Parallel()
	f := up(t)
	n := attached(t, f, "n1")
	started := filepath.Join(n.home, "started")
	job := execDetached(t, f, "/bin/sh", "-c", "touch "+started+"; exec sleep 1000")
	until(t, "the command is running", func() bool { return fileExists(started) })
	process := must(os.FindProcess(n.agent.PID))(t)
	check(t, process.Signal(os.Interrupt))
	if final := awaitFinal(t, f, job, "n1"); final["reason"] != "AGENT_STOPPED" {
		t.Errorf("the job ended as %v, want lost (AGENT_STOPPED)", final)
	}
	check(t, fleet.Until(time.Minute, "the agent ends", func() bool { return !processRuns(n.agent.PID) }))
	check(t, n.agent.Wait())
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// processRuns is false for a zombie, too.
func processRuns(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z")
}
