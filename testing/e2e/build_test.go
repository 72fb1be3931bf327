package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// buildableType returns the document of a type whose templates are built: its image runs /work/main.sh.
func buildableType(image string) string {
	return fmt.Sprintf(`
apiVersion: muster/v1
kind: TemplateType
name: site
version: 1.0.0
image: %s
contract: 1
build: {folder: /work}
outputs:
  text: {schema: {type: string}, required: true}
`, image)
}

func webTemplate(version string) string {
	return fmt.Sprintf("apiVersion: muster/v1\nkind: Template\nname: web\nversion: %s\ntype: site@1.0.0\n", version)
}

// building is a fleet with a type, a node "builder" that builds, and a node "n1" behind a relay that runs what was built.
type building struct {
	*fleet.Fleet
	docker     *fleet.Docker
	builder    *node
	folder     string
	repository string
}

func newBuilding(t *testing.T) *building {
	t.Helper()
	h1 := newHost(t, fleet.NewHost)
	behind := newHost(t, h1.NewHostBehind)
	b := &building{Fleet: up(t, "--bind", "0.0.0.0", "--advertise", h1.Address), folder: t.TempDir()}
	b.docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, b.docker.Close()) })
	b.repository = b.docker.Registry + "/templates/web"
	image := must(b.docker.PushBusybox("types/site", "/bin/sh", "/work/main.sh"))(t)
	environment := []string{"DOCKER_HOST=unix://" + b.docker.Socket}
	newRelay(t, b.Fleet, "r1", h1, at(behind.Address))
	b.builder = join(t, b.Fleet, "builder", "containers:\n  - images: [\""+b.docker.Registry+"/types/*\"]\n    actions: [build]\n"+
		"    repositories: [\"127.0.0.1:*/templates/*\"]\n", nil, environment)
	b.builder.attach(t)
	join(t, b.Fleet, "n1", "containers:\n  - images: [\""+b.docker.Registry+"/templates/*\"]\n    actions: [deployment]\n"+
		"  - images: [\""+b.docker.Registry+"/types/*\"]\n    actions: [ad-hoc]\n",
		behind, environment, "--parent", "r1").attach(t)
	must(b.Muster("type", "push", b.write(t, "site.yaml", buildableType(image))))(t)
	return b
}

func (b *building) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(b.folder, name)
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// build runs `muster template build` for a version of the template "web".
func (b *building) build(t *testing.T, version, from string, more ...string) (string, error) {
	t.Helper()
	return b.Muster(b.buildCommand(t, version, from, more...)...)
}

// buildCommand returns the arguments of build.
func (b *building) buildCommand(t *testing.T, version, from string, more ...string) []string {
	t.Helper()
	arguments := []string{"template", "build", "-f", b.write(t, "web.yaml", webTemplate(version)), "--from", from, "--node", "builder"}
	if !strings.Contains(strings.Join(more, " "), "--repository") {
		more = append(more, "--repository", b.repository)
	}
	return append(arguments, more...)
}

// greeting writes a script that prints a text, and returns its folder.
func (b *building) greeting(t *testing.T, name, text string) string {
	t.Helper()
	b.write(t, name+"/main.sh", ". /work/lib/text.sh\necho \"$text\"\nprintf '%s' \"$text\" >/state/outputs/text\n")
	b.write(t, name+"/lib/text.sh", "text='"+text+"'\n")
	return filepath.Join(b.folder, name)
}

// deploy runs a version on n1, and fails unless it prints the text.
func (b *building) deploy(t *testing.T, version, text string) {
	t.Helper()
	out := must(b.Muster("deploy", version, "--node", "n1", "--wait"))(t)
	if !strings.Contains(out, "n1: "+text+"\n") || !strings.Contains(out, "succeeded") {
		t.Errorf("muster deploy %s prints %s", version, out)
	}
}

// noBuiltImages fails unless the daemon has no image of a build any more, whose tag begins with "muster-".
func (b *building) noBuiltImages(t *testing.T) {
	t.Helper()
	until(t, "the images of builds are removed", func() bool {
		out, err := b.docker.Run("images", "--format", "{{.Tag}}")
		return err == nil && !strings.Contains(out, "muster-")
	})
}

