package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

const siteType = `
apiVersion: muster/v1
kind: TemplateType
name: site
version: 1.0.0
image: %s
contract: 1
limits: {memory: 64MiB, time: 5m}
build: {folder: /work}
parameters:
  seconds: {schema: {type: integer}, delegation: default, value: 0}
secrets:
  db: {required: true, description: the password of the database}
`

const webTemplate = `
apiVersion: muster/v1
kind: Template
name: web
version: %s
type: site@1.0.0
`

// siteScript waits as long as the deployment says, and changes the workspace if there is one.
const siteScript = `
seconds=$(sed -n 's/.*"seconds":\([0-9]*\).*/\1/p' /state/parameters.json)
for i in $(seq $((seconds * 10))); do echo "line $i"; sleep 0.1; done
[ ! -d /state/workspace ] || cp /work/main.sh /state/workspace
`

// newBuilding is a fleet with a type whose templates are built, a stored secret, and a node. It returns the image of the type.
func newBuilding(t *testing.T) (d deploying, base string) {
	t.Helper()
	docker, err := fleet.StartDocker()
	check(t, err)
	d = deploying{up(t), docker, t}
	t.Cleanup(func() { check(t, docker.Close()) })
	base, err = docker.PushBusybox("types/site", "/bin/sh", "/work/main.sh")
	check(t, err)
	d.muster("type", "push", d.write("site.yaml", fmt.Sprintf(siteType, base)))
	d.muster("secret", "put", "prod/db", "--file", d.write("value", "tulip-7-umbrella"))
	return d, base
}

// site returns a folder with the files of the template.
func (d deploying) site() string {
	d.t.Helper()
	folder := d.t.TempDir()
	check(d.t, os.WriteFile(filepath.Join(folder, "main.sh"), []byte(siteScript), 0o600))
	return folder
}

// build builds a version of the template, and returns the id of the build.
func (d deploying) build(version, from string) string {
	d.t.Helper()
	return strings.TrimSpace(d.muster("template", "build", "-f", d.write("web.yaml", fmt.Sprintf(webTemplate, version)), "--from", from, "--node", "n1",
		"--repository", d.docker.Registry+"/templates/web"))
}

// A template is built, and deployed with a secret and a workspace by the command of the form. Each page names the image
// that runs, and the base apart from it.
func TestDashboardShowsBuiltTemplates(t *testing.T) {
	t.Parallel()
	d, base := newBuilding(t)
	d.attach("n1", d.docker)
	source := d.site()
	p := newPage(t)
	p.signIn(d.Fleet)
	id := d.build("1.0.0", source)
	p.visit("#/deployments/" + id)
	p.untilShown("h1 + [data-state=succeeded]")
	p.untilText("[data-test=image]", "Built image "+d.docker.Registry+"/templates/web@sha256:")
	image := p.text("[data-test=image] code")
	p.has("[data-test=base]", "Base, the image of the type "+base)
	p.has("[data-test=repository]", d.docker.Registry+"/templates/web")
	p.has("[data-test=source]", "folder", "SHA-256 of the files")
	p.narrow()

	p.visit("#/templates/web@1.0.0")
	p.untilText("[data-test=image]", "Image, built for this version "+image)
	p.has("[data-test=base]", base)
	p.has("[data-test=source]", "folder")
	p.enter("deploy-targets", "n1,n2")
	p.enter("secret-db", "prod/db")
	p.enter("deploy-workspace", "shop")
	p.untilText(problems, "Workspace: a deployment with a workspace runs on one node")
	p.enter("deploy-targets", "n1")
	p.narrow()
	line := p.text("[aria-labelledby=deploy] .command code")
	d.shell(line + " --skip-conformance")

	p.visit("#/deployments")
	p.untilShown("[aria-labelledby=deployments] tr [data-state=succeeded]")
	p.click("[aria-labelledby=deployments] tbody a")
	p.untilText("[data-test=image]", "Image "+image)
	p.has("[aria-labelledby=secrets] tr[data-secret=db]", "db", "prod/db", "1")
	p.has("[data-test=conformance]", "not checked")
	p.has("[data-test=workspace]", "shop, began empty; makes a new version")
	p.narrow()

	// The policy does not admit the repository of this one.
	refused := strings.TrimSpace(d.muster("template", "build", "-f", d.write("web.yaml", fmt.Sprintf(webTemplate, "2.0.0")), "--from", source, "--node", "n1",
		"--repository", d.docker.Registry+"/other/web"))
	p.visit("#/deployments/" + refused)
	p.untilText(".notice.bad", "The build failed")
	p.has("tr[data-node=n1] td[data-label=Outcome]", "refused")
	p.has("[data-test=base]", base)
	p.narrow()
}

// The outcome of a node that was given up arrives when its agent is back, and replaces that of the root relay.
func TestDashboardShowsLateOutcomes(t *testing.T) {
	t.Parallel()
	d, _ := newBuilding(t)
	environment := d.join("n1", d.docker)
	agent := d.startAgent("n1", environment)
	id := d.build("1.0.0", d.site())
	p := newPage(t)
	p.signIn(d.Fleet)
	p.visit("#/deployments/" + id)
	p.untilShown("h1 + [data-state=succeeded]")
	id = strings.TrimSpace(d.muster("deploy", "web", "--node", "n1", "--set", "seconds=12", "--secret", "db=prod/db", "--deadline", "15s"))
	p.visit("#/deployments/" + id)
	p.untilText(".log", "line 2")
	agent.End()
	p.untilShown("h1 + [data-state=failed]")
	p.untilText("tr[data-node=n1][data-outcome=timed_out] td[data-label=Outcome]", "timed out")
	d.startAgent("n1", environment)
	p.untilShown("h1 + [data-state=succeeded]")
	p.has("tr[data-node=n1][data-outcome=succeeded]", "succeeded reported late; before: timed out")
	p.untilText(".log", "line 120") // the rest of the output
	p.has("[data-test=late]", "the outcome of a node that had been given up")
	p.narrow()
}
