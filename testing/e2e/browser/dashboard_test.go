package browser

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"muster.example/services/client/go"
)

// straggler returns the selector of a straggler's row with this reason.
func straggler(node, kind string) string {
	return fmt.Sprintf("tr[data-node=%q][data-kind=%q]", node, kind)
}

// A run is followed from its beginning to its end; meanwhile one node is killed, another one stopped, and each is shown
// with its reason.
func TestDashboardFollowsRunToItsEnd(t *testing.T) {
	t.Parallel()
	f := up(t)
	nodes := names(240, "node")
	gate := inHome(f, "gate")
	run := plan(t, f, "Kernel audit, region north", nodes,
		gated("kernel", gate), delivered("packages", "DaemonSet"), delivered("ports", "DaemonSet"), delivered("inventory", "Job"))
	kernel, packages := newDeliverer(t, f, run, "kernel"), newDeliverer(t, f, run, "packages")
	ports, inventory := newDeliverer(t, f, run, "ports"), newDeliverer(t, f, run, "inventory")

	p := newPage(t)
	p.signIn(f)
	p.visit("#/runs/" + run)
	p.untilShown("[data-link=live]")
	p.until("no result is shown yet", `document.querySelector("[data-test=percent]").innerText === "0 %"`)

	healthy, killed, stopped := nodes[0], nodes[1], nodes[2]
	agent(t, f, nil, run, "kernel", healthy)
	victim, sleeper := agent(t, f, nil, run, "kernel", killed), agent(t, f, nil, run, "kernel", stopped)
	for index, node := range nodes {
		if index%5 != 0 {
			packages.deliver(node, "")
		}
		if index%2 == 1 {
			ports.deliver(node, "")
		}
		if index > 2 && index%4 != 0 {
			kernel.deliver(node, map[bool]string{true: "the module list cannot be read: permission denied"}[index%40 == 7])
		}
	}
	inventory.report(muster.Global, muster.Progress{Message: "reading serial numbers of rack 12", Total: 40, Completed: 11})
	p.until("three agents are working", `[...document.querySelectorAll(".events b")].some((b) => b.innerText === "First result")`)

	victim.Kill()
	check(t, sleeper.Stop())
	p.untilShown(straggler(killed, "crashed"))
	p.untilShown(straggler(stopped, "not_responding"))
	for _, selector := range []string{straggler(killed, "crashed"), straggler(stopped, "not_responding")} {
		if stderr := p.text(selector + " .detail"); !strings.Contains(stderr, "Next:") {
			t.Errorf("%s has no next step: %q", selector, stderr)
		}
	}
	p.until("the timeline shows both", `[...document.querySelectorAll(".events b")].filter((b) => /Crashed|Not responding/.test(b.innerText)).length === 2`)
	pictures(p)
	terminalShot(t, f, "status-terminal", 40, 140, "status")
	oneCell(p, healthy)
	const hostile = `<img src=x onerror="document.title='taken'"> & <b>bold</b>`
	inventory.report(muster.Global, muster.Progress{Message: hostile, Total: 40, Completed: 12})
	textStaysText(p, hostile)

	p.visit("#/nodes/" + killed)
	p.untilShown("tr[data-kind=crashed]")
	p.until("the history shows when the heartbeats stopped", `document.querySelector("#history").closest("section").innerText.includes("Late")`)
	p.shot("dashboard-node")
	p.visit("#/nodes")
	p.untilShown(fmt.Sprintf("tr[data-node=%q]", killed))
	p.visit("#/")
	p.untilShown(fmt.Sprintf("li[data-run=%q] .stragglers", run))

	p.visit("#/runs/" + run)
	p.untilShown("[data-link=live]")
	check(t, os.WriteFile(gate, nil, 0o600))
	check(t, sleeper.Continue())
	agent(t, f, nil, run, "kernel", killed)
	for index, node := range nodes {
		if index%5 == 0 {
			packages.deliver(node, "")
		}
		if index%2 == 0 {
			ports.deliver(node, "")
		}
		if index > 2 && index%4 == 0 {
			kernel.deliver(node, "")
		}
	}
	inventory.deliver(muster.Global, "")
	p.untilShown("[data-state=complete]")
	p.untilShown("[data-link=ended]")
	p.until("all results are shown", `document.querySelector("[data-test=percent]").innerText === "100 %"`)
	wantDownloads(p, run, healthy)
	if badge := p.text("[data-state=complete]"); badge == "Complete" != script[bool](p, `document.querySelector("#tab-failures .tally").innerText === "0"`) {
		t.Errorf("the state of the run is %q", badge)
	}
	p.visit("#/")
	p.untilShown(fmt.Sprintf("li[data-run=%q] [data-state=complete]", run))
	if !script[bool](p, `[...document.querySelectorAll(".run")].every((row) =>
		row.querySelector(".badge").getBoundingClientRect().right < row.querySelector(".bar").getBoundingClientRect().left)`) {
		t.Error("the state of a run is drawn under its progress")
	}
	for _, address := range []string{"#/", "#/nodes", "#/runs/" + run} {
		p.visit(address)
		p.untilShown(".card")
		p.size(320, 640)
		p.fits()
		p.size(1280, 900)
	}
	p.untilShown("[data-link=ended]")
	p.visit("#/runs/0000000000000000")
	p.until("a missing run is never stale", `document.querySelector(".notice") && !document.querySelector("[data-link]").innerText.includes("Stale")`)
	p.until("it is not found", `document.querySelector("[data-link]").innerText.includes("Not found")`)
	p.visit("#/runs/" + run)
	p.untilShown("[data-link=ended]")
	if title := script[string](p, "document.title"); strings.Contains(title, "taken") {
		t.Error("a message of a plugin was run as a script")
	}

	p.click(".foot button")
	p.until("nothing is shown after the sign-out", `document.querySelector(".notice.bad") && !document.querySelector(".summary")`)
}

