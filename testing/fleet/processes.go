package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is one of a fleet's processes.
type Process struct {
	PID       int
	Name      string   // of its program
	Arguments []string // without the program
}

func (p Process) String() string { return fmt.Sprintf("%s (%d)", p.Name, p.PID) }

// Kill kills the process as a crash would, returns when it has ended, and reports whether it was running.
func (p Process) Kill() bool {
	if !p.runs() || syscall.Kill(p.PID, syscall.SIGKILL) != nil {
		return false
	}
	for end := time.Now().Add(10 * time.Second); p.runs() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return true
}

// Stop suspends the process with SIGSTOP, until Continue.
func (p Process) Stop() error { return syscall.Kill(p.PID, syscall.SIGSTOP) }

// Continue resumes a stopped process.
func (p Process) Continue() error { return syscall.Kill(p.PID, syscall.SIGCONT) }

// runs reports whether the process exists and is not a zombie.
func (p Process) runs() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return false
	}
	_, after, found := strings.Cut(string(text), ") ")
	return found && after[0] != 'Z'
}

// CPU returns the CPU time of the process, user and kernel.
func (p Process) CPU() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after) // from field 3, the state
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / 100 // USER_HZ
}

// PeakMemory returns the peak of the resident memory since ResetPeak, in bytes.
func (p Process) PeakMemory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// ResetPeak restarts the measurement of PeakMemory.
func (p Process) ResetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID), []byte("5"), 0)
}

// Processes finds all processes of this home, by the home in their environment, which services inherit.
func (f *Fleet) Processes() []Process {
	var found []Process
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || pid == os.Getpid() {
			continue
		}
		environment, err := os.ReadFile(folder + "/environ")
		if err != nil || !strings.Contains("\x00"+string(environment), "\x00MUSTER_HOME="+f.Home+"\x00") {
			continue
		}
		program, err := os.Readlink(folder + "/exe")
		if err != nil {
			continue // it has ended
		}
		command, _ := os.ReadFile(folder + "/cmdline")
		arguments := strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00")
		process := Process{pid, filepath.Base(strings.TrimSuffix(program, " (deleted)")), arguments[1:]}
		if process.runs() {
			found = append(found, process)
		}
	}
	return found
}

// Process finds the only process of a program, with these first arguments if any are given.
func (f *Fleet) Process(name string, arguments ...string) (Process, error) {
	var found []Process
	for _, process := range f.Processes() {
		if process.Name == name && len(process.Arguments) >= len(arguments) &&
			slices.Equal(process.Arguments[:len(arguments)], arguments) {
			found = append(found, process)
		}
	}
	if len(found) != 1 {
		return Process{}, fmt.Errorf("%d processes of %s %v are running, want 1: %v", len(found), name, arguments, found)
	}
	return found[0], nil
}
