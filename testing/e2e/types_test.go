package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var zeroImage = regexp.MustCompile(`image: registry\.example/\S+`)

// pushType pushes a type of deploy/types with the image of this registry.
func (b *building) pushType(t *testing.T, name string, packages ...string) {
	t.Helper()
	root := filepath.Join("..", "..")
	image := must(b.docker.PushType(must(filepath.Abs(root))(t), name, packages...))(t)
	document := must(os.ReadFile(filepath.Join(root, "deploy/types", name, name+".yaml")))(t)
	must(b.Muster("type", "push", b.write(t, name+".yaml", zeroImage.ReplaceAllString(string(document), "image: "+image))))(t)
}

// prints fails unless the output has these texts.
func prints(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not printed: %s", want, out)
		}
	}
}

// A build of an image without Go or Docker says what is missing.
func TestBuildOfATypeNamesMissingPrograms(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"deploy/lib.sh", "deploy/types/build", "deploy/conformance/build"} {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		check(t, os.WriteFile(filepath.Join(root, name), must(os.ReadFile(filepath.Join("../..", name)))(t), 0o700))
	}
	programs := filepath.Join(root, "programs") // no docker
	check(t, os.Mkdir(programs, 0o700))
	for _, name := range []string{"sh", "dirname", "sed", "sort", "head", "printf", "mktemp"} {
		check(t, os.Symlink(must(exec.LookPath(name))(t), filepath.Join(programs, name)))
	}
	check(t, os.Symlink(must(exec.LookPath("go"))(t), filepath.Join(programs, "go")))
	for _, c := range []struct{ release, want string }{
		{"99.1", "Go 99.1 or newer not found"},
		{"1.20", "docker not found"},
	} {
		check(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module x\n\ngo "+c.release+"\n"), 0o600))
		for _, arguments := range [][]string{{"deploy/types/build", "shell", "tag"}, {"deploy/conformance/build", "tag"}} {
			command := exec.Command("sh", append([]string{filepath.Join(root, arguments[0])}, arguments[1:]...)...)
			command.Env = []string{"PATH=" + programs, "HOME=" + root}
			out, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("%v without a program: %v: %s", arguments, err, out)
			}
		}
	}
}

// The types that are shipped pass parameters to the files of a deployment, and to the playbook of a template.
func TestShippedTypesPassParameters(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBuilding(t)
	b.pushType(t, "shell", "busybox")
	b.write(t, "files/main.sh", "echo \"region $PARAM_region, price $PARAM_price\"\n")
	b.write(t, "files/destroy.sh", "echo \"removed from $PARAM_region\"\n")
	must(b.Muster("template", "create", b.write(t, "checks.yaml", `
apiVersion: muster/v1
kind: Template
name: checks
version: 1.0.0
type: shell@1.0.0
parameters:
  region: {schema: {type: string}, required: true}
  price: {schema: {type: number}, value: 0.10}
`)))(t)
	deploy := []string{"deploy", "checks", "--files", filepath.Join(b.folder, "files"), "--node", "n1", "--set", "region=eu", "--wait"}
	prints(t, must(b.Muster(deploy...))(t), "n1: region eu, price 0.10\n", "succeeded")
	prints(t, must(b.Muster(append(deploy, "--action", "destroy")...))(t), "n1: removed from eu\n", "succeeded")

	b.pushType(t, "ansible", "ansible-core", "openssh-client")
	task := "- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n"
	b.write(t, "site/site.yml", task+"    - copy: {content: \"{{ greeting }} {{ ports[1] }}\", dest: /state/outputs/text}\n")
	b.write(t, "site/destroy.yml", task+"    - debug: {msg: \"removes {{ greeting }}\"}\n")
	must(b.Muster("template", "build", "-f", b.write(t, "play.yaml", `
apiVersion: muster/v1
kind: Template
name: play
version: 1.0.0
type: ansible@1.0.0
parameters:
  greeting: {schema: {type: string}, required: true}
  ports: {schema: {type: array, items: {type: integer}}, value: [80, 443]}
outputs:
  text: {schema: {type: string}, required: true}
`), "--from", filepath.Join(b.folder, "site"), "--node", "builder", "--repository", b.docker.Registry+"/templates/play", "--wait"))(t)
	play := []string{"deploy", "play", "--node", "n1", "--set", "greeting=hello", "--wait"}
	prints(t, must(b.Muster(play...))(t), "text = \"hello 443\"", "succeeded")
	prints(t, must(b.Muster(append(play, "--action", "destroy")...))(t), "removes hello", "succeeded")
	noContainers(t, b.docker)
}
