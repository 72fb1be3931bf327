package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// bundled is a fleet with templates, and a site without a way to its registry.
type bundled struct {
	outside *deploying // has the types greet, site and conformance, and the templates hi and web, which was built
	site    *deploying // has a registry behind a link, and a node that finds the images of the outside there
	link    *fleet.Link
	bundle  string
	mirror  string // HOST/PREFIX
}

func newBundled(t *testing.T) *bundled {
	t.Helper()
	b := &bundled{outside: newDeploying(t), site: &deploying{Fleet: up(t), folder: t.TempDir()}}
	o, s := b.outside, b.site
	o.setPolicy(t, "actions: [deployment, build]\n    repositories: [\""+o.docker.Registry+"/templates/*\"]")
	site := must(o.docker.PushBusybox("types/site", "/bin/sh", "/work/main.sh"))(t)
	must(o.Muster("type", "push", o.write(t, "site.yaml", buildableType(site))))(t)
	document := string(must(os.ReadFile("../../deploy/conformance/conformance.yaml"))(t))
	image := must(o.docker.PushConformance("../.."))(t)
	document = regexp.MustCompile(`(?m)^image: .*$`).ReplaceAllString(document, "image: "+image)
	must(o.Muster("type", "push", o.write(t, "conformance.yaml", document)))(t)
	check(t, os.Mkdir(filepath.Join(o.folder, "files"), 0o700))
	o.write(t, "files/main.sh", "echo built outside\nprintf outside >/state/outputs/text\n")
	must(o.Muster("template", "build", "-f", o.write(t, "web.yaml", webTemplate("1.0.0")), "--from", filepath.Join(o.folder, "files"),
		"--node", "n1", "--repository", o.docker.Registry+"/templates/web", "--wait"))(t)
	b.bundle = filepath.Join(o.folder, "site.tar")

	s.docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, s.docker.Close()) })
	b.link = must(fleet.NewLink(nil, "127.0.0.1:0", s.docker.Registry))(t)
	t.Cleanup(func() { check(t, b.link.Close()) })
	b.mirror = b.link.Address + "/outside"
	policy := "containers:\n  - images: [\"" + o.docker.Registry + "/*\"]\n    actions: [deployment]\n"
	s.node = join(t, s.Fleet, "n1", policy, nil, []string{"DOCKER_HOST=unix://" + s.docker.Socket})
	mirrors := must(json.Marshal(map[string]any{"mirrors": map[string]string{o.docker.Registry: b.mirror}}))(t)
	check(t, os.WriteFile(filepath.Join(s.node.folder(), "registry.json"), mirrors, 0o600))
	s.node.attach(t)
	return b
}

// storeEarlierDocuments stores a type and a template that this Muster rejects, as an earlier one may have done, and a
// template of that type.
func (b *bundled) storeEarlierDocuments(t *testing.T) {
	t.Helper()
	must(b.outside.Muster("down"))(t)
	sql(t, filepath.Join(b.outside.Home, "jobs/jobs.db"), `
		INSERT INTO documents SELECT 0, 'early', rank, version, '{}', created_by, 1 FROM documents WHERE kind = 0 AND name = 'greet';
		INSERT INTO documents SELECT 1, 'late', rank, version, '{}', created_by, 1 FROM documents WHERE kind = 1 AND name = 'hi';
		INSERT INTO documents SELECT 1, 'later', rank, version, replace(document, 'greet@1.0.0', 'early@1.0.0'), created_by, 1
			FROM documents WHERE kind = 1 AND name = 'hi';`)
	check(t, b.outside.Up())
	for _, name := range []string{"type show early", "template show late", "template show later"} {
		must(b.outside.Muster(strings.Fields(name)...))(t)
	}
}

// pull writes all versions to the bundle.
func (b *bundled) pull(t *testing.T) {
	t.Helper()
	must(b.outside.Muster("template", "pull", "--all", "--bundle", b.bundle))(t)
}

