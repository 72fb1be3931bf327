package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster.example/testing/fleet"
)

// hostile is a text that would change the page if it were not escaped.
const hostile = `<img src=x onerror="document.title=1">`

// greetScript is the command of the image. It runs as long as the deployment says.
const greetScript = `
name=$(sed -n 's/.*"name":"\([^"]*\)".*/\1/p' /state/parameters.json)
seconds=$(sed -n 's/.*"seconds":\([0-9]*\).*/\1/p' /state/parameters.json)
printf '%s\n' '` + hostile + `'
printf 'in \033[31mred\033[0m\n'
echo "a warning" >&2
for i in $(seq $((seconds * 10))); do echo "line $i of $name"; sleep 0.1; done
[ "$name" != flood ] || { yes "a long log" | head -c 18000000; echo "its end"; }
[ "$name" = nobody ] || printf '"hello %s"' "$name" >/state/outputs/text
`

const greetType = `
apiVersion: muster/v1
kind: TemplateType
name: greet
version: %s
description: greets someone
image: %s
contract: 1
actions: [deploy, check]
limits: {memory: 64MiB, processes: 100, time: 10m}
parameters:
  name: {schema: {type: string, maxLength: 40}, required: true, description: who is greeted}
  seconds: {schema: {type: integer, minimum: 0, maximum: 600}, delegation: default, value: 0, description: how long it takes}
  loud: {schema: {type: boolean}}
  mode: {schema: {enum: [short, long, 1.50]}, delegation: default, value: short}
  volume: {schema: {type: number}, delegation: default, value: 0.10}
  tags: {schema: {type: array, items: {type: string}, maxItems: 3}}
  region: {schema: {type: string}}
  token: {schema: {type: string}, sensitive: true}
outputs:
  text: {schema: {type: string}, required: true, description: the greeting}
secrets:
  db: {description: the password of a database}
`

const hiTemplate = `
apiVersion: muster/v1
kind: Template
name: hi
version: %s
description: %q
type: greet@1.0.0
limits: {time: 5m}
parameters:
  seconds: {schema: {type: integer, minimum: 0, maximum: 300}}
  region: {delegation: fixed, value: eu}
`

// deploying is a fleet with a template, and a node with Docker that admits its deployments.
type deploying struct {
	*fleet.Fleet
	docker *fleet.Docker
	t      *testing.T
}

func newDeploying(t *testing.T) deploying {
	t.Helper()
	docker, err := fleet.StartDocker()
	check(t, err)
	d := deploying{up(t), docker, t}
	t.Cleanup(func() { check(t, docker.Close()) })
	image, err := docker.PushBusybox("types/greet", "/bin/sh", "-c", greetScript)
	check(t, err)
	d.muster("type", "push", d.write("greet.yaml", fmt.Sprintf(greetType, "1.0.0", image)))
	for version, description := range map[string]string{"1.3.0": hostile, "1.4.0": "greets someone in our region"} {
		d.muster("template", "create", "-f", d.write("hi.yaml", fmt.Sprintf(hiTemplate, version, description)))
	}
	d.attach("n1", docker)
	return d
}

func (d deploying) write(name, content string) string {
	d.t.Helper()
	file, err := d.WriteFile(name, content)
	check(d.t, err)
	return file
}

func (d deploying) muster(arguments ...string) string {
	d.t.Helper()
	out, err := d.Muster(arguments...)
	check(d.t, err)
	return out
}

// attach joins a machine whose policy admits deployments and builds of the registry's images, and starts its agent.
func (d deploying) attach(name string, docker *fleet.Docker) *fleet.RunningProgram {
	d.t.Helper()
	return d.startAgent(name, d.join(name, docker))
}

