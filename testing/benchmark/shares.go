package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster.example/testing/fleet"
)

const (
	sharedBytes = 100 << 20
	arrivesIn   = 2 * time.Minute
)

// shares measures a file from a node of one branch to a node of another; each relay on the route stores the whole file:
// the source's relay, the root relay, a relay in the target's branch, and a fourth, where it remains.
func shares(s settings) (table string, err error) {
	f, err := startFleet(s.folder)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := &bench{settings: s, fleet: f}
	defer func() { b.stop() }()
	var agents []*fleet.RunningProgram
	defer func() {
		for _, agent := range agents {
			agent.End()
		}
	}()
	var homes []string
	for _, one := range []struct{ relay, parent, node string }{{"east", "", "n1"}, {"west", "", ""}, {"far", "west", "n2"}} {
		if err := b.chainRelay(one.relay, one.parent); err != nil {
			return "", err
		}
		if one.node == "" {
			continue
		}
		home, agent, err := b.joinNode(one.node, b.relays[len(b.relays)-1])
		if err != nil {
			return "", err
		}
		homes, agents = append(homes, home), append(agents, agent)
	}
	var left, arrived []float64
	clients := ownCPU() + cpuOf(agents)
	for i := range s.repeat {
		first, all, err := b.shareOnce(homes[0], fmt.Sprintf("f%d", i))
		if err != nil {
			return "", err
		}
		left, arrived = append(left, first), append(arrived, all)
	}
	slices.Sort(left)
	slices.Sort(arrived)
	fmt.Fprintf(&b.out, "**A shared file of %d MiB over three hops between relays, mutual TLS, stored and synced by four** (median of %d, range)\n\n",
		sharedBytes>>20, s.repeat)
	fmt.Fprintf(&b.out, "| | seconds |\n|---|---|\n")
	for _, row := range []struct {
		what  string
		times []float64
	}{{"the first relay has the whole file; the source may disconnect", left}, {"the target's relay has the file", arrived}} {
		fmt.Fprintf(&b.out, "| %s | %.1f (%.1f-%.1f) |\n", row.what, row.times[len(row.times)/2], row.times[0], row.times[len(row.times)-1])
	}
	for _, r := range b.relays {
		fmt.Fprintf(&b.out, "| relay %s: processor time per file, peak memory | %.1f, %s |\n", r.name,
			r.running.CPU().Seconds()/float64(s.repeat), mib(r.running.PeakMemory()))
	}
	clients = ownCPU() + cpuOf(agents) - clients
	fmt.Fprintf(&b.out, "| clients (both agents, `muster share` and `muster shared show`, this program): processor time per file | %.1f |\n",
		clients.Seconds()/float64(s.repeat))
	return b.out.String(), nil
}

// chainRelay joins and starts a relay with a relay or the root relay as its parent.
func (b *bench) chainRelay(name, parentName string) error {
	r, err := b.joinRelay(name)
	if err != nil {
		return err
	}
	for _, parent := range b.relays {
		if parent.name != parentName {
			continue
		}
		text, err := os.ReadFile(r.config)
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.config, append(text, []byte("parents: ["+parent.address+"]\n")...), 0o600); err != nil {
			return err
		}
	}
	b.relays = append(b.relays, r)
	if err := b.startRelay(r); err != nil {
		return err
	}
	return b.awaitAttached(name)
}

// joinNode joins a node that knows one relay, and starts its agent, with these variables.
func (b *bench) joinNode(name string, r *childRelay, environment ...string) (home string, agent *fleet.RunningProgram, err error) {
	home = filepath.Join(b.fleet.Home, "machine-"+name)
	token := home + ".token"
	if _, err := b.fleet.Muster("token", "create", "--node", name, "-o", token); err != nil {
		return "", nil, err
	}
	if _, err := b.fleet.Muster("node", "join", "--token-file", token, "--dir", home); err != nil {
		return "", nil, err
	}
	file := filepath.Join(home, "node.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	member := map[string]any{}
	if err := json.Unmarshal(text, &member); err != nil {
		return "", nil, err
	}
	member["relay_targets"] = []string{r.address}
	if text, err = json.Marshal(member); err != nil {
		return "", nil, err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", nil, err
	}
	if agent, err = b.fleet.Start(nil, environment, fleet.Muster, "agent", "attach", "--dir", home); err != nil {
		return "", nil, err
	}
	return home, agent, b.awaitAttached(name)
}

func (b *bench) awaitAttached(name string) error {
	return fleet.Until(arrivesIn, name+" is attached", func() bool {
		var list []struct {
			Name     string
			Attached bool
		}
		if b.fleet.JSON(&list, "nodes", "--json") != nil {
			return false
		}
		for _, one := range list {
			if one.Name == name {
				return one.Attached
			}
		}
		return false
	})
}

// shareOnce shares a new file with n2; it returns the seconds until the first relay has it, and until the relay of n2
// has it.
func (b *bench) shareOnce(home, id string) (left, arrived float64, err error) {
	content := make([]byte, sharedBytes)
	_, _ = rand.Read(content)
	path := filepath.Join(b.fleet.Home, id)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return 0, 0, err
	}
	defer os.Remove(path)
	begin := time.Now()
	if _, err := b.fleet.Muster("share", path, "--to", "n2", "--dir", home, "--wait", "1ms"); err != nil {
		return 0, 0, err
	}
	left = time.Since(begin).Seconds()
	err = fleet.Until(arrivesIn, "the file has arrived", func() bool {
		out, err := b.fleet.Muster("shared", "show", "--to", "n2", "--id", id, "--dir", home, "--json")
		return err == nil && strings.Contains(out, `"delivered"`)
	})
	return left, time.Since(begin).Seconds(), err
}
