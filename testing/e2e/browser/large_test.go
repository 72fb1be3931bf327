package browser

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// All of 100,000 cells arrive, and the last one is found and shown.
func TestDashboardShowsHundredThousandPairs(t *testing.T) {
	t.Parallel()
	f := up(t)
	nodes := names(33_334, "machine")
	run := plan(t, f, "Many machines", nodes, delivered("a", "DaemonSet"), delivered("b", "DaemonSet"), delivered("c", "DaemonSet"))
	p := newPage(t)
	p.signIn(f)
	p.visit("#/runs/" + run)
	p.until("the grid is shown", `document.querySelector("[aria-labelledby=grid] .card-head")?.innerText.includes("3 plugins, 33,334 nodes")`)
	p.typed(".grid input[name=node]", nodes[len(nodes)-1]+kb.Enter)
	p.until("the last node's cell is shown", `document.querySelector(".pair-details")?.innerText.includes("machine-33334")`)
	newDeliverer(t, f, run, "a").deliver(nodes[len(nodes)-1], "")
	p.until("its result shows", `document.querySelector(".pair-details").innerText.includes("Genuine")`)
}