// A user builds a template from a zip, deploys it on another node behind a relay, builds a second version from a folder,
// and returns to the first one. The same files are not built again.
func TestTemplateIsBuiltAndDeployed(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBuilding(t)
	first, second := b.greeting(t, "first", "hello one"), b.greeting(t, "second", "")
	// The command has the small files, and the jobs service the large one.
	b.write(t, "second/data", strings.Repeat("0123456789abcdef", 1<<18))
	b.write(t, "second/lib/text.sh", "text=\"hello $(wc -c </work/data)\"\n")
	zip := filepath.Join(b.folder, "first.zip")
	command := exec.Command("python3", "-m", "zipfile", "-c", zip, "main.sh", "lib")
	command.Dir = first
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out := must(b.build(t, "1.0.0", zip, "--wait"))(t)
	for _, want := range []string{"builder: Step 1/3 : FROM", "COPY [\"files/\", \"/work/\"]", "web@1.0.0", "source      zip, sha256",
		"succeeded", "image       " + b.repository + "@sha256:"} {
		if !strings.Contains(out, want) {
			t.Errorf("muster template build prints no %q:\n%s", want, out)
		}
	}
	b.deploy(t, "web@1.0.0", "hello one")
	if out := must(b.build(t, "1.0.0", first, "--wait"))(t); strings.Contains(out, "Step 1") {
		t.Errorf("the same files are built again: %s", out)
	}
	_, err := b.build(t, "1.0.0", second)
	wantExit(t, err, 70, "VERSION_EXISTS")
	b.builtBefore(t, first)
	b.isHinted(t)

	var created struct {
		Deployment string
		Build      struct{ Repository string }
	}
	check(t, json.Unmarshal([]byte(must(b.build(t, "2.0.0", second, "--json"))(t)), &created))
	if created.Build.Repository != b.repository {
		t.Errorf("muster template build --json prints %+v", created)
	}
	id := created.Deployment
	until(t, "the second build has succeeded", func() bool {
		return strings.Contains(must(b.Muster("deployment", "show", id))(t), "succeeded")
	})
	if out := must(b.Muster("deployment", "logs", id))(t); !strings.Contains(out, "builder: Successfully built") {
		t.Errorf("muster deployment logs prints %s", out)
	}
	b.deploy(t, "web", "hello 4194304")
	b.deploy(t, "web@1", "hello one")

	var shown struct {
		Image  string
		Source struct{ Kind, Sha256 string }
	}
	check(t, json.Unmarshal([]byte(must(b.Muster("template", "show", "--json", "web@1.0.0"))(t)), &shown))
	if !strings.HasPrefix(shown.Image, b.repository+"@sha256:") || shown.Source.Kind != "zip" || len(shown.Source.Sha256) != 64 {
		t.Errorf("muster template show prints %+v", shown)
	}
	diff := must(b.Muster("template", "diff", "web@1", "web@2"))(t)
	for _, want := range []string{"- /image: ", "+ /image: ", "- /source/kind: \"zip\"", "+ /source/kind: \"folder\"", "- /files/lib~1text.sh: ", "+ /files/lib~1text.sh: ", "+ /files/data: "} {
		if !strings.Contains(diff, want) {
			t.Errorf("muster template diff prints no %q: %s", want, diff)
		}
	}
	must(b.build(t, "3.0.0", "template:web@2", "--wait"))(t)
	b.deploy(t, "web@3", "hello 4194304")
	if diff := must(b.Muster("template", "diff", "web@2", "web@3"))(t); strings.Contains(diff, "/files/") || strings.Contains(diff, "/source/") {
		t.Errorf("a version with the files of another one differs in them: %s", diff)
	}
	if out := must(b.Muster("job", "list"))(t); !strings.Contains(out, "build of web@2.0.0") {
		t.Errorf("muster job list prints %s", out)
	}
	_, err = b.Muster("deployment", "retry", id)
	wantExit(t, err, 73, "muster template build")
	b.noBuiltImages(t)
	noContainers(t, b.docker)
}

// builtBefore fails unless a build of the same files prints the stored image as a deployment, and says that it ignores
// another repository.
func (b *building) builtBefore(t *testing.T, from string) {
	t.Helper()
	var built struct {
		State, Action, Template string
		Build                   struct {
			Repository, Image string
			Source            struct{ Kind string }
		}
	}
	other := b.docker.Registry + "/templates/other"
	out, stderr := b.both(t, b.buildCommand(t, "1.0.0", from, "--repository", other, "--json")...)
	check(t, json.Unmarshal([]byte(out), &built))
	if built.State != "succeeded" || built.Action != "build" || built.Template != "web@1.0.0" || built.Build.Repository != b.repository ||
		!strings.HasPrefix(built.Build.Image, b.repository+"@sha256:") || built.Build.Source.Kind != "zip" {
		t.Errorf("a build of the same files prints %s", out)
	}
	prints(t, stderr, built.Build.Image, "Nothing is pushed to "+other, "Deploy it: muster deploy web@1.0.0 --node NODE --wait")
}

// isHinted fails unless new types and templates are printed with the next command, and with what may be a mistake.
func (b *building) isHinted(t *testing.T) {
	t.Helper()
	typeFile, file := filepath.Join(b.folder, "site.yaml"), b.write(t, "plain.yaml", strings.Replace(webTemplate("1.0.0"), "web", "plain", 1)+
		"parameters: {zone: {value: eu}}\n")
	_, stderr := b.both(t, "type", "push", typeFile)
	prints(t, stderr, "`type: site@1.0.0`", "muster template build -f TEMPLATE.yaml --from SOURCE")
	_, stderr = b.both(t, "template", "create", "-f", file)
	prints(t, stderr, "It has no files: it runs the image of site@1.0.0", "muster template build -f "+file+" --from SOURCE",
		"It adds the parameter zone to those of site@1.0.0.", "Deploy it: muster deploy plain@1.0.0 --node NODE --wait")
}

