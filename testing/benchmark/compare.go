package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	gib       = 1 << 30
	smallSize = 4 << 10
	smalls    = 20_000
	senders   = 64
)

// bulk measures one sender of 1 GiB that does not compress.
func bulk(s settings) (string, error) {
	muster, nginx, err := compare(s, load{size: gib, count: 1, senders: 1})
	if err != nil {
		return "", err
	}
	rate := func(one sample) float64 { return gib / 1e6 / one.seconds }
	perGB := func(one sample) float64 { return one.cpu.Seconds() / (gib / 1e9) }
	return table("1 GiB, incompressible, mutual TLS; Muster by gRPC, durable and verified; nginx DAV PUT without fsync",
		muster, nginx, "MB/s", rate, "server CPU s per GB", perGB), nil
}

// small measures 4 KiB results over persistent connections.
func small(s settings) (string, error) {
	muster, nginx, err := compare(s, load{size: smallSize, count: smalls, senders: senders})
	if err != nil {
		return "", err
	}
	rate := func(one sample) float64 { return smalls / one.seconds }
	each := func(one sample) float64 { return float64(one.cpu.Microseconds()) / smalls }
	return table(fmt.Sprintf("%d results of 4 KiB from %d senders, persistent connections, mutual TLS", smalls, senders),
		muster, nginx, "results/s", rate, "server CPU us per result", each), nil
}

func table(title string, muster, nginx []sample, rateName string, rate func(sample) float64,
	cpuName string, cpu func(sample) float64) string {
	ours, theirs := median(muster), median(nginx)
	var out strings.Builder
	fmt.Fprintf(&out, "**%s** (median of %d, range)\n\n", title, len(muster))
	fmt.Fprintf(&out, "| | Muster | nginx | ratio |\n|---|---|---|---|\n")
	fmt.Fprintf(&out, "| %s | %.0f (%s) | %.0f (%s) | %.2f |\n", rateName, rate(ours), spread(muster, rate),
		rate(theirs), spread(nginx, rate), rate(ours)/rate(theirs))
	fmt.Fprintf(&out, "| %s | %.2f | %.2f | %.2f |\n", cpuName, cpu(ours), cpu(theirs), cpu(ours)/cpu(theirs))
	fmt.Fprintf(&out, "| server CPU s | %.2f | %.2f | |\n", ours.cpu.Seconds(), theirs.cpu.Seconds())
	fmt.Fprintf(&out, "| peak memory of the server | %s | %s | |\n", mib(ours.peak), mib(theirs.peak))
	fmt.Fprintf(&out, "| p50 / p99 of one request, ms | %.1f / %.1f | %.1f / %.1f | |\n", ours.p50, ours.p99, theirs.p50, theirs.p99)
	return out.String()
}

// load configures the senders.
type load struct {
	size, count int64
	senders     int
}

func (l load) flags() []string {
	return []string{"--size=" + strconv.FormatInt(l.size, 10), "--count=" + strconv.FormatInt(l.count, 10),
		"--senders=" + strconv.Itoa(l.senders)}
}

func compare(s settings, l load) (muster, nginx []sample, err error) {
	return alternate(s,
		func(folder string) (sample, error) { return byGRPC(s, folder, l) },
		func(folder string) (sample, error) { return byNginx(s, folder, l) })
}

// byGRPC starts a fresh fleet and sends the load to it.
func byGRPC(s settings, folder string, l load) (one sample, err error) {
	f, credential, err := planned(folder, l.count)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	operator, err := f.Operator()
	if err != nil {
		return one, err
	}
	server, err := f.Process(fleet.Aggregator)
	if err != nil {
		return one, err
	}
	return measured([]fleet.Process{server}, exec.Command(program(s, "grpc_load"),
		append(l.flags(), "--credential="+credential.File, "--fleet="+operator.Fleet)...))
}

// byNginx starts a fresh nginx and sends the load to it.
func byNginx(s settings, folder string, l load) (one sample, err error) {
	server, err := startNginx(folder)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	processes, err := server.processes()
	if err != nil {
		return one, err
	}
	return measured(processes, exec.Command(program(s, "put_load"), append(l.flags(),
		"--url="+server.url+"/result-%d", "--ca="+filepath.Join(folder, "ca.pem"),
		"--cert="+filepath.Join(folder, "client.pem"), "--key="+filepath.Join(folder, "client.key"))...))
}

// measured runs a load sender and measures the servers meanwhile.
func measured(servers []fleet.Process, sender *exec.Cmd) (one sample, err error) {
	var before time.Duration
	for _, server := range servers {
		before += server.CPU()
		if err := server.ResetPeak(); err != nil {
			return one, err
		}
	}
	out, err := sender.Output()
	var answer struct {
		Seconds    float64 `json:"seconds"`
		Failed     int64   `json:"failed"`
		FirstError string  `json:"first_error"`
		P50        float64 `json:"p50_ms"`
		P99        float64 `json:"p99_ms"`
	}
	if jsonErr := json.Unmarshal(out, &answer); jsonErr != nil || answer.Failed > 0 {
		return one, fmt.Errorf("%s: %d failed: %s %w", sender.Path, answer.Failed, answer.FirstError, errors.Join(err, jsonErr))
	}
	one = sample{seconds: answer.Seconds, cpu: -before, p50: answer.P50, p99: answer.P99}
	for _, server := range servers {
		one.cpu += server.CPU()
		one.peak += server.PeakMemory()
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
