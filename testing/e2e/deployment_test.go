package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// greetScript is the command of an image that knows the contract of deployments.
const greetScript = `
name=$(sed -n 's/.*"name":"\([^"]*\)".*/\1/p' /state/parameters.json)
seconds=$(sed -n 's/.*"seconds":\([0-9]*\).*/\1/p' /state/parameters.json)
echo "$MUSTER_ACTION for $name"
for i in $(seq $((seconds * 20))); do echo line $i; sleep 0.05; done
[ "$name" = nobody ] || printf '"hello %s"' "$name" >/state/outputs/text
`

// greetType returns the document of a template type with this image.
func greetType(version, image string) string {
	return fmt.Sprintf(`
apiVersion: muster/v1
kind: TemplateType
name: greet
version: %s
image: %s
contract: 1
limits: {memory: 64MiB, time: 2m}
parameters:
  name: {schema: {type: string, maxLength: 20}, required: true}
  seconds: {schema: {type: integer, minimum: 0}, delegation: default, value: 0}
  token: {schema: {type: string}, sensitive: true}
outputs:
  text: {schema: {type: string}, required: true, description: the greeting}
`, version, image)
}

const hiTemplate = `
apiVersion: muster/v1
kind: Template
name: hi
version: 1.4.0
type: greet@1.0.0
parameters:
  name: {schema: {type: string, maxLength: 20, enum: [Ada, nobody]}, required: true}
`

// deploying is a fleet with a template type, and a node that admits its deployments.
type deploying struct {
	*fleet.Fleet
	docker *fleet.Docker
	node   *node
	folder string
}

func newDeploying(t *testing.T) *deploying {
	t.Helper()
	d := &deploying{Fleet: up(t), folder: t.TempDir()}
	d.docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, d.docker.Close()) })
	image := must(d.docker.PushBusybox("types/greet", "/bin/sh", "-c", greetScript))(t)
	policy := "containers:\n  - images: [\"" + d.docker.Registry + "/types/*\"]\n    actions: [deployment]\n"
	d.node = join(t, d.Fleet, "n1", policy, nil, []string{"DOCKER_HOST=unix://" + d.docker.Socket})
	d.node.attach(t)
	must(d.Muster("type", "push", d.write(t, "greet.yaml", greetType("1.0.0", image))))(t)
	must(d.Muster("template", "create", "-f", d.write(t, "hi.yaml", hiTemplate)))(t)
	return d
}