// both runs a command, which has to succeed, and returns what it prints on stdout and stderr.
func (b *building) both(t *testing.T, arguments ...string) (stdout, stderr string) {
	t.Helper()
	command, out, errs := inBackground(t, b.Fleet, arguments...)
	if err := command.Wait(); err != nil {
		t.Fatalf("muster %v: %v: %s", arguments, err, errs)
	}
	return out.String(), errs.String()
}

// closeServer does not wait for requests that get no answer: the daemon keeps their connections.
func closeServer(server *httptest.Server) {
	server.CloseClientConnections()
	server.Close()
}

// A node builds only what its policy admits, and each fault of a registry has its reason. No version is created.
func TestBuildFailsWithAReason(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBuilding(t)
	from := b.greeting(t, "first", "hello")
	target := must(url.Parse("http://" + b.docker.Registry))(t)
	registry := func(change func(*http.Response) error, handle func(http.ResponseWriter, *http.Request) bool) string {
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ModifyResponse = change
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if handle == nil || !handle(w, r) {
				proxy.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(func() { closeServer(server) })
		return strings.TrimPrefix(server.URL, "http://") + "/templates/web"
	}
	upload := func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/uploads/")
	}
	refusing := registry(nil, func(w http.ResponseWriter, r *http.Request) bool {
		if upload(r) {
			http.Error(w, `{"errors":[{"code":"DENIED","message":"quota exceeded"}]}`, http.StatusForbidden)
		}
		return upload(r)
	})
	stalling := registry(nil, func(_ http.ResponseWriter, r *http.Request) bool {
		if upload(r) {
			<-r.Context().Done()
		}
		return upload(r)
	})
	lying := registry(func(r *http.Response) error {
		if r.Request.Method != http.MethodPut && strings.Contains(r.Request.URL.Path, "/manifests/muster-") {
			r.Header.Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
		}
		return nil
	}, nil)
	for _, c := range []struct{ repository, reason string }{
		{refusing, "IMAGE_PUSH_FAILED"},
		{stalling, "TIME_LIMIT: the build ran for longer than"},
		{lying, "IMAGE_PUSH_FAILED"}, // Docker asks for the manifest of the false digest
		{"127.0.0.1:1/templates/web", "IMAGE_PUSH_FAILED"},
		{b.docker.Registry + "/other/web", "POLICY_REFUSED"},
	} {
		out, err := b.build(t, "1.0.0", from, "--wait", "--deadline", "20s", "--repository", c.repository)
		wantExit(t, err, 9)
		if text := out + fmt.Sprint(err); !strings.Contains(text, c.reason) || !strings.Contains(text, "next") {
			t.Errorf("a build for %s prints no %s, or no next step: %s", c.repository, c.reason, text)
		}
	}
	if out := must(b.Muster("template", "list", "--json"))(t); strings.TrimSpace(out) != "[]" {
		t.Errorf("a failed build created a version: %s", out)
	}
	for _, c := range []struct {
		code   int
		reason string
		more   []string
	}{
		{67, "INVALID_BUILD", []string{"--repository", "web"}},
		{67, "INVALID_BUILD", []string{"--repository", b.repository + ":1"}},
	} {
		_, err := b.build(t, "1.0.0", from, c.more...)
		wantExit(t, err, c.code, c.reason)
	}
	b.noBuiltImages(t)
}

// A build is cancelled while it pushes, and is lost with its agent. A rerun of the same version works, also if it waits
// for the node.
func TestBuildIsCancelledAndLostWithItsAgent(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBuilding(t)
	from := b.greeting(t, "first", "hello")
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(func() { closeServer(silent) })
	repository := strings.TrimPrefix(silent.URL, "http://") + "/templates/web"
	begin := func() string {
		id := strings.TrimSpace(must(b.build(t, "1.0.0", from, "--repository", repository))(t))
		until(t, "the image is pushed", func() bool {
			out, _ := b.Muster("deployment", "logs", id)
			return strings.Contains(out, "The push refers to repository")
		})
		return id
	}
	ends := func(id, text string) {
		until(t, "the build ends as "+text, func() bool {
			return strings.Contains(must(b.Muster("deployment", "show", id))(t), text)
		})
	}
	id := begin()
	must(b.Muster("deployment", "cancel", id))(t)
	ends(id, "cancelled")
	id = begin()
	b.builder.agent.End()
	b.builder.start(t)
	ends(id, "failed")
	if out := must(b.Muster("template", "list", "--json"))(t); strings.TrimSpace(out) != "[]" {
		t.Errorf("an interrupted build created a version: %s", out)
	}
	b.builder.agent.End()
	id = strings.TrimSpace(must(b.build(t, "1.0.0", from, "--ttl", "5m"))(t))
	b.builder.start(t)
	ends(id, "succeeded\n")
	b.deploy(t, "web", "hello")
}
