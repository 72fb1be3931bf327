package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	gib       = 1 << 30
	smallSize = 4 << 10
	smalls    = 20_000
	senders   = 64
	fresh     = 4_000       // results with a new connection each
	gigabit   = 125_000_000 // bytes per second of the link
)

// bulk measures one sender of 1 GiB that does not compress.
func bulk(s settings) (string, error) {
	l := s.large()
	return compare(s, sizeText(l)+", incompressible, mutual TLS, by gRPC", l, []side{
		{"Muster", func(folder string) (sample, error) { return byGRPC(folder, s, l) }},
		{"nginx DAV PUT", func(folder string) (sample, error) { return byNginx(folder, s, l, false) }},
		{"nginx, then sync and SHA-256", func(folder string) (sample, error) { return byNginx(folder, s, l, true) }},
		{"VersityGW, S3 PUT with SHA-256", func(folder string) (sample, error) { return byVersity(folder, l) }},
		{"gRPC alone, nothing kept", func(folder string) (sample, error) { return byBare(folder, s, l) }},
	})
}

// text measures one sender of 1 GiB of log lines, which Muster's clients compress chunk by chunk: on loopback, and over
// a link of 1 Gbit/s in each direction.
func text(s settings) (string, error) {
	l := s.large()
	l.text = true
	var tables []string
	for _, linked := range []bool{false, true} {
		l.linked = linked
		where := "loopback"
		if linked {
			where = "a link of 1 Gbit/s"
		}
		table, err := compare(s, sizeText(l)+" of log lines over "+where+", mutual TLS; Muster by gRPC with zstd chunks", l, []side{
			{"Muster", func(folder string) (sample, error) { return byGRPC(folder, s, l) }},
			{"nginx DAV PUT", func(folder string) (sample, error) { return byNginx(folder, s, l, false) }},
		})
		if err != nil {
			return "", err
		}
		tables = append(tables, table)
	}
	return strings.Join(tables, "\n"), nil
}

// small measures 4 KiB results over persistent connections.
func small(s settings) (string, error) {
	l := s.small(smalls)
	return compare(s, fmt.Sprintf("%d results of 4 KiB from %d senders, persistent connections, by gRPC", l.count, senders), l, []side{
		{"Muster", func(folder string) (sample, error) { return byGRPC(folder, s, l) }},
		{"nginx DAV PUT", func(folder string) (sample, error) { return byNginx(folder, s, l, false) }},
		{"etcd", func(folder string) (sample, error) { return byEtcd(folder, l) }},
		{"gRPC alone, nothing kept", func(folder string) (sample, error) { return byBare(folder, s, l) }},
	})
}

// legacyBulk measures 1 GiB by PUT, as old sidecars send it: a new connection, and one HTTP chunk.
func legacyBulk(s settings) (string, error) {
	return compareLegacy(s, sizeText(s.large())+", incompressible, by legacy PUT, one HTTP chunk", sending{load: s.large(), fresh: true})
}

// legacySmall measures 4 KiB results by PUT over persistent connections.
func legacySmall(s settings) (string, error) {
	l := s.small(smalls)
	return compareLegacy(s, fmt.Sprintf("%d results of 4 KiB from %d senders, by legacy PUT, persistent connections", l.count, senders),
		sending{load: l})
}

// legacyNew measures the same with a new connection for each result, as old sidecars open it.
func legacyNew(s settings) (string, error) {
	l := s.small(fresh)
	return compareLegacy(s, fmt.Sprintf("%d results of 4 KiB from %d senders, by legacy PUT, a new connection each", l.count, senders),
		sending{load: l, fresh: true})
}

// large returns the load of one sender of 1 GiB at the scale of this measurement.
func (s settings) large() load {
	return load{size: int64(s.scaled(gib)), count: 1, senders: 1}
}

// small returns the load of many senders of 4 KiB each at the scale of this measurement.
func (s settings) small(count int) load {
	return load{size: smallSize, count: int64(s.scaled(count)), senders: senders}
}

func sizeText(l load) string { return mib(l.size) }

func compareLegacy(s settings, title string, way sending) (string, error) {
	way.protocol, way.chunked = "put", true
	return compare(s, title, way.load, []side{
		{"Muster", func(folder string) (sample, error) { return byLegacy(folder, way) }},
		{"nginx DAV PUT", func(folder string) (sample, error) { return byNginxPut(folder, way) }},
		{"plain aggregator", func(folder string) (sample, error) { return byPlainAggregator(folder, way) }},
	})
}

