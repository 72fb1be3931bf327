package browser

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"muster.example/testing/fleet"
)

const keptType = `
apiVersion: muster/v1
kind: TemplateType
name: keep
version: 1.0.0
image: %s
contract: 1
limits: {memory: 64MiB, time: 10m}
parameters:
  text: {schema: {type: string}, required: true}
  wait: {schema: {type: boolean}, delegation: default, value: false}
`

// keepScript is the command of an image that keeps its parameter in its workspace, and waits if its other parameter is set.
const keepScript = `
cp /state/parameters.json /state/workspace/kept
ln -sf /etc/passwd /state/workspace/link
! grep -q '"wait":true' /state/parameters.json || sleep 600
`

// newKeeping is a fleet with a type whose deployments change their workspace.
func newKeeping(t *testing.T) (d deploying, agent *fleet.RunningProgram) {
	t.Helper()
	docker, err := fleet.StartDocker()
	check(t, err)
	d = deploying{up(t), docker, t}
	t.Cleanup(func() { check(t, docker.Close()) })
	image, err := docker.PushBusybox("types/keep", "/bin/sh", "-c", keepScript)
	check(t, err)
	d.muster("type", "push", d.write("keep.yaml", fmt.Sprintf(keptType, image)))
	return d, d.attach("n1", docker)
}

func (d deploying) keep(text string, more ...string) string {
	d.t.Helper()
	return strings.TrimSpace(d.muster(append([]string{"deploy", "--type", "keep", "--node", "n1", "--workspace", "network", "--set", "text=" + text}, more...)...))
}

// The pages of a workspace follow it from its first deployment on: who has it, its versions, and the command for each
// state, which is run as it is copied.
func TestDashboardShowsWorkspaces(t *testing.T) {
	t.Parallel()
	d, agent := newKeeping(t)
	p := newPage(t)
	p.signIn(d.Fleet)
	p.visit("#/")
	p.untilShown(`.others a[href="#/workspaces"]`)
	for _, address := range []string{"#/deployments", "#/templates", "#/types", "#/workspaces"} {
		p.visit("#/")
		p.untilShown(".others")
		p.click(fmt.Sprintf(".others a[href=%q]", address))
		p.until(address+" is open", fmt.Sprintf(`location.hash === %q && document.querySelector(".card:not(.others)")`, address))
	}
	p.untilText("[aria-labelledby=workspaces]", "There is no workspace yet")

	d.keep("one", "--wait")
	p.untilText("tr[data-workspace=network]", "Free 1")
	first := d.keep("two", "--wait", "--json")
	p.untilText("tr[data-workspace=network]", "Free 2")
	p.click("tr[data-workspace=network] a")
	p.untilShown("h1 + [data-state=free]")
	p.untilShown("tr[data-version='2']")
	p.has("tr[data-version='2']", "n1", "1 entry was not saved")
	p.has("[aria-label=Workspace]", "Newest version 2", "2 versions")
	d.shell(p.text("[aria-labelledby=restore] .command code"))
	p.untilShown("tr[data-version='3']")
	p.has("tr[data-version='3']", "version 1 again, by admin")
	pictureOfWorkspace(p)

	// The version links the deployment that saved it, which links the workspace.
	p.click("tr[data-version='2'] td[data-label=Deployment] a")
	p.untilText("[data-test=workspace]", "network, from version 1")
	if id := script[string](p, `location.hash.split("/").at(-1)`); !strings.Contains(first, id) {
		t.Errorf("version 2 links the deployment %s, and was saved by %s", id, first)
	}
	p.click("[data-test=workspace] a")
	p.untilShown("h1 + [data-state=free]")

	id := d.keep("three", "--set", "wait=true", "--deadline", "20s")
	p.untilShown("h1 + [data-state=in_use]")
	p.has("[aria-label=Workspace]", id, "n1")
	p.has(".notice.info", "A deployment has the workspace")
	p.has("[aria-labelledby=next]", "muster deployment cancel "+id)
	if script[bool](p, `document.querySelector("[aria-labelledby=delete]") !== null`) {
		t.Error("a workspace in use has a command that deletes it")
	}
	if script[bool](p, `document.querySelector("[aria-labelledby=restore]") !== null`) {
		t.Error("a workspace in use has a command that restores a version")
	}
	p.visit("#/workspaces")
	p.untilText("tr[data-workspace=network]", "In use 3 "+id[:12]+" on n1")
	p.narrow()

	check(t, fleet.Until(soon, "the container runs", func() bool {
		var shown struct {
			Nodes []struct {
				StartTime string `json:"start_time"`
			}
		}
		check(t, d.JSON(&shown, "deployment", "show", id))
		return len(shown.Nodes) == 1 && shown.Nodes[0].StartTime != ""
	}))
	agent.End()
	p.untilShown("tr[data-workspace=network] [data-state=suspect]")
	p.click("tr[data-workspace=network] a")
	p.untilText(".notice.bad", "It is not known what the deployment did to the workspace")
	p.has(".notice.bad", "If node n1 will not send its version")
	p.has("[aria-labelledby=delete]", "muster workspace delete network --deployment "+id)
	p.narrow()
	d.shell(p.text("[aria-labelledby=next] .command code"))
	p.untilShown("h1 + [data-state=free]")

	jobs := process(t, d.Fleet, fleet.Jobs)
	check(t, syscall.Kill(jobs.PID, syscall.SIGSTOP))
	p.untilText(".notice.warn", "Stale since")
	check(t, syscall.Kill(jobs.PID, syscall.SIGCONT))
	p.until("the page is current again", `!document.querySelector(".notice")`)
	p.visit("#/workspaces/none")
	p.untilText(".notice.bad", "not found")

	p.visit("#/workspaces/network")
	p.untilShown("[aria-labelledby=delete]")
	d.shell(p.text("[aria-labelledby=delete] .command code"))
	p.untilText(".notice.bad", "not found")
	p.visit("#/deployments/" + id)
	p.untilText("[data-test=workspace]", "deleted by admin")
}

// pictureOfWorkspace takes the picture of the documents, and checks both themes on a phone.
func pictureOfWorkspace(p *page) {
	p.t.Helper()
	picturesOf(p, "dashboard-workspace")
	p.dark(true)
	p.until("the theme is dark", `document.documentElement.dataset.theme === "dark"`)
	p.narrow()
	p.dark(false)
	p.until("the theme is light", `document.documentElement.dataset.theme === "light"`)
}
