package e2e

import (
	"fmt"
	"math/rand"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

const (
	faultStep = 17      // bytes: the unit of the positions of faults
	walked    = 8 << 10 // the bytes of a connection in which faults happen: its handshake and a small result
	small     = 4 << 10 // the size of such a result
)

// walk returns a fault of this kind at multiples of faultStep, spread evenly over the first bytes of connections.
func walk(kind fleet.FaultKind, way fleet.Direction, count int) (faults []fleet.Fault) {
	for i := range count {
		faults = append(faults, fleet.Fault{Kind: kind, Way: way, After: faultStep * int64(1+i*walked/faultStep/count)})
	}
	return faults
}

// linkedFleet is a fleet with a link between each two programs.
type linkedFleet struct {
	*fleet.Fleet
	gateway, upstream, aggregator, relay, parent *fleet.Link      // client-gateway, gateway-aggregator, agent-aggregator, ...
	run, released                                string           // the second: the file that releases the results of attached agents
	sent                                         map[string]*sent // by node
}

// newLinkedFleet creates a run for these senders: "put" at the gateway, "submit" at the aggregator, "relay" at a relay.
func newLinkedFleet(t *testing.T, random *rand.Rand, senders map[string]int) *linkedFleet {
	t.Helper()
	l := &linkedFleet{Fleet: up(t), sent: map[string]*sent{}}
	link := func(to string) *fleet.Link { return linkOn(t, nil, "127.0.0.1:0", to) }
	operator := must(l.Operator())(t)
	l.aggregator, l.upstream, l.parent = link(operator.Aggregator[0]), link(operator.Aggregator[0]), link(operator.Relay[0])
	l.linkGateway(t, operator.Aggregator[0])
	_, address := localRelay(t, l.Fleet, "r1", l.parent.Address)
	l.relay = link(address)
	var nodes []string
	for kind, count := range senders {
		for i := range count {
			name := fmt.Sprintf("%s%d", kind, i)
			nodes = append(nodes, name)
			if kind == "relay" {
				n := joinAt(t, l.Fleet, name, l.relay.Address)
				n.agent.End()
				check(t, os.WriteFile(filepath.Join(n.folder(), "policy.yaml"), []byte(collectPolicy), 0o600))
				n.start(t)
			}
		}
	}
	folder := t.TempDir()
	l.released = filepath.Join(folder, "go")
	l.run = run(t, l.Fleet, []string{execPlugin("logs", "DaemonSet", fmt.Sprintf(`until [ -e "%[1]s/go" ]; do sleep 0.1; done; `+
		`cp "%[1]s/$NODE_NAME" "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`, folder))}, nodes...)
	for _, node := range nodes {
		s := newSent(t, l.Fleet, random, l.run, node, small)
		check(t, os.Link(s.file, filepath.Join(folder, node)))
		l.sent[node] = s
	}
	credential := must(l.Export(l.run, "logs", "put0"))(t)
	l.gateway = link(must(url.Parse(credential.AggregatorURL))(t).Host)
	return l
}

// linkGateway lets the gateway reach the aggregator over the link. `muster up` would write the address again, so the
// gateway is killed.
func (l *linkedFleet) linkGateway(t *testing.T, aggregator string) {
	t.Helper()
	file := filepath.Join(l.Home, "config", "gateway.yaml")
	text := string(must(os.ReadFile(file))(t))
	linked := strings.Replace(text, `aggregator_targets: ["`+aggregator, `aggregator_targets: ["`+l.upstream.Address, 1)
	if linked == text {
		t.Fatalf("%s has no address of the aggregator", file)
	}
	check(t, os.WriteFile(file, []byte(linked), 0o600))
	must(l.Process(fleet.Gateway))(t).Kill()
	until(t, "the gateway uses the link", func() bool { return l.upstream.Passed(fleet.Up) > 0 })
}

// deliver releases the results of attached agents, delivers all others, and returns how each of these ended.
func (l *linkedFleet) deliver(t *testing.T, wait time.Duration) (ended []<-chan error) {
	t.Helper()
	check(t, os.WriteFile(l.released, nil, 0o600))
	for node, s := range l.sent {
		if strings.HasPrefix(node, "relay") {
			continue
		}
		credential, done := must(l.Export(l.run, "logs", node))(t), make(chan error, 1)
		ended = append(ended, done)
		if strings.HasPrefix(node, "submit") {
			credential.GRPCTargets = []string{l.aggregator.Address}
			file := must(l.WriteCredential("credential-"+node, credential))(t)
			go func() {
				_, err := l.Muster("submit", s.file, "--config", file)
				done <- err
			}()
			continue
		}
		client := must(credential.HTTP())(t)
		client.Timeout = wait
		go func() { done <- putUntilAccepted(client, "https://"+l.gateway.Address, s) }()
	}
	return ended
}

// Connections between each two programs are reset, changed or half-open, one after the other at multiples of 17 bytes:
// each result is committed once.
func TestFaultyLinksBetweenProgramsLoseNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind  fleet.FaultKind
		way   fleet.Direction
		delay time.Duration
		// The first client has no time limit, as old sidecars; a half-open connection keeps it waiting for ever.
		wait time.Duration
		// The number of faults of a link for which a program reconnects within seconds, and of others.
		many, few int
	}{
		"reset upstream":     {fleet.Reset, fleet.Up, 0, 0, 24, 6},
		"reset downstream":   {fleet.Reset, fleet.Down, 0, 0, 24, 6},
		"changed upstream":   {fleet.Flip, fleet.Up, 20 * time.Millisecond, 0, 24, 6},
		"changed downstream": {fleet.Flip, fleet.Down, 20 * time.Millisecond, 0, 24, 6},
		"silent upstream":    {fleet.Strand, fleet.Up, 0, 20 * time.Second, 4, 2},
		"silent downstream":  {fleet.Strand, fleet.Down, 0, 20 * time.Second, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLinkedFleet(t, seeded(t), map[string]int{"put": 6, "submit": 6, "relay": 3})
			links := map[string]*fleet.Link{"gateway": l.gateway, "upstream": l.upstream, "aggregator": l.aggregator,
				"relay": l.relay, "parent": l.parent}
			for name, link := range links {
				count := c.many
				if name == "relay" || name == "parent" { // they wait longer after each loss
					count = c.few
				}
				link.Slow(c.delay, 0)
				link.FaultNext(walk(c.kind, c.way, count)...)
				link.Cut() // long-lived streams connect again
			}
			for _, ended := range l.deliver(t, c.wait) {
				select {
				case err := <-ended:
					check(t, err)
				case <-time.After(crashSoon):
					t.Fatal("a delivery did not end")
				}
			}
			var all []*sent
			for _, s := range l.sent {
				all = append(all, s)
			}
			wantCommittedOnce(t, l.Fleet, l.run, all)
			wantSoundStore(t, l.Fleet, int64(len(all))+1, filepath.Join(l.Home, "relay", "spool"))
			for name, link := range links {
				t.Logf("%s: %d faults", name, link.Struck())
				if link.Struck() == 0 {
					t.Errorf("no connection of %s had a fault", name)
				}
			}
		})
	}
}

