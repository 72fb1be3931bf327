package browser

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"muster.example/testing/fleet"
)

// While the gateway is unreachable the page shows since when; afterwards it continues automatically. A restarted
// gateway knows no session: the page shows how to sign in.
func TestDashboardShowsSinceWhenItIsStale(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := plan(t, f, "", []string{"n1"}, delivered("packages", "DaemonSet"))
	packages := newDeliverer(t, f, run, "packages")
	p := newPage(t)
	p.signIn(f)
	p.visit("#/runs/" + run)
	p.untilShown("[data-link=live]")

	gateway := process(t, f, fleet.Gateway)
	check(t, syscall.Kill(gateway.PID, syscall.SIGSTOP))
	p.untilShown("[data-link=stale]")
	if notice := p.text(".notice"); !strings.Contains(notice, "Stale since") {
		t.Errorf("the notice is %q", notice)
	}
	packages.deliver("n1", "")
	if percent := p.text("[data-test=percent]"); percent != "0 %" {
		t.Errorf("%q is shown while the gateway is down", percent)
	}
	check(t, syscall.Kill(gateway.PID, syscall.SIGCONT))
	p.untilShown("[data-link=ended]")
	p.until("the result is shown", `document.querySelector("[data-test=percent]").innerText === "100 %"`)

	gateway.Kill()
	p.visit("#/nodes")
	signedOut(p)
	for _, route := range []string{"#/templates", "#/nodes/n1", "#/runs/" + run, "#/deployments", "#/"} {
		p.visit(route)
		p.until(route+" is open", fmt.Sprintf("location.hash === %q", route))
		signedOut(p)
	}
	p.signIn(f)
	p.untilShown("#runs")
	p.click(".foot button")
	signedOut(p)
	p.narrow()
	p.signIn(f)
	p.untilShown(".foot button")
}

// signedOut waits until the page says once how to sign in, and offers neither a sign-out nor other errors.
func signedOut(p *page) {
	p.t.Helper()
	p.until("the page says once how to sign in", `document.querySelectorAll(".notice, .bad-text").length === 1 && document.querySelector(".notice.bad")?.innerText.includes("muster dashboard") && !document.querySelector(".foot button")`)
}

func process(t *testing.T, f *fleet.Fleet, name string) fleet.Process {
	t.Helper()
	for _, p := range f.Processes() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("%s is not running", name)
	return fleet.Process{}
}