// push pushes the bundle to the registry of the site.
func (b *bundled) push() (string, error) {
	return b.site.Muster("template", "push", "--bundle", b.bundle, "--registry", b.mirror)
}

// stored returns what the jobs service and the registry of the site have.
func (b *bundled) stored(t *testing.T) string {
	t.Helper()
	return must(b.site.Muster("type", "list"))(t) + must(b.site.Muster("template", "list"))(t)
}

// An operator carries all types, templates and images of a fleet to a site that does not reach their registry. There they
// have the same content, and run on a node.
func TestBundleCarriesTemplatesToASiteWithoutANetwork(t *testing.T) {
	t.Parallel()
	b := newBundled(t)
	b.storeEarlierDocuments(t)
	var pulled struct {
		Types, Templates, Images []string
		Bytes                    int64
	}
	check(t, b.outside.JSON(&pulled, "template", "pull", "--all", "--bundle", b.bundle))
	if len(pulled.Types) != 3 || len(pulled.Templates) != 2 || len(pulled.Images) != 4 || pulled.Bytes < 1<<20 {
		t.Errorf("muster template pull prints %+v", pulled)
	}
	left := must(filepath.Glob(filepath.Join(b.outside.folder, ".muster-*")))(t)
	if len(left) != 0 {
		t.Errorf("muster template pull leaves %v", left)
	}
	check(t, b.outside.docker.StopRegistry())

	out := must(b.push())(t)
	for _, want := range []string{"image " + b.mirror + "/types/greet@sha256:", "type greet@1.0.0: pushed\n", "template web@1.0.0: pushed\n",
		"template hi@1.4.0: pushed\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("muster template push prints no %q:\n%s", want, out)
		}
	}
	for _, command := range []string{"type show greet", "type show conformance", "template show hi", "template show web"} {
		arguments := strings.Fields(command)
		if ours, theirs := must(b.site.Muster(arguments...))(t), must(b.outside.Muster(arguments...))(t); ours != theirs {
			t.Errorf("muster %s prints %s at the site, and %s outside", command, ours, theirs)
		}
	}
	out = must(b.site.Muster("deploy", "hi@1.4", "--node", "n1", "--set", "name=Ada", "--wait"))(t)
	if !strings.Contains(out, "n1: deploy for Ada\n") || !strings.Contains(out, "succeeded") {
		t.Errorf("muster deploy hi prints %s", out)
	}
	out = must(b.site.Muster("deploy", "web", "--node", "n1", "--wait"))(t)
	if !strings.Contains(out, "n1: built outside\n") || !strings.Contains(out, "succeeded") {
		t.Errorf("muster deploy web prints %s", out)
	}
	if out, _ = b.site.Muster("conformance", "run", "--node", "n1", "--json"); !strings.Contains(out, `"probes"`) {
		t.Errorf("muster conformance run prints %s", out)
	}

	type items []struct{ Pushed bool }
	var again struct {
		Types, Templates, Images items
		Mirrors                  map[string]string
	}
	check(t, b.site.JSON(&again, "template", "push", "--bundle", b.bundle, "--registry", b.mirror))
	if len(again.Types) != 3 || len(again.Templates) != 2 || len(again.Images) != 4 || again.Mirrors[b.outside.docker.Registry] != b.mirror {
		t.Errorf("the second push prints %+v", again)
	}
	for _, item := range slices.Concat(again.Types, again.Templates, again.Images) {
		if item.Pushed {
			t.Errorf("the second push pushes again: %+v", again)
		}
	}
}

// A push whose link is cut stores no document, and its repetition completes it.
func TestPushOfABundleIsRepeatedAfterALostLink(t *testing.T) {
	t.Parallel()
	b := newBundled(t)
	b.pull(t)
	before := b.stored(t)
	done := b.link.CutAfter(200 << 10)
	refused := make(chan struct{})
	go func() {
		<-done
		b.link.Refuse()
		close(refused)
	}()
	_, err := b.push()
	wantExit(t, err, 1, "IMAGE_COPY_FAILED", b.mirror, "run the command again")
	<-refused
	if after := b.stored(t); after != before {
		t.Errorf("a failed push has stored %s", after)
	}
	b.link.Heal()
	must(b.push())(t)
	must(b.site.Muster("deploy", "hi@1.4", "--node", "n1", "--set", "name=Ada", "--wait"))(t)
}

