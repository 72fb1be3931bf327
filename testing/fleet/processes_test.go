package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestProcessesAreLimitedToOwnHome(t *testing.T) {
	mine, other := &Fleet{Home: t.TempDir()}, &Fleet{Home: t.TempDir()}
	var started []*exec.Cmd
	for _, f := range []*Fleet{mine, other} {
		command := exec.Command("sleep", "600")
		command.Env = append(os.Environ(), "MUSTER_HOME="+f.Home)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		started = append(started, command)
		t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	}
	process, err := mine.Process("sleep", "600")
	if err != nil {
		t.Fatal(err)
	}
	if process.PID != started[0].Process.Pid || process.PeakMemory() == 0 || process.ResetPeak() != nil {
		t.Errorf("found %v with a peak of %d bytes, want process %d", process, process.PeakMemory(), started[0].Process.Pid)
	}
	if _, err := mine.Process("sleep", "5"); err == nil {
		t.Error("found a process with other arguments")
	}
	process.Kill()
	if left := mine.Processes(); len(left) != 0 {
		t.Errorf("still running after a kill: %v", left)
	}
	if left := other.Processes(); len(left) != 1 {
		t.Errorf("the other home's processes are %v, want one", left)
	}
}

// A tool of a killed agent has folders of the home in its environment.
func TestRemoveHomeEndsWhatStillRuns(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if err := os.MkdirAll(filepath.Join(home, "node"), 0o700); err != nil {
		t.Fatal(err)
	}
	tool, neighbour := sleeping(t, "HOME="+home+"/node/scratch"), sleeping(t, "HOME="+home+"2/node")
	if err := RemoveHome(home); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the home still exists: %v", err)
	}
	if tool.runs() || !neighbour.runs() {
		t.Errorf("the tool runs: %t, a process of another home: %t", tool.runs(), neighbour.runs())
	}
}

// sleeping starts a process with this variable, which runs until the end of the test.
func sleeping(t *testing.T, variable string) Process {
	t.Helper()
	command := exec.Command("sleep", "600")
	command.Env = []string{variable}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return Process{PID: command.Process.Pid, Name: "sleep"}
}

// Only a kill of a running program counts as one.
func TestEndReportsWhetherItKilled(t *testing.T) {
	for name, command := range map[string]*exec.Cmd{"running": exec.Command("sleep", "600"), "ended": exec.Command("true")} {
		program, err := start(nil, command, name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "ended" {
			if err := program.Wait(); err != nil {
				t.Error(err)
			}
		}
		if killed := program.End(); killed != (name == "running") {
			t.Errorf("%s: killed: %t", name, killed)
		}
		if program.End() || program.Kill() {
			t.Errorf("%s: killed twice", name)
		}
	}
}

// The end of a killed test only closes its end of the pipe.
func TestReaperKillsLeftProcesses(t *testing.T) {
	home, err := os.MkdirTemp("", "reaper")
	if err != nil {
		t.Fatal(err)
	}
	left := exec.Command("sleep", "600")
	left.Env = append(os.Environ(), "MUSTER_HOME="+home)
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	alive, reaper, err := startReaper(home)
	if err != nil {
		t.Fatal(err)
	}
	alive.Close()
	if err := reaper.Wait(); err != nil {
		t.Error(err)
	}
	if err := left.Wait(); err == nil {
		t.Error("the process ended before the pipe was closed")
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the home still exists: %v", err)
	}
}

// A killed program cannot remove its temporary files and its children; the reaper does.
func TestKilledProgramLeavesNoTemporaryFiles(t *testing.T) {
	if os.Getenv("FLEET_TEST_TO_BE_KILLED") != "" {
		if _, err := KeepTemporaryFiles(); err != nil {
			t.Fatal(err)
		}
		left := exec.Command("sleep", "600")
		if err := left.Start(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(os.TempDir(), "left"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Println(left.Process.Pid, os.TempDir())
		select {}
	}
	killed := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	killed.Env = append(os.Environ(), "FLEET_TEST_TO_BE_KILLED=1")
	output, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	var left int
	var folder string
	_, err = fmt.Fscan(output, &left, &folder)
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := Until(10*time.Second, "the folder is removed and the process has ended", func() bool {
		_, err := os.Stat(folder)
		return os.IsNotExist(err) && !Process{PID: left}.runs()
	}); err != nil {
		t.Error(err)
	}
}
