package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.example/testing/fleet"
)

const (
	relayCount     = 4
	maxSeconds     = 2.0
	maxUpstream    = 10_000 // bytes per second of an idle relay
	outputNodes    = 1_000
	outputBytes    = 100 << 20
	idleFor        = time.Minute
	statementEvery = 30 * time.Minute
	startsSettled  = 2 * time.Second // after a relay has started: its first memory is not caused by nodes
	betweenRuns    = 3 * time.Second // each is measured alone: the work of the previous run has ended
	allAttachedFor = 10 * time.Minute
)

// relay measures remote runs on many nodes attached to relays of the root relay, the cost of idle nodes, output, and
// the reattachment of nodes after relays were killed.
func relay(s settings) (table string, err error) {
	f, err := startFleet(s.folder)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := &bench{settings: s, fleet: f}
	defer func() { b.stop() }()
	if err := b.start(); err != nil {
		return "", err
	}
	fmt.Fprintf(&b.out, "**%d nodes attached to %d relays of the root relay, mutual TLS; load and relays share the machine**\n\n",
		s.agents, relayCount)
	fmt.Fprintf(&b.out, "| | figure | bar | ratio |\n|---|---|---|---|\n")
	for _, measure := range []func() error{b.output, b.attachAll, b.idle, b.runs, b.killOne, b.killAll} {
		if err := measure(); err != nil {
			return b.out.String(), errors.Join(err, errors.New("measured so far:\n"+b.out.String()))
		}
	}
	b.processes()
	return b.out.String(), nil
}

// bench is a fleet with relays and their nodes.
type bench struct {
	settings
	fleet  *fleet.Fleet
	relays []*childRelay
	nodes  *agents
	client *jobClient
	out    strings.Builder
	usage  []usage // of killed processes
}

// usage is the consumption of a process until it ended.
type usage struct {
	name string
	cpu  time.Duration
	peak int64
}

// childRelay is a relay that joined.
type childRelay struct {
	name    string
	folder  string
	address string
	config  string
	running *fleet.RunningProgram
	empty   int64 // its memory without nodes
}

func (b *bench) start() error {
	for i := range relayCount {
		r, err := b.joinRelay(fmt.Sprintf("r%d", i+1))
		if err != nil {
			return err
		}
		b.relays = append(b.relays, r)
	}
	var err error
	if b.client, err = newJobClient(b.fleet); err != nil {
		return err
	}
	return b.startRelays()
}

// startRelays starts all relays, without nodes.
func (b *bench) startRelays() error {
	for _, r := range b.relays {
		if err := b.startRelay(r); err != nil {
			return err
		}
	}
	if err := b.client.awaitAttached(relayCount); err != nil {
		return err
	}
	time.Sleep(startsSettled)
	for _, r := range b.relays {
		var err error
		if r.empty, err = memoryNow(r.running.Process); err != nil {
			return err
		}
	}
	return nil
}

// endRelays kills some relays, and records their consumption.
func (b *bench) endRelays(relays []*childRelay) {
	for _, r := range relays {
		b.usage = append(b.usage, usage{r.name + " until it was killed", r.running.CPU(), r.running.PeakMemory()})
	}
	for _, r := range relays {
		r.running.End()
	}
}

func (b *bench) joinRelay(name string) (*childRelay, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	r := &childRelay{name: name, folder: filepath.Join(b.fleet.Home, name), address: fmt.Sprintf("127.0.0.1:%d", port)}
	r.config = r.folder + ".yaml"
	token := r.folder + ".token"
	if _, err := b.fleet.Muster("token", "create", "--relay", name, "-o", token); err != nil {
		return nil, err
	}
	if _, err := b.fleet.Muster("relay", "join", "--token-file", token, "--dir", r.folder, "--advertise", r.address); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("state_folder: %s\nlisten: %s\nadvertise: [%q]\naddresses_file: %s.addresses.json\n",
		r.folder, r.address, r.address, r.folder)
	return r, os.WriteFile(r.config, []byte(text), 0o600)
}

func (b *bench) startRelay(r *childRelay) error {
	var err error
	r.running, err = b.fleet.Start(nil, nil, fleet.Relay, "--config", r.config)
	return err
}

func (b *bench) stop() {
	if b.nodes != nil {
		b.nodes.stop()
	}
	if b.client != nil {
		b.client.close()
	}
	for _, r := range b.relays {
		if r.running != nil {
			r.running.End()
		}
	}
}