// join returns the environment of the agent.
func (d deploying) join(name string, docker *fleet.Docker) []string {
	d.t.Helper()
	home, err := os.MkdirTemp("", "machine")
	check(d.t, err)
	d.t.Cleanup(func() { check(d.t, fleet.RemoveHome(home)) })
	token := filepath.Join(d.t.TempDir(), "token")
	d.muster("token", "create", "-o", token, "--node", name)
	environment := []string{"MUSTER_HOME=" + home, "DOCKER_HOST=unix://" + docker.Socket}
	join := d.Command(context.Background(), "node", "join", "--token-file", token)
	join.Env = append(join.Env, environment...)
	if out, err := join.CombinedOutput(); err != nil {
		d.t.Fatalf("%s joins: %v: %s", name, err, out)
	}
	policy := fmt.Sprintf("containers:\n  - images: [\"%[1]s/types/*\", \"%[1]s/templates/*\"]\n    actions: [deployment]\n    max_output: 64MiB\n"+
		"    workspaces: [\"*\"]\n    secrets: [\"prod/*\"]\n"+
		"  - images: [\"%[1]s/types/*\"]\n    actions: [build]\n    repositories: [\"%[1]s/templates/*\"]\n", docker.Registry)
	check(d.t, os.WriteFile(filepath.Join(home, "node", "policy.yaml"), []byte(policy), 0o600))
	return environment
}

func (d deploying) startAgent(name string, environment []string) *fleet.RunningProgram {
	d.t.Helper()
	agent, err := d.Start(nil, environment, fleet.Muster, "agent", "attach")
	check(d.t, err)
	d.t.Cleanup(func() {
		agent.End()
		if d.t.Failed() {
			d.t.Logf("agent on %s: %s", name, agent.Output)
		}
	})
	check(d.t, fleet.Until(soon, name+" is attached", func() bool {
		return d.isAttached(name)
	}))
	return agent
}

func (d deploying) isAttached(name string) bool {
	var nodes []map[string]any
	attached := func(node map[string]any) bool { return node["name"] == name && node["attached"] == true }
	return d.JSON(&nodes, "nodes") == nil && slices.ContainsFunc(nodes, attached)
}

// shell runs a command of the page in the home of the fleet, as a person would who has copied it, and returns what it
// prints.
func (d deploying) shell(line string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir = d.Home
	command.Env = append(d.Command(ctx).Env, "PATH="+d.Bin+":"+os.Getenv("PATH"))
	out, err := command.Output()
	if err != nil {
		d.t.Fatalf("%s: %v: %s", line, err, err)
	}
	return strings.TrimSpace(string(out))
}

const problems = "[data-test=problems]"

// A template is chosen and its form filled in; the composed command creates the deployment, which is followed to its
// end.
func TestDashboardDeploysATemplate(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	p := newPage(t)
	p.signIn(d.Fleet)
	p.visit("#/deployments")
	p.untilText("[aria-labelledby=deployments]", "There is no deployment yet")
	p.visit("#/templates")
	p.untilShown("[aria-labelledby=templates] tr[data-name=hi]")
	p.untilShown("[aria-labelledby=types] tr[data-name=greet]")
	p.has("tr[data-name=hi]", "1.4.0", "1.3.0", "greet@1.0.0")
	p.narrow()
	p.click("tr[data-name=hi] a")
	p.untilText("h1", "hi@1.4.0")
	templateIsDescribed(p)
	line := fillForm(d, p)
	picturesOf(p, "dashboard-template")

	id := d.shell(line)
	p.visit("#/deployments")
	row := fmt.Sprintf("tr[data-deployment=%q]", id)
	p.untilShown(row)
	p.has(row, "hi@1.4.0", "by admin")
	p.click(row + " a")
	p.untilShown("h1 + [data-state=succeeded]")
	p.untilShown("[aria-labelledby=log] [data-link=ended]")
	deploymentIsDescribed(p)
	p.narrow()
	picturesOf(p, "dashboard-deployment")

	p.visit("#/deployments")
	p.untilShown(row + " [data-state=succeeded]")
	p.has(row, "1 succeeded", "of 1")
	p.narrow()
	rejectedDocumentIsShown(d, p)
}

// picturesOf takes a screenshot of the page for the documents, and checks that it fits a phone.
func picturesOf(p *page, name string) {
	p.t.Helper()
	height := script[int64](p, "document.documentElement.scrollHeight")
	p.size(1280, height)
	p.fits()
	p.shot(name)
	p.size(360, 740)
	p.fits()
	p.size(1280, 900)
}

