package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The helpers are other processes of this program.
const (
	allocate = "helper-allocate" // uses the memory of its argument
	wait     = "helper-wait"     // waits for the end of its standard input
	orphan   = "helper-orphan"   // prints the id of a child, and exits before it does
)

// patience bounds the waits for the kernel and for process 1. It is reached only if a property does not hold.
const patience = 5 * time.Second

func processChecks() []check {
	return []check{
		{"processes.init", "processes", true, "another program is process 1", checkInit},
		{"processes.signal", "processes", true, "process 1 passes SIGTERM on", checkSignal},
		{"processes.orphan", "processes", true, "process 1 reaps orphans", checkOrphan},
		{"processes.isolation", "processes", true, "no process of the node", checkIsolation},
	}
}

func checkInit() finding {
	if os.Getpid() == 1 {
		return holds("this program", errors.New("nothing passes signals on or reaps orphans"))
	}
	return holds("another program", nil)
}

// checkSignal sends SIGTERM to process 1, as Docker does for a stop.
func checkSignal() finding {
	if os.Getpid() == 1 {
		return skipped("this program is process 1")
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM)
	defer signal.Stop(signals)
	if err := unix.Kill(1, unix.SIGTERM); err != nil {
		return holds("not sent", err)
	}
	select {
	case <-signals:
		return holds("passed on", nil)
	case <-time.After(patience):
		return holds("not passed on", errors.New("a stop of the container does not reach its program"))
	}
}

// checkOrphan lets a process outlive its parent, ends it, and waits until it has gone.
func checkOrphan() finding {
	command := helper(orphan)
	output, err := command.StdoutPipe()
	if err != nil {
		return holds("unknown", err)
	}
	if err := command.Start(); err != nil {
		return holds("unknown", err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err = errors.Join(err, command.Wait()); err != nil {
		return holds("unknown", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err == nil {
		err = unix.Kill(pid, unix.SIGKILL)
	}
	if err != nil {
		return holds("unknown", err)
	}
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(5 * time.Millisecond) {
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return holds("reaped", nil)
		}
	}
	return holds("not reaped", errors.New("ended processes count against the limit until the container ends"))
}

func checkIsolation() finding {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return holds("unknown", err)
	}
	const own = 8 // process 1, this one, and helpers that end
	processes := 0
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err == nil {
			processes++
		}
	}
	if processes > own {
		return holds("others are visible", fmt.Errorf("/proc shows %d processes", processes))
	}
	return holds("only those of the container", nil)
}

func helper(arguments ...string) *exec.Cmd { return exec.Command("/proc/self/exe", arguments...) }

func isHelper(name string) bool { return name == allocate || name == wait || name == orphan }

func runHelper(arguments []string) int {
	var err error
	switch arguments[0] {
	case allocate:
		err = useMemory(arguments[1])
	case wait:
		_, err = io.Copy(io.Discard, os.Stdin)
	case orphan:
		err = leaveOrphan()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return exitError
	}
	return 0
}

// useMemory makes this process the one that the kernel kills first, and touches as many bytes.
func useMemory(bytes string) error {
	size, err := strconv.Atoi(bytes)
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	for i := 0; i < size; i += os.Getpagesize() {
		memory[i] = 1
	}
	return unix.Munmap(memory)
}

// leaveOrphan: the child would end with its standard input, so its parent leaves it open in the child alone.
func leaveOrphan() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	child := helper(wait)
	child.Stdin = read
	child.ExtraFiles = []*os.File{write}
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println(child.Process.Pid)
	return nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
