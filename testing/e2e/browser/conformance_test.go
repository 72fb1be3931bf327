package browser

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

// The page of a node shows how to get a report, then its probes, and whether the baseline admits it.
func TestDashboardShowsConformance(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	image, err := d.docker.PushConformance("../../..")
	check(t, err)
	document, err := os.ReadFile("../../../deploy/conformance/conformance.yaml")
	check(t, err)
	d.muster("type", "push", d.write("conformance.yaml", regexp.MustCompile(`(?m)^image: .*$`).ReplaceAllString(string(document), "image: "+image)))

	p := newPage(t)
	p.signIn(d.Fleet)
	p.visit("#/nodes/n1")
	p.untilText("[aria-labelledby=conformance]", "The node has no report")
	p.untilShown("[aria-labelledby=equipment] [data-adapter=docker]")
	p.has("[aria-labelledby=equipment]", "since", "available", "Free disk space")
	d.shell(p.text("[aria-labelledby=conformance] code"))
	p.visit("#/nodes")
	p.visit("#/nodes/n1")
	p.untilShown(`tr[data-probe="limits.memory-enforced"][data-status=pass]`)
	p.has("[aria-labelledby=conformance]", "there is no baseline", "conformance@1.0.0", "a process beyond the limit is killed")
	d.muster("conformance", "baseline", "set", "n1")
	p.visit("#/nodes")
	p.visit("#/nodes/n1")
	p.untilText("[aria-labelledby=conformance]", "the baseline admits deployments")
	script[bool](p, `Boolean(window.lines = (cell) => {
		const range = document.createRange();
		range.selectNodeContents(cell);
		return [...range.getClientRects()];
	})`)
	probe := `tr[data-probe="filesystem.parameters"] td`
	p.until("the name of a probe is on one line", fmt.Sprintf(`lines(document.querySelector('%s')).length === 1`, probe))
	p.narrow()
	p.size(390, 800)
	p.until("the status is beside its label on a phone", fmt.Sprintf(`(() => {
		const cell = document.querySelector('%s[data-label=Status]');
		return lines(cell).every((line) => line.left > cell.getBoundingClientRect().left + 80);
	})()`, probe))
}
