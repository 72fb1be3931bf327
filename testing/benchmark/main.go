// Benchmark compares Muster with its peers on this machine and prints the figures as Markdown: ratio, both raw figures,
// CPU seconds of servers and clients, and peak memory. testing/bench builds what it needs and calls it. Read
// docs/benchmarks.md before you use a figure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.example/testing/fleet"
)

// settings are the command's flags.
type settings struct {
	folder     string // for both servers' data; each measurement creates a new folder in it
	disk       string // for data that is too large for memory
	load       string // the folder of the load senders
	repeat     int
	agents     int
	check      int // percent
	times      int
	sides      int // of each comparison; 0: all
	uploads    int
	uploadMiB  int
	rows       int
	archiveMiB int
	scale      float64 // of the sizes and counts of this measurement
}

// scaled returns a size or count of this measurement, at least 1.
func (s settings) scaled(n int) int { return max(1, int(float64(n)*s.scale)) }

// benchmark measures one figure and writes its rows.
type benchmark struct {
	name    string
	measure func(settings) (string, error)
}

var benchmarks = []benchmark{
	{"bulk", bulk},
	{"small", small},
	{"text", text},
	{"legacy-bulk", legacyBulk},
	{"legacy-small", legacySmall},
	{"legacy-new", legacyNew},
	{"memory", memory},
	{"relay-uploads", relayUploads},
	{"start", start},
	{"archive", archive},
	{"heartbeats", heartbeats},
	{"status", status},
	{"relay", relay},
	{"shares", shares},
	{"containers", containers},
	{"deployments", deployments},
}

// ownPrograms are what this program runs itself as.
var ownPrograms = map[string]func([]string) error{senderCommand: send, plainCommand: servePlain}

func main() {
	if len(os.Args) > 1 {
		if own := ownPrograms[os.Args[1]]; own != nil {
			if err := own(os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "benchmark %s: %v\n", os.Args[1], err)
				os.Exit(1)
			}
			return
		}
	}
	var s settings
	flag.StringVar(&s.folder, "folder", "/dev/shm", "the folder of the servers' data: memory, or an idle disk")
	flag.StringVar(&s.disk, "disk", os.TempDir(), "a disk with 55 GiB free for memory, 37 GiB for relay-uploads")
	flag.StringVar(&s.load, "load", os.Getenv("MUSTER_LOAD"), "the folder of the load senders")
	flag.IntVar(&s.repeat, "repeat", 3, "the number of measurements of each side, alternating")
	flag.IntVar(&s.agents, "agents", 10_000, "the number of connected agents in the heartbeats and relay figures")
	flag.IntVar(&s.check, "check", 1, "relay: the percentage of agents that check a command's signature")
	flag.IntVar(&s.times, "times", 20, "relay, containers: the number of measured remote runs")
	flag.IntVar(&s.uploads, "uploads", 100, "memory, relay-uploads: the number of simultaneous uploads")
	flag.IntVar(&s.uploadMiB, "upload-mib", 256, "memory, relay-uploads: the size of each upload")
	flag.IntVar(&s.rows, "rows", 1_000_000, "start: the number of results")
	flag.IntVar(&s.archiveMiB, "archive-mib", 2048, "archive: the size of all results")
	flag.IntVar(&s.sides, "sides", 0, "measure only this many of the servers of a comparison; 1: Muster alone, 0: all")
	only := flag.String("only", "bulk,small,text,legacy-bulk,legacy-small,legacy-new,memory,relay-uploads,start,archive,heartbeats,status,relay,shares,containers,deployments", "the figures to measure")
	scales := flag.String("scale", "1", "factors of the sizes and counts of bulk, small, text, the legacy figures, memory, relay-uploads, start and archive: "+
		"each figure is measured with each, for example 0.01,0.1,1")
	flag.Parse()
	wanted := strings.Split(*only, ",")
	fmt.Printf("%s, %s, `testing/bench %s`\n\n", time.Now().Format(time.DateOnly), machine(), strings.Join(os.Args[1:], " "))
	code := 0
	for _, b := range benchmarks {
		if !slices.Contains(wanted, b.name) {
			continue
		}
		for _, scale := range strings.Split(*scales, ",") {
			if err := measureAt(scale, b, s); err != nil {
				fmt.Fprintf(os.Stderr, "benchmark %s: %v\n", b.name, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// measureAt measures one figure at a scale and prints it.
func measureAt(scale string, b benchmark, s settings) (err error) {
	if s.scale, err = strconv.ParseFloat(scale, 64); err != nil || s.scale <= 0 {
		return fmt.Errorf("-scale %s: not a positive number", scale)
	}
	table, err := b.measure(s)
	if err == nil {
		fmt.Println(table)
	}
	return err
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
	client  time.Duration // CPU of the sender
	parts   []part        // of cpu
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

// part is the CPU time of one process.
type part struct {
	name string
	cpu  time.Duration
}

// medianCPU returns the median CPU time of the servers.
func medianCPU(samples []sample) time.Duration {
	var all []time.Duration
	for _, one := range samples {
		all = append(all, one.cpu)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// side is one server of a comparison.
type side struct {
	name    string
	measure func(folder string) (sample, error)
}

// alternate measures all sides in turn: ours, theirs, ours, theirs...
func alternate(s settings, sides []side) ([][]sample, error) {
	samples := make([][]sample, len(sides))
	for range s.repeat {
		for i, side := range sides {
			folder, err := os.MkdirTemp(s.folder, "bench")
			if err != nil {
				return nil, err
			}
			one, err := side.measure(folder)
			if removeErr := os.RemoveAll(folder); err == nil {
				err = removeErr
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", side.name, err)
			}
			samples[i] = append(samples[i], one)
		}
	}
	return samples, nil
}

// spread returns the range of a figure over the samples.
func spread(samples []sample, figure func(sample) float64) string {
	var all []float64
	for _, one := range samples {
		all = append(all, figure(one))
	}
	return fmt.Sprintf("%.0f-%.0f", slices.Min(all), slices.Max(all))
}

// startFleet starts a fleet with its data in a new folder of `folder`. The caller closes it.
func startFleet(folder string) (*fleet.Fleet, error) {
	f, err := fleet.New(folder)
	if err != nil {
		return nil, err
	}
	if err := f.Up(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

func program(s settings, name string) string { return filepath.Join(s.load, name) }