func (b *bench) row(what, figure, bar string, ratio float64) {
	if bar == "" {
		fmt.Fprintf(&b.out, "| %s | %s | | |\n", what, figure)
		return
	}
	fmt.Fprintf(&b.out, "| %s | %s | %s | %.2f |\n", what, figure, bar, ratio)
}

// attach starts nodes, and returns how long it took until the root relay knew all of them.
func (b *bench) attach(count int) (loadEvent, error) {
	var targets []string
	for _, r := range b.relays {
		targets = append(targets, r.address)
	}
	operator, err := b.fleet.Operator()
	if err != nil {
		return loadEvent{}, err
	}
	b.nodes, err = startLoad(b.settings, "attach_load", "--home="+b.fleet.Home, "--fleet="+operator.Fleet,
		"--targets="+strings.Join(targets, ","), "--nodes="+strconv.Itoa(count),
		"--connect_rate="+strconv.Itoa(connectRate), "--command_ca="+filepath.Join(b.relays[0].folder, "command-ca.pem"))
	if err != nil {
		return loadEvent{}, err
	}
	all, err := b.nodes.await("all connected")
	if err != nil {
		return loadEvent{}, err
	}
	return all, b.client.awaitAttached(relayCount + count)
}

func (b *bench) attachAll() error {
	all, err := b.attach(b.agents)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("time until all are attached (%d new ones a second)", connectRate), fmt.Sprintf("%.0f s", all.Seconds), "", 0)
	b.row("attempts that timed out in this time", fmt.Sprint(all.TimedOut), "", 0)
	return nil
}

// idle measures the cost of idle nodes. The traffic of a relay during their attachment is mostly their attach
// statements, of which each sends a new one every half hour.
func (b *bench) idle() error {
	var before []int64
	var coming int64
	for _, r := range b.relays {
		bytes, err := upstreamBytes(r.running.PID, b.client.target)
		if err != nil {
			return err
		}
		before = append(before, bytes)
		coming = max(coming, bytes)
	}
	begin := time.Now()
	time.Sleep(idleFor)
	seconds := time.Since(begin).Seconds()
	var memory, perSecond int64
	for i, r := range b.relays {
		now, err := memoryNow(r.running.Process)
		if err != nil {
			return err
		}
		memory += now - r.empty
		bytes, err := upstreamBytes(r.running.PID, b.client.target)
		if err != nil {
			return err
		}
		perSecond = max(perSecond, int64(float64(bytes-before[i])/seconds))
	}
	each := memory / int64(b.agents)
	b.row("memory of a relay per idle node", fmt.Sprintf("%d KiB", each>>10), "126 KiB", float64(each)/maxPerAgent)
	b.row(fmt.Sprintf("upstream traffic of an idle relay with %d nodes, both directions, the busiest of four", b.agents/relayCount),
		fmt.Sprintf("%d B/s", perSecond), "10 KB/s", float64(perSecond)/maxUpstream)
	perSecond += coming / int64(statementEvery.Seconds())
	b.row(fmt.Sprintf("the same including the attach statements, %d KB every %v", coming/1000, statementEvery),
		fmt.Sprintf("%d B/s", perSecond), "10 KB/s", float64(perSecond)/maxUpstream)
	return nil
}

// runs measures remote runs without output on all nodes.
func (b *bench) runs() error {
	for _, of := range []struct {
		percent int
		what    string
	}{{b.check, fmt.Sprintf("%d %% of the nodes verify the signature", b.check)}, {100, "all nodes verify"}} {
		if _, err := b.runAll(of.percent); err != nil { // the warm-up
			return err
		}
		var times []float64
		for range b.times {
			time.Sleep(betweenRuns)
			one, err := b.runAll(of.percent)
			if err != nil {
				return err
			}
			times = append(times, one)
		}
		slices.Sort(times)
		p50, p99 := times[len(times)/2], times[min(len(times)-1, len(times)*99/100)]
		b.row(fmt.Sprintf("remote run, submitted to the last final record at the client, %s, p50 of %d", of.what, b.times),
			fmt.Sprintf("%.2f s", p50), "", 0)
		b.row("p99 (the slowest)", fmt.Sprintf("%.2f s", p99), "2 s", p99/maxSeconds)
	}
	return nil
}