func templateIsDescribed(p *page) {
	p.t.Helper()
	p.untilShown("tr[data-parameter=name]")
	p.has("tr[data-parameter=name]", "required", "text, at most 40 characters", "delegated", "the deployment", "who is greeted")
	p.has("tr[data-parameter=seconds]", "integer, at least 0, at most 300", "default", "0", "type default")
	p.has("tr[data-parameter=region]", "fixed", `"eu"`, "template")
	p.has("tr[data-parameter=volume]", "0.10")
	p.has("tr[data-parameter=token]", "sensitive")
	p.has("[aria-labelledby=outputs] tr[data-output=text]", "required", "the greeting", "type")
	p.has("[data-limit=time]", "5m (template)")
	p.has("[data-limit=memory]", "64MiB (type)")
	p.narrow()
	p.click(".versions a:not([aria-current])")
	p.untilText("h1", "hi@1.3.0")
	p.untilText(".sub", hostile)
	p.click(".versions a:not([aria-current])")
	p.untilText("h1", "hi@1.4.0")
	p.click("dd > a")
	p.untilText("h1", "greet@1.0.0")
	p.untilText("tr[data-parameter=region]", "delegated none")
	p.has("tr[data-parameter=seconds]", "at most 600")
	p.visit("#/templates/hi@1.4.0")
	p.untilText("h1", "hi@1.4.0")
}

// fillForm makes each kind of mistake, corrects it, and returns the command.
func fillForm(d deploying, p *page) string {
	p.t.Helper()
	d.write("token.txt", "12345")
	p.untilText(problems, "name: a value is required")
	p.has(problems, "Nodes: a node is required")
	if script[bool](p, `document.querySelector("#parameter-region") !== null`) {
		p.t.Error("a fixed parameter has an input")
	}
	for _, c := range [][3]string{
		{"parameter-name", strings.Repeat("x", 41), "name: is not at most 40 characters"},
		{"parameter-seconds", "soon", "seconds: is not a number"},
		{"parameter-seconds", "1.5", "seconds: is not integer"},
		{"parameter-seconds", "301", "seconds: is not at most 300"},
		{"parameter-tags", `["a"`, "tags: is not JSON"},
		{"parameter-tags", `["a", 1]`, "tags: 1: is not text"},
		{"deploy-targets", "n1 /etc", "Nodes: /etc is not the name of a node"},
		{"secret-db", "a password", "Secret db: is not the name of a secret"},
	} {
		p.enter(c[0], c[1])
		p.untilText(problems, c[2])
	}
	if script[bool](p, `document.querySelector("[aria-labelledby=deploy] .command") !== null`) {
		p.t.Error("there is a command although the form has mistakes")
	}
	for _, c := range [][2]string{
		{"deploy-targets", "n1"}, {"parameter-name", "Ada O'Brien, $HOME"}, {"parameter-seconds", "4"}, {"parameter-loud", "true"},
		{"parameter-mode", "1.50"}, {"parameter-tags", "[\"a b\",\n \"c\"]"}, {"parameter-token", "token.txt"},
		{"secret-db", "prod/db@2"},
	} {
		p.enter(c[0], c[1])
	}
	p.click(".check input")
	p.untilShown("[aria-labelledby=deploy] .command")
	p.has("[aria-labelledby=deploy] .command code", " --secret db=prod/db@2")
	p.enter("secret-db", "") // it is not required, and not stored
	if script[bool](p, fmt.Sprintf("document.querySelector(%q) !== null", problems)) {
		p.t.Errorf("a correct form has mistakes: %s", p.text(problems))
	}
	return p.text("[aria-labelledby=deploy] .command code")
}