// The connection of a delivery is reset at every 17th byte, one after the other, and in the end at none.
func TestDeliverySurvivesResetAtEvery17thByte(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "put", "grpc")
	random, all := seeded(t), []*sent{}
	for _, node := range []string{"put", "grpc"} {
		s := newSent(t, f, random, id, node, small)
		all = append(all, s)
		credential := must(f.Export(id, "logs", node))(t)
		to := credential.GRPCTargets[0]
		if node == "put" {
			to = must(url.Parse(credential.AggregatorURL))(t).Host
		}
		l := linkOn(t, nil, "127.0.0.1:0", to)
		credential.GRPCTargets = []string{l.Address}
		client, content := must(credential.HTTP())(t), string(must(os.ReadFile(s.file))(t))
		deliver := func() error {
			if node == "put" {
				return putFile(client, "https://"+l.Address+"/api/v1/results/by-node/put/logs", s.file)
			}
			return submit(t, credential, id, "logs", node, content)
		}
		for after := int64(faultStep); ; after += faultStep {
			struck := l.Struck()
			l.FaultNext(fleet.Fault{Kind: fleet.Reset, Way: fleet.Up, After: after})
			err := deliver()
			if l.Struck() > struck {
				continue
			}
			if err != nil || after < small {
				t.Fatalf("%s, no reset before %d bytes: %v", node, after, err)
			}
			break
		}
		t.Logf("%s: %d connections were reset", node, l.Struck())
	}
	wantCommittedOnce(t, f, id, all)
	wantSoundStore(t, f, 3)
}
