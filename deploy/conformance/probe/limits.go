package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func limitChecks(limits declared) []check {
	return []check{
		{"limits.memory", "limits", true, "at most " + bytesText(limits.MemoryBytes), func() finding { return atMost(memoryLimit, limits.MemoryBytes) }},
		{"limits.memory-enforced", "limits", true, "a process beyond the limit is killed", checkMemoryEnforced},
		{"limits.swap", "limits", true, "none", checkSwap},
		{"limits.processes", "limits", true, fmt.Sprintf("at most %d", limits.Processes), func() finding { return atMost(processLimit, limits.Processes) }},
		{"limits.processes-enforced", "limits", true, "no process beyond the limit", func() finding { return checkProcessesEnforced(limits.Processes) }},
		{"limits.cpus", "limits", true, fmt.Sprintf("at most %g", limits.CPUs), func() finding { return checkCPULimit(limits.CPUs) }},
		{"limits.cpus-enforced", "limits", true, "no more CPU time than the limit", checkCPUEnforced},
		{"limits.open-files", "limits", false, "at least 1024", checkOpenFiles},
	}
}

// cgroupVersion returns 1 or 2: limits are read from other files.
func cgroupVersion() int {
	var statistics unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &statistics) == nil && statistics.Type == unix.CGROUP2_SUPER_MAGIC {
		return 2
	}
	return 1
}

// cgroupValue reads a file of the cgroup of this container.
func cgroupValue(version1, version2 string) (string, error) {
	path := "/sys/fs/cgroup/" + version2
	if cgroupVersion() == 1 {
		path = "/sys/fs/cgroup/" + version1
	}
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

// cgroupNumber reads a limit. math.MaxInt64: there is none.
func cgroupNumber(version1, version2 string) (int64, error) {
	text, err := cgroupValue(version1, version2)
	if err != nil || text == "max" {
		return math.MaxInt64, err
	}
	number, err := strconv.ParseInt(text, 10, 64)
	const unlimited = math.MaxInt64 - math.MaxInt32 // version 1 has the largest multiple of a page
	if number > unlimited || number < 0 {
		number = math.MaxInt64
	}
	return number, err
}

func memoryLimit() (int64, error) {
	return cgroupNumber("memory/memory.limit_in_bytes", "memory.max")
}

func processLimit() (int64, error) { return cgroupNumber("pids/pids.max", "pids.max") }

// cpuLimit returns the number of CPUs that the container may use; +Inf without a limit.
func cpuLimit() (float64, error) {
	if cgroupVersion() == 1 {
		quota, err := cgroupNumber("cpu/cpu.cfs_quota_us", "")
		period, periodErr := cgroupNumber("cpu/cpu.cfs_period_us", "")
		if err = errors.Join(err, periodErr); err != nil || quota == math.MaxInt64 || period <= 0 {
			return math.Inf(1), err
		}
		return float64(quota) / float64(period), nil
	}
	text, err := cgroupValue("", "cpu.max")
	quota, period, _ := strings.Cut(text, " ")
	if err != nil || quota == "max" {
		return math.Inf(1), err
	}
	q, err := strconv.ParseFloat(quota, 64)
	p, periodErr := strconv.ParseFloat(period, 64)
	return q / p, errors.Join(err, periodErr)
}

func atMost(limit func() (int64, error), expected int64) finding {
	value, err := limit()
	switch {
	case err != nil:
		return holds("unknown", err)
	case value == math.MaxInt64:
		return holds("none", errors.New("the kernel has no limit for this container"))
	case value > expected:
		return holds(strconv.FormatInt(value, 10), errors.New("it is above that of the type"))
	}
	return holds(strconv.FormatInt(value, 10), nil)
}

// checkMemoryEnforced lets a child use more memory than the limit. The kernel kills the child, because it asks for that.
func checkMemoryEnforced() finding {
	limit, err := memoryLimit()
	if err != nil || limit == math.MaxInt64 {
		return holds("no limit", errors.Join(err, errors.New("the kernel has no limit for this container")))
	}
	command := helper(allocate, strconv.FormatInt(limit+16*mebibyte, 10))
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if wait, ok := exit.Sys().(interface{ Signal() unix.Signal }); ok && wait.Signal() == unix.SIGKILL {
			return holds("killed", nil)
		}
	}
	return holds("not killed", fmt.Errorf("a process used %d bytes: %v", limit+16*mebibyte, err))
}