func (b *bench) runAll(percent int) (float64, error) {
	job, err := b.client.submit("--all", "0", strconv.Itoa(percent))
	if err != nil {
		return 0, err
	}
	seen, err := b.client.watch(job, 0)
	if err != nil {
		return 0, err
	}
	if seen.succeeded != b.agents {
		return 0, fmt.Errorf("job %s: %d of %d nodes answered", job, seen.succeeded, b.agents)
	}
	return seen.seconds, nil
}

// output lets nodes print and compares every byte, before the other nodes attach, because those have a cost at rest.
func (b *bench) output() error {
	count := min(outputNodes, b.agents)
	if _, err := b.attach(count); err != nil {
		return err
	}
	var names []string
	for i := range count {
		names = append(names, nodeName(i))
	}
	servers, err := b.servers()
	if err != nil {
		return err
	}
	for _, server := range servers {
		if err := server.ResetPeak(); err != nil {
			return err
		}
	}
	each := int64(outputBytes / count)
	job, err := b.client.submit("--node="+strings.Join(names, ","), strconv.FormatInt(each, 10), strconv.Itoa(b.check))
	if err != nil {
		return err
	}
	seen, err := b.client.watch(job, each)
	if err != nil {
		return err
	}
	if seen.succeeded != count {
		return fmt.Errorf("job %s: %d of %d nodes succeeded with all their output", job, seen.succeeded, count)
	}
	what := fmt.Sprintf("%d MB of output of %d nodes through two hops", int64(count)*each/1_000_000, count)
	b.row(what+", all bytes compared", fmt.Sprintf("%.1f s", seen.seconds), "", 0)
	for _, server := range servers {
		b.row("peak memory of "+server.Name+" meanwhile", mib(server.PeakMemory()), "256 MiB",
			float64(server.PeakMemory())/mostMemory)
	}
	b.nodes.stop()
	b.endRelays(b.relays)
	return b.startRelays()
}

func (b *bench) killOne() error { return b.kill(b.relays[:1]) }
func (b *bench) killAll() error { return b.kill(b.relays) }

// kill kills relays, starts them again, and waits until their nodes are reattached.
func (b *bench) kill(relays []*childRelay) error {
	b.endRelays(relays)
	for _, r := range relays {
		if err := b.startRelay(r); err != nil {
			return err
		}
	}
	back, err := b.nodes.await("all connected")
	if err != nil {
		return err
	}
	if err := b.client.awaitAttached(relayCount + b.agents); err != nil {
		return err
	}
	what := fmt.Sprintf("time until %d nodes are reattached after kill -9 of %d of the relays", b.agents*len(relays)/relayCount, len(relays))
	b.row(what, fmt.Sprintf("%.0f s", back.Seconds), fmt.Sprintf("%.0f s", backWithin.Seconds()), back.Seconds/backWithin.Seconds())
	b.row("handshakes that timed out in this time", fmt.Sprint(back.TimedOut), "0", back.TimedOut)
	b.row("attempts that failed otherwise, while a relay listened", fmt.Sprint(back.Other), "", 0)
	if _, err := b.runAll(b.check); err != nil {
		return fmt.Errorf("after that: %w", err)
	}
	return nil
}

// servers returns the relays and the load with distinct names.
func (b *bench) servers() ([]fleet.Process, error) {
	root, err := b.fleet.Process(fleet.Relay, b.client.rootArguments...)
	if err != nil {
		return nil, err
	}
	root.Name = "the root relay"
	all := []fleet.Process{root}
	for _, r := range b.relays {
		process := r.running.Process
		process.Name = "relay " + r.name
		all = append(all, process)
	}
	return append(all, fleet.Process{PID: b.nodes.command.Process.Pid, Name: "the load (all nodes)"}), nil
}

// processes adds the consumption of each process since its start.
func (b *bench) processes() {
	servers, err := b.servers()
	if err != nil {
		fmt.Fprintf(&b.out, "\n%v\n", err)
		return
	}
	for _, name := range []string{fleet.Aggregator, fleet.Status, fleet.Gateway} {
		if server, err := b.fleet.Process(name); err == nil {
			servers = append(servers, server)
		}
	}
	for _, server := range servers {
		b.usage = append(b.usage, usage{server.Name, server.CPU(), server.PeakMemory()})
	}
	fmt.Fprintf(&b.out, "\n| process | CPU s | peak memory |\n|---|---|---|\n")
	for _, one := range b.usage {
		fmt.Fprintf(&b.out, "| %s | %.1f | %s |\n", one.name, one.cpu.Seconds(), mib(one.peak))
	}
}