func deploymentIsDescribed(p *page) {
	p.t.Helper()
	for _, c := range [][2]string{
		{"name", "\"Ada O'Brien, $HOME\" deployment"}, {"seconds", "4 deployment"}, {"loud", "true deployment"}, {"mode", "1.50 deployment"},
		{"tags", `["a b","c"]` + " deployment"}, {"volume", "0.10 type default"}, {"region", "\"eu\" template"},
		{"token", "(sensitive) deployment"},
	} {
		p.has(fmt.Sprintf("tr[data-parameter=%s]", c[0]), c[0]+" "+c[1])
	}
	if text := script[string](p, "document.body.innerText"); strings.Contains(text, "12345") {
		p.t.Error("the page shows a sensitive value")
	}
	p.has("tr[data-output=text]", `"hello Ada O'Brien, $HOME"`)
	p.has("tr[data-node=n1][data-outcome=succeeded]", "succeeded")
	p.has(".log", hostile, "in red", "a warning", "line 40 of Ada O'Brien")
	if script[bool](p, `document.querySelector("img[src=x]") !== null || document.title === "1"`) {
		p.t.Error("an output or a description became a part of the page")
	}
}

// A node that fails, one that is missing, and a deployment that is cancelled: each has its reason and its next step.
func TestDashboardShowsWhyADeploymentFailed(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	p := newPage(t)
	p.signIn(d.Fleet)
	id := strings.TrimSpace(d.muster("deploy", "hi", "--node", "n1,missing", "--set", "name=nobody"))
	p.visit("#/deployments/" + id)
	p.untilShown("h1 + [data-state=failed]")
	p.untilText("tr[data-node=n1][data-outcome=failed]", "OUTPUTS_INVALID")
	p.has("tr[data-node=n1]", "Next: Correct the program in the image")
	p.has("tr[data-node=missing][data-outcome=failed]", "unknown node", "Next: Choose a name of the kind node in muster nodes.")
	p.has("[aria-labelledby=nodes] .counts", "1 failed", "1 unknown node", "of 2")
	p.has("[aria-labelledby=outputs]", "There are no outputs.")
	p.click("tr[data-node=missing] button")
	p.untilText("[aria-labelledby=log] h2", "Log of missing")
	p.untilText(".log", "unknown node")
	p.narrow()
	p.visit("#/deployments")
	p.untilText(fmt.Sprintf("tr[data-deployment=%q]", id), "1 unknown")

	id = strings.TrimSpace(d.muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--set", "seconds=300"))
	p.visit("#/deployments/" + id)
	p.untilText(".log", "line 2 of Ada") // while it runs
	p.untilShown("h1 + [data-state=running]")
	p.untilShown("[aria-labelledby=log] [data-link=live]")
	d.shell(p.text("[aria-labelledby=cancel] .command code"))
	p.untilShown("h1 + [data-state=cancelled]")
	p.untilText("[aria-label=Deployment]", "Cancelled by")
	p.untilText("tr[data-node=n1][data-outcome=cancelled] td[data-label=Outcome]", "cancelled")
	if script[bool](p, `document.querySelector("[aria-labelledby=cancel]") !== null`) {
		t.Error("a cancelled deployment has a command that cancels it")
	}

	// A large log is loaded on request, and its newest lines are kept.
	id = strings.TrimSpace(d.muster("deploy", "hi", "--node", "n1", "--set", "name=flood"))
	check(t, fleet.Until(soon, "the deployment has ended", func() bool {
		return strings.Contains(d.muster("deployment", "show", id), "succeeded\n")
	}))
	p.visit("#/deployments/" + id)
	p.untilText("[aria-labelledby=log] button", "Load 17 MiB")
	p.click("[aria-labelledby=log] button")
	p.untilShown("[aria-labelledby=log] [data-link=ended]")
	p.untilText(".log", "its end")
	p.untilText("[aria-labelledby=log] .hint", "earlier lines are not shown")
	if lines := script[int](p, `document.querySelectorAll(".log-line").length`); lines != 1000 {
		t.Errorf("%d lines of the log are shown", lines)
	}

	p.visit("#/deployments/00000000000000000000000000000000")
	p.untilText(".notice.bad", "not found")
	p.visit("#/templates/none@1")
	p.untilText(".notice.bad", "not found")
	p.visit("#/deployments")
	p.untilShown("[aria-labelledby=deployments]")
	jobs := process(t, d.Fleet, fleet.Jobs)
	check(t, syscall.Kill(jobs.PID, syscall.SIGSTOP))
	p.untilText(".notice.warn", "Stale since")
	check(t, syscall.Kill(jobs.PID, syscall.SIGCONT))
	p.until("the list is current again", `!document.querySelector(".notice")`)
}