// pictures takes screenshots in both themes and in the size of a phone.
func pictures(p *page) {
	p.t.Helper()
	for name, dark := range map[string]bool{"light": false, "dark": true} {
		p.dark(dark)
		p.until("the theme is "+name, fmt.Sprintf("document.documentElement.dataset.theme === %q", name))
		p.size(1280, 1900)
		p.fits()
		p.shot("dashboard-run-" + name)
	}
	p.size(360, 740)
	p.fits()
	p.shot("dashboard-phone")
	p.size(320, 640)
	p.fits()
	p.dark(false)
	p.size(1280, 900)
}

// oneCell selects a node's cell with the keyboard.
func oneCell(p *page, node string) {
	p.t.Helper()
	p.typed(".grid input[name=node]", node+kb.Enter)
	p.untilShown(".pair-details")
	if text := p.text(".pair-details h3"); !strings.Contains(text, node) {
		p.t.Errorf("the details are those of %q", text)
	}
	p.typed(".grid-view", kb.ArrowRight)
	p.until("the next cell is shown", fmt.Sprintf(`!document.querySelector(".pair-details h3").innerText.includes(%q)`, node))
	p.typed("", "n")
	p.until("n selects a pair that needs attention", `/Crashed|Not responding|Error/.test(document.querySelector(".pair-details").innerText)`)
	p.typed("", kb.Escape)
	p.until("Escape closes the details", `!document.querySelector(".pair-details")`)
}

// textStaysText checks that a text is displayed verbatim and not interpreted: as a plugin's message, and as the name of
// a node in a link.
func textStaysText(p *page, hostile string) {
	p.t.Helper()
	p.typed(".grid input[name=node]", muster.Global+kb.Enter)
	p.until("the message is shown", fmt.Sprintf(`document.querySelector(".pair-details")?.innerText.includes(%q)`, hostile))
	const taken = `document.querySelector("img[src=x]") !== null || document.title === "taken"`
	if script[bool](p, taken) {
		p.t.Error("a message of a plugin became a part of the page")
	}
	p.visit("#/nodes/" + url.PathEscape(hostile))
	p.until("the name and the error are shown", fmt.Sprintf(
		`document.querySelector("h1")?.innerText === %q && document.querySelector(".notice.bad")`, hostile))
	if script[bool](p, taken) {
		p.t.Error("the name of a node became a part of the page")
	}
}

// wantDownloads follows the links as the browser would.
func wantDownloads(p *page, run, node string) {
	p.t.Helper()
	p.untilShown("a.button[download]")
	p.until("the archive can be downloaded", `window.archive === 200 || void fetch(document.querySelector("a.button[download]").href).then((r) => { window.archive = r.status })`)
	p.click("#tab-results")
	p.untilShown("input.filter")
	p.typed("input.filter", node+" ports")
	row := fmt.Sprintf("tr[data-node=%q][data-plugin=ports] a[download]", node)
	p.untilShown(row)
	p.until("a single result can be downloaded", fmt.Sprintf(
		`window.result === %q || void fetch(document.querySelector(%q).href).then((r) => r.text()).then((text) => { window.result = text })`,
		"what ports found on "+node+"\n", row))
}
