// Benchmark compares Muster with nginx's WebDAV PUT on this machine and prints the figures as Markdown: ratio, both raw
// figures, CPU seconds and peak memory. testing/bench builds what it needs and calls it. Read docs/benchmarks.md before
// you use a figure.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// settings are the command's flags.
type settings struct {
	folder string // for both servers' data; each measurement creates a new folder in it
	disk   string // for data that is too large for memory
	load   string // the folder of the load senders
	repeat int
	agents int
	check  int // percent
	times  int
}

// benchmark measures one figure and writes its rows.
type benchmark struct {
	name    string
	measure func(settings) (string, error)
}

var benchmarks = []benchmark{
	{"bulk", bulk},
	{"small", small},
	{"memory", memory},
	{"heartbeats", heartbeats},
	{"status", status},
	{"relay", relay},
	{"shares", shares},
}

func main() {
	var s settings
	flag.StringVar(&s.folder, "folder", "/dev/shm", "the folder of the servers' data: memory, or an idle disk")
	flag.StringVar(&s.disk, "disk", os.TempDir(), "a disk with 30 GiB free, for the memory figure")
	flag.StringVar(&s.load, "load", os.Getenv("MUSTER_LOAD"), "the folder of the load senders")
	flag.IntVar(&s.repeat, "repeat", 3, "the number of measurements of each side, alternating")
	flag.IntVar(&s.agents, "agents", 10_000, "the number of connected agents in the heartbeats and relay figures")
	flag.IntVar(&s.check, "check", 1, "relay: the percentage of agents that check a command's signature")
	flag.IntVar(&s.times, "times", 20, "relay: the number of measured remote runs")
	only := flag.String("only", "bulk,small,memory,heartbeats,status,relay,shares", "the figures to measure")
	flag.Parse()
	wanted := strings.Split(*only, ",")
	fmt.Printf("%s, %s, `testing/bench %s`\n\n", time.Now().Format(time.DateOnly), machine(), strings.Join(os.Args[1:], " "))
	code := 0
	for _, b := range benchmarks {
		if !slices.Contains(wanted, b.name) {
			continue
		}
		table, err := b.measure(s)
		if err != nil {
			fmt.Fprintf(os.Stderr, "benchmark %s: %v\n", b.name, err)
			code = 1
			continue
		}
		fmt.Println(table)
	}
	os.Exit(code)
}

// machine describes this machine.
func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, line := range strings.Split(string(text), "\n") {
			if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	memory, _ := os.ReadFile("/proc/meminfo")
	var kib int64
	_, _ = fmt.Sscanf(string(memory), "MemTotal: %d kB", &kib)
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d cores of %s, %d GiB, Linux %s", runtime.NumCPU(), model, kib>>20, strings.TrimSpace(string(kernel)))
}

// sample is one measurement of one side.
type sample struct {
	seconds float64       // wall
	cpu     time.Duration // of the server
	peak    int64         // bytes, of the server
	p50     float64       // milliseconds of one delivery
	p99     float64
}

// median sorts by the wall time and returns the middle one.
func median(samples []sample) sample {
	sorted := slices.Clone(samples)
	slices.SortFunc(sorted, func(a, b sample) int { return int((a.seconds - b.seconds) * 1e6) })
	return sorted[len(sorted)/2]
}

// alternate measures both sides in turn: ours, theirs, ours, theirs...
func alternate(s settings, ours, theirs func(folder string) (sample, error)) (muster, nginx []sample, err error) {
	for range s.repeat {
		for _, side := range []struct {
			measure func(string) (sample, error)
			into    *[]sample
		}{{ours, &muster}, {theirs, &nginx}} {
			folder, err := os.MkdirTemp(s.folder, "bench")
			if err != nil {
				return nil, nil, err
			}
			one, err := side.measure(folder)
			if removeErr := os.RemoveAll(folder); err == nil {
				err = removeErr
			}
			if err != nil {
				return nil, nil, err
			}
			*side.into = append(*side.into, one)
		}
	}
	return muster, nginx, nil
}

// spread returns the range of a figure over the samples.
func spread(samples []sample, figure func(sample) float64) string {
	var all []float64
	for _, one := range samples {
		all = append(all, figure(one))
	}
	return fmt.Sprintf("%.0f-%.0f", slices.Min(all), slices.Max(all))
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

func program(s settings, name string) string { return filepath.Join(s.load, name) }