// compare measures the sides in turn, and returns a table with a column for each.
func compare(s settings, title string, l load, sides []side) (string, error) {
	if s.sides > 0 {
		sides = sides[:min(s.sides, len(sides))]
	}
	samples, err := alternate(s, sides)
	if err != nil {
		return "", err
	}
	unit, units, rateName := "result", float64(l.count), "results/s"
	scale, cpuName := 1e6, "us"
	if l.size > smallSize {
		unit, units, rateName = "GB", float64(l.count*l.size)/1e9, "MB/s"
		scale, cpuName = 1, "s"
	}
	rate := func(one sample) float64 { return units / one.seconds }
	if unit == "GB" {
		rate = func(one sample) float64 { return units * 1000 / one.seconds }
	}
	var out strings.Builder
	fmt.Fprintf(&out, "**%s** (medians of %d; the ratios are those of %s to the row)\n\n", title, s.repeat, sides[0].name)
	fmt.Fprintf(&out, "| | %s | range | ratio | server CPU %s per %s | ratio | client CPU %s per %s | peak memory | p50 / p99, ms |\n|---|---|---|---|---|---|---|---|---|\n",
		rateName, cpuName, unit, cpuName, unit)
	first, ours := medianCPU(samples[0]), rate(median(samples[0]))
	for i, side := range sides {
		one := median(samples[i])
		cpu := medianCPU(samples[i])
		fmt.Fprintf(&out, "| %s | %.0f | %s | %.2f | %.2f%s | %.2f | %.2f | %s | %.1f / %.1f |\n", side.name, rate(one), spread(samples[i], rate), ours/rate(one),
			cpu.Seconds()*scale/units, parts(samples[i], scale/units), first.Seconds()/cpu.Seconds(), one.client.Seconds()*scale/units, mib(one.peak), one.p50, one.p99)
	}
	return out.String(), nil
}

// parts names the servers of one side with the median CPU time of each, if there are several programs.
func parts(samples []sample, scale float64) string {
	var texts []string
	for i, first := range samples[0].parts {
		if samples[0].parts[0].name == first.name && i > 0 {
			return "" // workers of one program
		}
		var all []time.Duration
		for _, one := range samples {
			all = append(all, one.parts[i].cpu)
		}
		slices.Sort(all)
		texts = append(texts, fmt.Sprintf("%s %.2f", strings.TrimPrefix(first.name, "muster-"), all[len(all)/2].Seconds()*scale))
	}
	if len(texts) < 2 {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

// load configures the senders.
type load struct {
	size, count int64
	senders     int
	text        bool // bodies of log lines
	linked      bool // over a link of 1 Gbit/s
}

func (l load) flags() []string {
	flags := []string{"--size=" + strconv.FormatInt(l.size, 10), "--count=" + strconv.FormatInt(l.count, 10),
		"--senders=" + strconv.Itoa(l.senders)}
	if l.text {
		flags = append(flags, "--text")
	}
	return flags
}

// over returns the address at which clients reach a server, and a function that closes the link to it.
func (l load) over(address string) (reached string, end func() error, err error) {
	if !l.linked {
		return address, func() error { return nil }, nil
	}
	link, err := fleet.NewLink(nil, "127.0.0.1:0", address)
	if err != nil {
		return "", nil, err
	}
	link.Slow(0, gigabit)
	return link.Address, link.Close, nil
}

// byGRPC starts a fresh fleet and sends the load to it.
func byGRPC(folder string, s settings, l load) (one sample, err error) {
	f, credential, err := planned(folder, l.count)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	server, err := f.Process(fleet.Aggregator)
	if err != nil {
		return one, err
	}
	target, end, err := l.over(credential.GRPCTargets[0])
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, end()) }()
	sender, err := grpcSender(f, s, credential, l)
	if err != nil {
		return one, err
	}
	sender.Args = append(sender.Args, "--target="+target)
	return measured([]fleet.Process{server}, sender)
}

func grpcSender(f *fleet.Fleet, s settings, credential *fleet.Credential, l load) (*exec.Cmd, error) {
	operator, err := f.Operator()
	if err != nil {
		return nil, err
	}
	return exec.Command(program(s, "grpc_load"), append(l.flags(), "--credential="+credential.File, "--fleet="+operator.Fleet)...), nil
}

// byLegacy starts a fresh fleet and sends the load to the listener for legacy clients.
func byLegacy(folder string, way sending) (one sample, err error) {
	f, credential, err := planned(folder, way.load.count)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var servers []fleet.Process
	for _, name := range []string{fleet.Aggregator, fleet.Gateway} {
		server, err := f.Process(name)
		if err != nil {
			return one, err
		}
		servers = append(servers, server)
	}
	sender, err := way.legacyCommand(f, credential)
	if err != nil {
		return one, err
	}
	return measured(servers, sender)
}