func checkSwap() finding {
	if cgroupVersion() == 1 {
		both, err := cgroupNumber("memory/memory.memsw.limit_in_bytes", "")
		if errors.Is(err, os.ErrNotExist) {
			return checkNoSwap()
		}
		memory, memoryErr := memoryLimit()
		if err = errors.Join(err, memoryErr); err == nil && both > memory {
			err = fmt.Errorf("%d bytes of swap may be used", both-memory)
		}
		return noneOr(err)
	}
	swap, err := cgroupNumber("", "memory.swap.max")
	if errors.Is(err, os.ErrNotExist) {
		return checkNoSwap()
	}
	if err == nil && swap > 0 {
		err = fmt.Errorf("%d bytes of swap may be used", swap)
	}
	return noneOr(err)
}

// checkNoSwap: a kernel that does not limit swap is in order where there is none.
func checkNoSwap() finding {
	var information unix.Sysinfo_t
	err := unix.Sysinfo(&information)
	if err == nil && information.Totalswap > 0 {
		err = errors.New("the kernel does not limit swap, and the node has swap")
	}
	return noneOr(err)
}

func noneOr(err error) finding {
	if err != nil {
		return holds("some", err)
	}
	return holds("none", nil)
}

// checkProcessesEnforced starts processes until the kernel refuses one.
func checkProcessesEnforced(declared int64) finding {
	limit, err := processLimit()
	if err != nil || limit > declared {
		return skipped("the limit itself is wrong")
	}
	var children []*exec.Cmd
	for int64(len(children)) <= limit && err == nil {
		command := helper(wait)
		input, pipeErr := command.StdinPipe()
		if err = pipeErr; err != nil {
			break
		}
		if err = command.Start(); err == nil {
			children = append(children, command)
			continue
		}
		_ = input.Close() // the start failed, so nothing waits for it
	}
	for _, child := range children {
		_ = child.Process.Kill()
		_ = child.Wait() // it was killed
	}
	if err == nil {
		return holds("more processes", fmt.Errorf("%d processes were started", len(children)))
	}
	if !errors.Is(err, unix.EAGAIN) {
		return holds("another error", err)
	}
	return holds("refused", nil)
}

func checkCPULimit(declared float64) finding {
	limit, err := cpuLimit()
	if err == nil && limit > declared {
		err = errors.New("it is above that of the type")
	}
	return holds(strconv.FormatFloat(limit, 'g', 4, 64), err)
}

// checkCPUEnforced uses all CPUs for some periods of the scheduler.
func checkCPUEnforced() finding {
	limit, err := cpuLimit()
	if err != nil || math.IsInf(limit, 1) {
		return skipped("the limit itself is wrong")
	}
	if float64(runtime.NumCPU()) <= limit {
		return skipped("the node has no more CPUs than the limit")
	}
	const wall = time.Second
	before := cpuTime()
	begin := time.Now()
	var group sync.WaitGroup
	for range runtime.NumCPU() {
		group.Go(func() {
			for time.Since(begin) < wall {
			}
		})
	}
	group.Wait()
	used := (cpuTime() - before).Seconds() / time.Since(begin).Seconds()
	const tolerance = 1.25 // the scheduler counts in slices of 5 ms, and a period of 100 ms may begin before
	if used > limit*tolerance {
		return holds("more than the limit", fmt.Errorf("%.2f CPUs were used", used))
	}
	return holds("within the limit", nil)
}

func cpuTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func checkOpenFiles() finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return holds("unknown", err)
	}
	const enough = 1024
	if limit.Max < enough {
		return holds(strconv.FormatUint(limit.Max, 10), errors.New("programs may fail with too many open files"))
	}
	return holds("at least 1024", nil)
}
