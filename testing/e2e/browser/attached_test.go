package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster.example/testing/fleet"
)

// startRelay joins a relay, starts it, and returns when it is attached.
func (d deploying) startRelay(name string) *fleet.RunningProgram {
	d.t.Helper()
	token, folder := filepath.Join(d.t.TempDir(), "token"), d.t.TempDir()
	d.muster("token", "create", "-o", token, "--relay", name)
	d.muster("relay", "join", "--token-file", token, "--dir", folder, "--advertise", name+".example:7445", "--join-advertise", name+".example:7446")
	config := filepath.Join(folder, "relay.yaml")
	check(d.t, os.WriteFile(config, fmt.Appendf(nil, "state_folder: %s\nlisten: 127.0.0.1:0\njoin_listen: 127.0.0.1:0\ninterval: 2s\n", folder), 0o600))
	relay, err := d.Start(nil, nil, fleet.Relay, "--config", config)
	check(d.t, err)
	d.t.Cleanup(func() {
		relay.End()
		if d.t.Failed() {
			d.t.Logf("relay %s: %s", name, relay.Output)
		}
	})
	check(d.t, fleet.Until(soon, name+" is attached", func() bool { return d.isAttached(name) }))
	return relay
}

// listed waits until the list has these nodes alone.
func listed(p *page, names string) {
	p.t.Helper()
	p.until("the list has "+names, fmt.Sprintf(`[...document.querySelectorAll("tr[data-node]")].map((row) => row.dataset.node).join(" ") === %q`, names))
}

// The pages show which nodes and relays are attached, to which parent and since when.
func TestDashboardShowsAttachments(t *testing.T) {
	t.Parallel()
	docker, err := fleet.StartDocker()
	check(t, err)
	t.Cleanup(func() { check(t, docker.Close()) })
	d := deploying{up(t), docker, t}
	agent := d.attach("n1", docker)
	d.startRelay("r1")
	d.join("away", docker)

	p := newPage(t)
	p.signIn(d.Fleet)
	p.visit("#/nodes")
	p.untilShown("tr[data-node=n1] [data-attached=true]")
	p.untilShown("tr[data-node=r1] [data-attached=true]")
	p.has("tr[data-node=n1] td[data-label='Attached to']", "root since")
	p.has("tr[data-node=r1]", "root since", "Relay")
	p.has("tr[data-node=away] [data-attached=false]", "no")
	p.narrow()
	p.click("[data-choice=ATTACHED]")
	listed(p, "n1 r1")
	p.click("[data-choice=NOT_ATTACHED]")
	listed(p, "away")

	p.visit("#/nodes/r1")
	p.untilText("[data-fact=attached]", "root since")
	p.has("[data-fact=link]", "direct")
	p.has("[data-fact=descendants]", "0")
	if text := script[string](p, "document.querySelector('main').innerText.toLowerCase()"); strings.Contains(text, "conformance") || strings.Contains(text, "heartbeat") {
		t.Errorf("the page of a relay has what only nodes have: %s", text)
	}
	p.narrow()
	p.visit("#/nodes/away")
	p.untilText("[data-fact=attached]", "no")
	p.visit("#/nodes/n1")
	p.untilText("[data-fact=attached]", "root since")
	p.has("[data-fact=link]", "direct")
	p.narrow()
	agent.End()
	p.untilText("[data-fact=attached]", "no, detached from root at")
	p.visit("#/nodes")
	p.untilText("tr[data-node=n1] [data-attached=false]", "no, detached from root at")

	// A root relay that does not answer hides no node.
	relay := process(t, d.Fleet, fleet.Relay)
	check(t, syscall.Kill(relay.PID, syscall.SIGSTOP))
	p.untilText("tr[data-node=away] td[data-label='Attached to']", "not known")
	p.visit("#/nodes/n1")
	p.untilText("[data-fact=attached]", "Not known")
	check(t, syscall.Kill(relay.PID, syscall.SIGCONT))
	p.untilText("[data-fact=attached]", "no, detached from root at")
}