func (d *deploying) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(d.folder, name)
	check(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// setPolicy admits the images of types with these fields of their rule.
func (d *deploying) setPolicy(t *testing.T, fields string) {
	t.Helper()
	policy := "containers:\n  - images: [\"" + d.docker.Registry + "/types/*\"]\n    " + fields + "\n"
	check(t, os.WriteFile(filepath.Join(d.node.folder(), "policy.yaml"), []byte(policy), 0o600))
}

// shownDeployment is what `muster deployment show --json` prints.
type shownDeployment struct {
	Deployment, Job, State, Problem string
	Parameters                      []struct {
		Name, Source string
		Value        any
		Sensitive    bool
	}
	Nodes []struct {
		Node  string
		Final *struct {
			Outcome, Reason, Detail string
			ExitCode                *int `json:"exit_code"`
		}
		Outputs map[string]any
	}
}

func (d *deploying) show(t *testing.T, deployment string) (shown shownDeployment) {
	t.Helper()
	check(t, json.Unmarshal([]byte(must(d.Muster("deployment", "show", "--json", deployment))(t)), &shown))
	return shown
}

// An operator stores a type and a template, deploys it with parameters, and sees its output, its outputs, and who set what.
func TestTemplateIsDeployedOnANode(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	out := must(d.Muster("deploy", "hi@1.4", "--node", "n1", "--set", "name=Ada", "--set-text", "token=12345", "--wait"))(t)
	for _, want := range []string{"n1: deploy for Ada\n", "succeeded", "greet@1.0.0", `name = "Ada"  (deployment)`, "seconds = 0  (type default)",
		"token = (sensitive)", `n1: text = "hello Ada"`} {
		if !strings.Contains(out, want) {
			t.Errorf("muster deploy --wait prints no %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "12345") {
		t.Errorf("a sensitive value is printed:\n%s", out)
	}
	list := must(d.Muster("deployment", "list", "--json"))(t)
	var all []shownDeployment
	check(t, json.Unmarshal([]byte(list), &all))
	if len(all) != 1 || all[0].State != "succeeded" || strings.Contains(list, "12345") {
		t.Fatalf("muster deployment list prints %s", list)
	}
	d.write(t, "hi.yaml", strings.NewReplacer("1.4.0", "1.5.0", "nobody", "Grace").Replace(hiTemplate))
	must(d.Muster("template", "create", "-f", filepath.Join(d.folder, "hi.yaml")))(t)
	diff := must(d.Muster("template", "diff", "hi@1.4", "hi"))(t)
	for _, want := range []string{"--- hi@1.4.0\n+++ hi@1.5.0\n", "- /parameters/name/schema/enum/1: \"nobody\"\n", "+ /version: \"1.5.0\"\n"} {
		if !strings.Contains(diff, want) {
			t.Errorf("muster template diff prints no %q:\n%s", want, diff)
		}
	}
	shown := d.show(t, all[0].Deployment[:6])
	if len(shown.Nodes) != 1 || shown.Nodes[0].Outputs["text"] != "hello Ada" {
		t.Errorf("muster deployment show prints %+v", shown)
	}
	if out := must(d.Muster("deployment", "outputs", shown.Deployment))(t); !strings.Contains(out, `"hello Ada"`) {
		t.Errorf("muster deployment outputs prints %s", out)
	}
	if out := must(d.Muster("deployment", "logs", shown.Deployment))(t); out != "n1: deploy for Ada\n" {
		t.Errorf("muster deployment logs prints %q", out)
	}
	records := strings.Split(strings.TrimSpace(must(d.Muster("deployment", "logs", "--json", shown.Deployment))(t)), "\n")
	for _, record := range records {
		if !json.Valid([]byte(record)) {
			t.Errorf("muster deployment logs --json prints %q", record)
		}
	}
	noContainers(t, d.docker)
	until(t, "the state folder is removed", func() bool {
		left, _ := filepath.Glob(filepath.Join(d.node.folder(), "jobs", "*", "state"))
		return len(left) == 0
	})
}

// Each mistake has a reason where it is made: before anything runs, on the node, or at the end.
func TestDeploymentIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	for _, c := range []struct {
		arguments []string
		code      int
		reason    string
	}{
		{[]string{"hi", "--set", "name=Bob"}, 67, `name: "Bob" is not one of the allowed values: "Ada" or "nobody"`},
		{[]string{"hi"}, 67, "name: a value is required"},
		{[]string{"hi", "--set", "name=Ada", "--set", "nmae=x"}, 67, "no such parameter"},
		{[]string{"hi@9"}, 69, "template \"hi@9\" not found"},
		{[]string{"--type", "greet", "--set", "name=Ada", "--action", "destroy"}, 67, "invalid action"},
		{[]string{"--type", "greet", "--set", "name=nobody", "--wait"}, 9, "OUTPUTS_INVALID"},
		{[]string{}, 2, "give a template, or --type"},
		{[]string{"hi", "--type", "greet", "--set", "name=Ada"}, 1, "hi: No such file"},
		{[]string{"hi", "--set", "name"}, 2, "NAME=VALUE"},
	} {
		out, err := d.Muster(append([]string{"deploy", "--node", "n1"}, c.arguments...)...)
		wantExit(t, err, c.code, "")
		text := out + fmt.Sprint(err)
		if strings.Count(text, c.reason) != 1 || strings.Contains(text, "failed: failed") || !strings.Contains(text, "next") {
			t.Errorf("muster deploy %v prints %q not once, or no next step: %s", c.arguments, c.reason, text)
		}
	}
	check(t, os.WriteFile(filepath.Join(d.node.folder(), "policy.yaml"), []byte("containers:\n  - images: [\""+d.docker.Registry+"/types/*\"]\n"), 0o600))
	out, err := d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--wait")
	wantExit(t, err, 9, "")
	if text := out + fmt.Sprint(err); strings.Count(text, "POLICY_REFUSED") != 1 || !strings.Contains(text, "actions: [container, deployment]") {
		t.Errorf("a node without a rule for deployments: %s", text)
	}
	noContainers(t, d.docker)
}

// A number has the text that its author wrote, through the documents, the services, the node and the container.
func TestNumbersOfADeploymentKeepTheirText(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	const script = `sed 's/.*"set":\(.*\)}/\1/' /state/parameters.json >/state/outputs/copy`
	image := must(d.docker.PushBusybox("types/number", "/bin/sh", "-c", script))(t)
	must(d.Muster("type", "push", d.write(t, "number.yaml", fmt.Sprintf(`
apiVersion: muster/v1
kind: TemplateType
name: number
version: 1.0.0
image: %s
contract: 1
parameters:
  given: {schema: {type: number}, value: 0.10}
  set: {schema: {type: array, items: {type: number}}, required: true}
outputs:
  copy: {schema: {type: array, items: {type: number}}, required: true}
`, image))))(t)
	const numbers = "[9007199254740993,123456789012345678901234567890,0.12345678901234567890,1.10]"
	out := must(d.Muster("deploy", "--type", "number", "--node", "n1", "--set", "set="+numbers, "--wait"))(t)
	for _, want := range []string{"set = " + numbers, "given = 0.10  (type default)", "copy = " + numbers} {
		if !strings.Contains(out, want) {
			t.Errorf("muster deploy --wait prints no %q:\n%s", want, out)
		}
	}
	var all []shownDeployment
	check(t, d.JSON(&all, "deployment", "list"))
	for _, command := range []string{"show", "outputs"} {
		if out := must(d.Muster("deployment", command, "--json", all[0].Deployment))(t); !strings.Contains(out, numbers) {
			t.Errorf("muster deployment %s --json prints %s", command, out)
		}
	}
	if out := must(d.Muster("type", "show", "number"))(t); !strings.Contains(out, `"value": 0.10`) {
		t.Errorf("muster type show prints %s", out)
	}
}

// The list of jobs names what a deployment deploys, and its image if the jobs service does not answer.
func TestJobListNamesTheTemplateOfADeployment(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	id := strings.TrimSpace(must(d.Muster("deploy", "hi", "--node", "n1,missing", "--set", "name=Ada"))(t))
	until(t, "the deployment has ended", func() bool { return d.show(t, id).State == "failed" })
	job := d.show(t, id).Job
	for _, arguments := range [][]string{{"job", "list"}, {"job", "show", job}} {
		if out := must(d.Muster(arguments...))(t); !strings.Contains(out, "deployment of hi@1.4.0") {
			t.Errorf("muster %v prints %s", arguments, out)
		}
	}
	if out := must(d.Muster("job", "show", job))(t); !strings.Contains(out, "Choose a name of the kind `node`") {
		t.Errorf("muster job show prints no next step: %s", out)
	}
	// The same options as muster job logs.
	if out := must(d.Muster("deployment", "logs", id, "--node", "n1"))(t); out != "n1: deploy for Ada\n" {
		t.Errorf("muster deployment logs --node prints %q", out)
	}
	_, err := d.Muster("deployment", "logs", id, "--node", "other")
	if text := fmt.Sprint(err); !strings.Contains(text, "is not a target of the deployment") || !strings.Contains(text, "muster deployment show "+id) {
		t.Errorf("the log of a node that is no target: %s", text)
	}
	_, err = d.Muster("deployment", "logs", id, "--node", "missing")
	wantExit(t, err, 9, "")
	back := killAndHold(t, d.Fleet, fleet.Jobs)
	if out := must(d.Muster("job", "list"))(t); !strings.Contains(out, "deployment of the image "+d.docker.Registry+"/types/greet") {
		t.Errorf("muster job list without the jobs service prints %s", out)
	}
	back()
}

// The operator sees which node the root relay has lost while the deployment runs.
func TestLostNodeOfADeploymentIsNamed(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	id := strings.TrimSpace(must(d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--set", "seconds=60"))(t))
	until(t, "the container runs", func() bool { return len(must(d.docker.Containers())(t)) == 1 })
	until(t, "the deployment runs", func() bool { return strings.Contains(must(d.Muster("deployment", "show", id))(t), "n1: running\n") })
	d.node.agent.End()
	until(t, "the lost node is named", func() bool {
		out := must(d.Muster("deployment", "show", id))(t)
		return strings.Contains(out, "not attached any more while the command runs: n1")
	})
	d.node.start(t)
	must(d.Muster("deployment", "cancel", id))(t)
	until(t, "the deployment is cancelled", func() bool { return d.show(t, id).State == "cancelled" })
	noContainers(t, d.docker)
}

// The output of a deployment names the node that it waits for.
func TestFollowedOutputNamesTheAwaitedNode(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	d.node.agent.End()
	d.node.awaitAttached(t, false)
	id := strings.TrimSpace(must(d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--ttl", "10m"))(t))
	until(t, "the root relay has the command", func() bool { return d.show(t, id).State == "running" })
	ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
	t.Cleanup(cancel)
	command := d.Command(ctx, "deployment", "logs", "-f", id)
	printed := must(command.StderrPipe())(t)
	check(t, command.Start())
	lines := bufio.NewScanner(printed)
	var text string
	for !strings.Contains(text, "unreachable: n1\n") && lines.Scan() {
		text += lines.Text() + "\n"
	}
	if !strings.Contains(text, "unreachable: n1\n") {
		t.Errorf("muster deployment logs -f prints %q", text)
	}
	must(d.Muster("deployment", "cancel", id, "--json"))(t)
	for lines.Scan() {
		text += lines.Text() + "\n"
	}
	if err := command.Wait(); err == nil || !strings.Contains(text, "muster deployment cancel "+id) {
		t.Errorf("it ends with %v: %s", err, text)
	}
	if out, err := d.Muster("deployment", "logs", id, "--node", "nope"); err == nil || strings.Contains(out+err.Error(), "node done") {
		t.Errorf("the output of a node that is no target: %s, %v", out, err)
	}
	if out := must(d.Muster("deployment", "cancel", id, "--json"))(t); !strings.Contains(out, `"node":"n1"`) {
		t.Errorf("a repeated cancellation prints %s", out)
	}
}

// A deployment runs once, and its outcome and all of its output arrive, although every program between is killed.
func TestDeploymentSurvivesKillsOfEachProgram(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	id := strings.TrimSpace(must(d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--set", "seconds=8"))(t))
	printed := func(line string) func() bool {
		return func() bool {
			out, _ := d.Muster("deployment", "logs", id)
			return strings.Contains(out, "n1: "+line+"\n")
		}
	}
	killUntilRestart(t, d.Fleet, fleet.Jobs)
	until(t, "the container prints", printed("line 5"))
	killUntilRestart(t, d.Fleet, fleet.Jobs)
	d.node.agent.End()
	d.node.start(t)
	killUntilRestart(t, d.Fleet, fleet.Relay, "--config", filepath.Join(d.Home, "config", "relay.yaml"))
	check(t, fleet.Until(2*time.Minute, "the deployment succeeds", func() bool { return d.show(t, id).State == "succeeded" }))
	out := must(d.Muster("deployment", "logs", id))(t)
	if want := 160; strings.Count(out, "n1: line ") != want || strings.Count(out, "deploy for Ada") != 1 {
		t.Errorf("%d lines arrived, want %d: %s", strings.Count(out, "n1: line "), want, out)
	}
	if shown := d.show(t, id); len(shown.Nodes) != 1 || shown.Nodes[0].Outputs["text"] != "hello Ada" {
		t.Errorf("the deployment has %+v", shown)
	}
	noContainers(t, d.docker)
}

// A deployment waits for an unreachable relay, reports it, and is cancelled on the node that runs it.
func TestDeploymentIsPendingAndCancelled(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	until(t, "the relay has stored the name of the node", func() bool {
		known, err := os.ReadFile(filepath.Join(d.Home, "relay", "known-nodes"))
		return err == nil && strings.Contains(string(known), "n1")
	})
	back := killAndHold(t, d.Fleet, fleet.Relay, "--config", filepath.Join(d.Home, "config", "relay.yaml"))
	id := strings.TrimSpace(must(d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--set", "seconds=100"))(t))
	until(t, "the deployment says why it is pending", func() bool {
		shown := d.show(t, id)
		return shown.State == "pending" && strings.Contains(shown.Problem, "Connection refused")
	})
	if out := must(d.Muster("deployment", "show", id))(t); !strings.Contains(out, "nothing received yet from 1 of 1 node: n1\n") {
		t.Errorf("muster deployment show prints %s", out)
	}
	back()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(d.Muster("deployment", "show", id))
		}
	})
	until(t, "the container runs", func() bool {
		names := must(d.docker.Containers())(t)
		return len(names) == 1
	})
	must(d.Muster("deployment", "cancel", id))(t)
	until(t, "the deployment is cancelled", func() bool { return d.show(t, id).State == "cancelled" })
	noContainers(t, d.docker)
}