// A damaged bundle, and one with another document of a stored version, are refused before anything is pushed.
func TestRefusedBundleChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBundled(t)
	b.pull(t)
	content := must(os.ReadFile(b.bundle))(t)
	damaged := filepath.Join(b.site.folder, "damaged.tar")
	before := b.stored(t)
	refuse := func(what string, bytes []byte) {
		t.Helper()
		check(t, os.WriteFile(damaged, bytes, 0o600))
		_, err := b.site.Muster("template", "push", "--bundle", damaged, "--registry", b.mirror)
		wantExit(t, err, 1, "BUNDLE_UNUSABLE", "Nothing was pushed")
		if after := b.stored(t); after != before || b.link.Passed(fleet.Up) != 0 {
			t.Errorf("a bundle with %s has stored %s", what, after)
		}
	}
	refuse("half of its bytes", content[:len(content)/2])
	flipped := bytes.Clone(content)
	flipped[bytes.LastIndex(flipped, []byte(`"greet"`))] ^= 1
	refuse("a changed document", flipped)

	other := strings.Replace(greetType("1.0.0", "r.example/greet@sha256:"+strings.Repeat("a", 64)), "contract: 1", "contract: 1\ndescription: other", 1)
	must(b.site.Muster("type", "push", b.site.write(t, "other.yaml", other)))(t)
	before = b.stored(t)
	_, err := b.push()
	wantExit(t, err, 1, "VERSION_EXISTS", "template type greet@1.0.0", "Nothing was pushed")
	if after := b.stored(t); after != before || b.link.Passed(fleet.Up) != 0 {
		t.Errorf("a refused bundle has stored %s", after)
	}
}

// A pull that is killed leaves no file with the name of the bundle, and a pull to an existing bundle replaces it only at
// its end.
func TestFailedPullLeavesTheBundle(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	bundle := filepath.Join(d.folder, "site.tar")
	must(d.Muster("template", "pull", "hi@1.4", "--bundle", bundle))(t)
	content := must(os.ReadFile(bundle))(t)
	missing := greetType("2.0.0", d.docker.Registry+"/types/none@sha256:"+strings.Repeat("a", 64))
	must(d.Muster("type", "push", d.write(t, "missing.yaml", missing)))(t)
	_, err := d.Muster("template", "pull", "hi@1.4", "--type", "greet@2.0.0", "--bundle", bundle)
	wantExit(t, err, 1, "IMAGE_COPY_FAILED", "types/none")
	if after := must(os.ReadFile(bundle))(t); !bytes.Equal(after, content) {
		t.Error("a failed pull has changed the bundle")
	}
	id := greetType("3.0.0", "sha256:"+strings.Repeat("a", 64))
	must(d.Muster("type", "push", d.write(t, "id.yaml", id)))(t)
	_, err = d.Muster("template", "pull", "--type", "greet@3.0.0", "--bundle", bundle)
	wantExit(t, err, 1, "IMAGE_NOT_PORTABLE", "greet@3.0.0")

	document := filepath.Join(d.folder, "hi.json")
	must(d.Muster("template", "pull", "hi@1.4", "-o", document))(t)
	if text := must(os.ReadFile(document))(t); !json.Valid(text) || !bytes.Contains(text, []byte(`"version":"1.4.0"`)) {
		t.Errorf("muster template pull -o writes %s", text)
	}
	must(d.Muster("template", "create", "-f", document))(t)
	left := must(filepath.Glob(filepath.Join(d.folder, ".muster-*")))(t)
	if len(left) != 0 {
		t.Errorf("muster template pull leaves %v", left)
	}
}
