package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	copyPlugin = "sonobuoy-config: {driver: DaemonSet, plugin-name: copy, result-format: raw}\n" +
		"spec: {name: plugin, command: [/bin/sh, -c], args: [%s]}\n"
	copyPolicy = "commands:\n  - argv: [/bin/sh, -c, \"*\"]\n    actions: [collect]\n"
)

// relayUploads measures the memory of the services while attached nodes deliver at the same time through one relay,
// which is attached to the root relay. Each node is a real agent, whose plugin links a common file, so that only the
// aggregator stores each result.
func relayUploads(s settings) (string, error) {
	if err := s.uploadSpace(80); err != nil {
		return "", err
	}
	return withFleet(s.disk, func(f *fleet.Fleet, folder string) (string, error) { return uploadThroughRelay(f, folder, s) })
}

func uploadThroughRelay(f *fleet.Fleet, folder string, s settings) (string, error) {
	root, err := f.Process(fleet.Relay) // before another relay runs
	if err != nil {
		return "", err
	}
	b := &bench{settings: s, fleet: f}
	defer func() { b.stop() }()
	relay, err := b.joinRelay("r1")
	if err != nil {
		return "", err
	}
	b.relays = append(b.relays, relay)
	if b.client, err = newJobClient(f); err != nil {
		return "", err
	}
	if err := b.startRelay(relay); err != nil {
		return "", err
	}
	if err := b.client.awaitAttached(1); err != nil {
		return "", err
	}
	file := filepath.Join(folder, "result")
	if err := writeNoise(file, s.uploadSize()); err != nil {
		return "", err
	}
	agents, err := startNodes(f, folder, "r1", s.uploads)
	defer func() {
		for _, agent := range agents {
			agent.End()
		}
	}()
	if err != nil {
		return "", err
	}
	if err := b.client.awaitAttached(1 + s.uploads); err != nil {
		return "", err
	}
	return uploadFromNodes(f, s, []fleet.Process{relay.running.Process, root}, agents, file)
}

// writeNoise writes a file that does not compress.
func writeNoise(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(file, rand.New(rand.NewSource(1)), size)
	return errors.Join(err, file.Close())
}

// startNodes joins nodes that attach to a relay, and starts their agents.
func startNodes(f *fleet.Fleet, folder, parent string, count int) (agents []*fleet.RunningProgram, err error) {
	token := filepath.Join(folder, "nodes.token")
	if _, err := f.Muster("token", "create", "--count", fmt.Sprint(count), "--parent", parent, "-o", token); err != nil {
		return nil, err
	}
	for i := range count {
		home := filepath.Join(folder, fmt.Sprintf("node-%d", i))
		if _, err := f.Muster("node", "join", "--token-file", token, "--node", loadName(i), "--dir", home); err != nil {
			return agents, err
		}
		if err := os.WriteFile(filepath.Join(home, "policy.yaml"), []byte(copyPolicy), 0o600); err != nil {
			return agents, err
		}
		agent, err := f.Start(nil, nil, fleet.Muster, "agent", "attach", "--dir", home)
		if err != nil {
			return agents, err
		}
		agents = append(agents, agent)
	}
	return agents, nil
}

// uploadFromNodes creates a run for all nodes, and returns the figures once all have delivered.
func uploadFromNodes(f *fleet.Fleet, s settings, relays []fleet.Process, agents []*fleet.RunningProgram, file string) (string, error) {
	aggregator, err := f.Process(fleet.Aggregator)
	if err != nil {
		return "", err
	}
	processes := append(relays, aggregator)
	var before []time.Duration
	for _, process := range processes {
		before = append(before, process.CPU())
		if err := process.ResetPeak(); err != nil {
			return "", err
		}
	}
	command, err := json.Marshal(fmt.Sprintf("ln '%s' \"$RESULTS_DIR/f\" && echo \"$RESULTS_DIR/f\" > \"$RESULTS_DIR/done\"", file))
	if err != nil {
		return "", err
	}
	request := &musterv1.CreateRunRequest{Plugins: []string{fmt.Sprintf(copyPlugin, command)}}
	for i := range s.uploads {
		request.Nodes = append(request.Nodes, loadName(i))
	}
	clients := cpuOf(agents)
	begin := time.Now()
	run, err := runUntil(f, request, func(run *musterv1.Run) bool { return run.Counts.GetPending() == 0 }, nil)
	if err != nil {
		return "", err
	}
	took := time.Since(begin)
	if int(run.Counts.GetGenuine()) != s.uploads {
		return "", fmt.Errorf("%d of %d results are genuine", run.Counts.GetGenuine(), s.uploads)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "**%d uploads of %s at once, from attached nodes through a relay and the root relay: %.0f MB/s**\n\n", s.uploads,
		mib(s.uploadSize()), float64(s.uploads)*float64(s.uploadSize())/1e6/took.Seconds())
	fmt.Fprintf(&out, "| | peak memory | bar | ratio | CPU s |\n|---|---|---|---|---|\n")
	for i, name := range []string{"relay", "root relay", "aggregator"} {
		peak := processes[i].PeakMemory()
		fmt.Fprintf(&out, "| %s | %s | 256 MiB | %.2f | %.1f |\n", name, mib(peak), float64(peak)/mostMemory, (processes[i].CPU() - before[i]).Seconds())
	}
	fmt.Fprintf(&out, "| all agents (client) | | | | %.1f |\n", (cpuOf(agents) - clients).Seconds())
	return out.String(), nil
}

// cpuOf returns the CPU time of programs that are running.
func cpuOf(programs []*fleet.RunningProgram) (all time.Duration) {
	for _, one := range programs {
		all += one.CPU()
	}
	return all
}
