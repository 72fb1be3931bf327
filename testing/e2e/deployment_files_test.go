package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scriptType returns the document of an ad-hoc type, which runs a script in an image as it is.
func scriptType(image string) string {
	return fmt.Sprintf(`
apiVersion: muster/v1
kind: TemplateType
name: shell
version: 1.0.0
image: %s
adHoc: true
command: [/bin/sh, /files/main.sh]
contract: 1
parameters:
  name: {schema: {type: string}, delegation: default, value: Ada}
outputs:
  text: {schema: {type: string}}
`, image)
}

const scriptTemplate = `
apiVersion: muster/v1
kind: Template
name: checks
version: 1.0.0
type: shell@1.0.0
parameters:
  name: {delegation: fixed, value: Grace}
`

// An operator runs a folder of files in an image as it is. The node's policy has to admit that.
func TestFilesAreDeployedWithAnAdHocType(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	image := must(d.docker.PushBusybox("types/plain", "/bin/false"))(t)
	must(d.Muster("type", "push", d.write(t, "shell.yaml", scriptType(image))))(t)
	must(d.Muster("template", "create", "-f", d.write(t, "checks.yaml", scriptTemplate)))(t)
	files := filepath.Join(d.folder, "checks")
	check(t, os.MkdirAll(filepath.Join(files, "lib"), 0o700))
	main := "name=$(sed -n 's/.*\"name\":\"\\([^\"]*\\)\".*/\\1/p' /state/parameters.json)\n" +
		"/files/lib/greet.sh $name && echo \"hello $name\" >/state/outputs/text\n"
	check(t, os.WriteFile(filepath.Join(files, "main.sh"), []byte(main), 0o600))
	check(t, os.WriteFile(filepath.Join(files, "lib", "greet.sh"), []byte("#!/bin/sh\necho greeting $1\n"), 0o700))

	out, err := d.Muster("deploy", files, "--type", "shell", "--node", "n1", "--wait")
	wantExit(t, err, 9, "")
	if text := out + fmt.Sprint(err); !strings.Contains(text, "POLICY_REFUSED") || !strings.Contains(text, "ad-hoc") {
		t.Errorf("a node without a rule for ad-hoc deployments: %s", text)
	}
	d.setPolicy(t, "actions: [ad-hoc]")
	out = must(d.Muster("deploy", files, "--type", "shell", "--node", "n1", "--wait"))(t)
	for _, want := range []string{"n1: greeting Ada\n", "succeeded", "lib/greet.sh", `n1: text = "hello Ada"`} {
		if !strings.Contains(out, want) {
			t.Errorf("muster deploy prints no %q:\n%s", want, out)
		}
	}
	out = must(d.Muster("deploy", "checks", "--files", files, "--node", "n1", "--wait"))(t)
	if !strings.Contains(out, "n1: greeting Grace\n") {
		t.Errorf("the template of an ad-hoc type prints:\n%s", out)
	}
	for _, c := range []struct {
		arguments []string
		code      int
		reason    string
	}{
		{[]string{"--type", "shell"}, 67, "is ad-hoc, and there are none"},
		{[]string{"checks"}, 67, "is ad-hoc, and there are none"},
		{[]string{"hi", "--files", files, "--set", "name=Ada"}, 67, "takes none"},
		{[]string{files, "--type", "shell", "--files", files}, 2, "--files is for a template"},
		{[]string{filepath.Join(files, "none"), "--type", "shell"}, 1, "No such file"},
		{[]string{files, "--node", "n1"}, 67, "NAME@VERSION"},
	} {
		out, err := d.Muster(append([]string{"deploy", "--node", "n1"}, c.arguments...)...)
		wantExit(t, err, c.code, "")
		if text := out + fmt.Sprint(err); !strings.Contains(text, c.reason) {
			t.Errorf("muster deploy %v prints no %q: %s", c.arguments, c.reason, text)
		}
	}
	noContainers(t, d.docker)
}