// byNginxPut starts a fresh nginx and sends the load to it as old sidecars do.
func byNginxPut(folder string, way sending) (one sample, err error) {
	return withNginx(folder, func(server *nginx, processes []fleet.Process) (sample, error) {
		way.url = server.url + "/result-%d"
		way.useFolder(folder)
		sender, err := way.command()
		if err != nil {
			return sample{}, err
		}
		return measured(processes, sender)
	})
}

// byNginx starts a fresh nginx and sends the load to it. `careful`: then makes the files durable and computes their
// SHA-256, as a careful user does.
func byNginx(folder string, s settings, l load, careful bool) (one sample, err error) {
	return withNginx(folder, func(server *nginx, processes []fleet.Process) (sample, error) {
		target, end, err := l.over(strings.TrimPrefix(server.url, "https://"))
		if err != nil {
			return sample{}, err
		}
		one, err := measured(processes, exec.Command(program(s, "put_load"), append(l.flags(),
			"--url=https://"+target+"/result-%d", "--ca="+filepath.Join(folder, "ca.pem"),
			"--cert="+filepath.Join(folder, "client.pem"), "--key="+filepath.Join(folder, "client.key"))...))
		if err = errors.Join(err, end()); err != nil || !careful {
			return one, err
		}
		begin := time.Now()
		check := exec.Command("sh", "-c", "sync --data \"$1\"/* && sync \"$1\" && openssl dgst -sha256 \"$1\"/*", "sh", filepath.Join(folder, "data"))
		if text, err := check.CombinedOutput(); err != nil {
			return one, fmt.Errorf("%w: %s", err, text)
		}
		one.seconds += time.Since(begin).Seconds()
		one.cpu += check.ProcessState.UserTime() + check.ProcessState.SystemTime()
		return one, nil
	})
}

func withNginx(folder string, use func(*nginx, []fleet.Process) (sample, error)) (one sample, err error) {
	server, err := startNginx(folder)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	processes, err := server.processes()
	if err != nil {
		return one, err
	}
	return use(server, processes)
}

// touched is more than the largest load of a comparison writes.
const touched = 1536 << 20

// touchMemory uses memory and frees it. A virtual machine returns memory that is free for a while to its host, and the
// next program that writes files would pay for getting it again.
func touchMemory() error {
	memory, err := syscall.Mmap(-1, 0, touched, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("touch %d bytes of memory: %w", touched, err)
	}
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	return syscall.Munmap(memory)
}

// measured runs a load sender and measures the servers meanwhile.
func measured(servers []fleet.Process, sender *exec.Cmd) (one sample, err error) {
	if err := touchMemory(); err != nil {
		return one, err
	}
	var before []time.Duration
	for _, server := range servers {
		before = append(before, server.CPU())
		if err := server.ResetPeak(); err != nil {
			return one, err
		}
	}
	out, err := sender.Output()
	var a answer
	if jsonErr := json.Unmarshal(out, &a); jsonErr != nil || a.Failed > 0 {
		return one, fmt.Errorf("%s: %d failed: %s %w", sender.Path, a.Failed, a.FirstError, errors.Join(err, jsonErr))
	}
	one = sample{seconds: a.Seconds, p50: a.P50, p99: a.P99,
		client: sender.ProcessState.UserTime() + sender.ProcessState.SystemTime()}
	for i, server := range servers {
		cpu := server.CPU() - before[i]
		one.cpu += cpu
		one.peak += server.PeakMemory()
		one.parts = append(one.parts, part{server.Name, cpu})
	}
	return one, nil
}

const loadPlugin = "sonobuoy-config: {driver: DaemonSet, plugin-name: load, result-format: raw}\n" +
	"spec: {name: plugin, image: 'example/load:v1'}\n"

// planned starts a fleet with a run for nodes node-0, node-1, ..., and one more node that keeps the run open; the
// credential is valid for any of them.
func planned(folder string, nodes int64) (*fleet.Fleet, *fleet.Credential, error) {
	f, err := fleet.New(folder)
	if err != nil {
		return nil, nil, err
	}
	credential, err := plan(f, nodes)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, credential, nil
}

// plan creates a run with one more node than senders, which keeps it open.
func plan(f *fleet.Fleet, nodes int64) (*fleet.Credential, error) {
	if err := f.Up(); err != nil {
		return nil, err
	}
	operator, err := f.Operator()
	if err != nil {
		return nil, err
	}
	connection, err := operator.GRPC(0)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	request := &musterv1.CreateRunRequest{Title: "benchmark", Plugins: []string{loadPlugin}, Nodes: []string{"never"}}
	for i := range nodes {
		request.Nodes = append(request.Nodes, fmt.Sprintf("node-%d", i))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run, err := musterv1.NewRunServiceClient(connection).CreateRun(ctx, request)
	if err != nil {
		return nil, err
	}
	return f.Export(run.Id, "load", "")
}
