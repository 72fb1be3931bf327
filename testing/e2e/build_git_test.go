package e2e

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// isInterrupted fails unless Ctrl-C ends a build whose git waits for a server.
func (b *building) isInterrupted(t *testing.T) {
	t.Helper()
	asked := make(chan struct{}, 1)
	silent := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(func() { closeServer(silent) })
	ca := b.write(t, "silent.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: silent.Certificate().Raw})))
	from := "git+" + silent.URL + "/web.git@main"
	command, _, stderr := inBackground(t, b.Fleet, b.buildCommand(t, "1.0.0", from, "--git-ca", ca)...)
	select {
	case <-asked:
	case <-time.After(soon):
		t.Fatal("git asks the server for nothing")
	}
	if code := interrupt(t, command, syscall.SIGINT); code != 130 || !strings.Contains(stderr.String(), "nothing was deployed or built") {
		t.Errorf("an interrupted build ends with %d: %s", code, stderr)
	}
}

// gitServer serves the repositories of a folder by https, and returns its address and its CA.
func gitServer(t *testing.T, folder string) (address, ca string) {
	t.Helper()
	path := strings.TrimSpace(string(must(exec.Command("git", "--exec-path").Output())(t)))
	mux := http.NewServeMux()
	mux.Handle("/", &cgi.Handler{Path: filepath.Join(path, "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + folder,
		"GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
	plain := httptest.NewServer(mux)
	t.Cleanup(plain.Close)
	mux.HandleFunc("/private.git/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/moved.git/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+strings.Replace(r.URL.RequestURI(), "moved", "web", 1), http.StatusFound)
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	ca = filepath.Join(folder, "ca.pem")
	check(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	return strings.TrimPrefix(server.URL, "https://"), ca
}

// A template is built from a commit of a real git server. Everything else that git could do is refused.
func TestTemplateIsBuiltFromGit(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	b := newBuilding(t)
	repositories := filepath.Join(b.folder, "git")
	git := func(arguments ...string) string {
		command := exec.Command("git", arguments...)
		command.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + b.folder, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	work := b.greeting(t, "work/site", "hello from git")
	// The attributes of the repository change no file.
	b.write(t, "work/site/.gitattributes", "lib export-ignore\nmain.sh text eol=crlf\n")
	work = filepath.Dir(work)
	git("init", "-q", "-b", "main", work)
	git("-C", work, "add", ".")
	git("-C", work, "commit", "-q", "-m", "one")
	commit := git("-C", work, "rev-parse", "HEAD")
	git("-C", work, "checkout", "-q", "-b", "link")
	check(t, os.Symlink("/etc/passwd", filepath.Join(work, "site", "passwd")))
	git("-C", work, "add", ".")
	git("-C", work, "commit", "-q", "-m", "link")
	git("-C", work, "checkout", "-q", "-b", "module", "main")
	git("-C", work, "update-index", "--add", "--cacheinfo", "160000,"+commit+",site/module")
	git("-C", work, "commit", "-q", "-m", "module")
	git("clone", "-q", "--bare", work, filepath.Join(repositories, "web.git"))
	address, ca := gitServer(t, repositories)
	otherCA := filepath.Join(b.Home, "root", "ca.crt")

	source := func(repository, ref string) string { return "git+https://" + address + "/" + repository + "@" + ref }
	for _, c := range []struct {
		from   string
		more   []string
		reason string
	}{
		{source("web.git", "main"), nil, "certificate"},
		{source("web.git", "none"), []string{"--git-ca", ca}, "it has no branch and no tag none"},
		{source("web.git", commit[:7]), []string{"--git-ca", ca}, "git rev-parse " + commit[:7]},
		{source("web.git", strings.Repeat("1", 40)), []string{"--git-ca", ca}, "it has no commit 1111"},
		{source("web.git", "main"), []string{"--git-ca", ca + ".none"}, "ca.pem.none"},
		{source("web.git", "main"), []string{"--git-ca", otherCA}, "none of the CAs in " + otherCA},
		{source("private.git", "main"), []string{"--git-ca", ca}, "GIT_FAILED"},
		{source("moved.git", "main"), []string{"--git-ca", ca}, "GIT_FAILED"},
		{source("web.git", "main"), []string{"--git-ca", ca, "--git-host", "git.example"}, "none of the admitted ones"},
		{source("web.git", "link"), []string{"--git-ca", ca}, `"site/passwd" is a symbolic link`},
		{source("web.git", "module"), []string{"--git-ca", ca}, `"site/module" is a submodule`},
		{source("web.git", "main") + "#none", []string{"--git-ca", ca}, "has no folder \"none\""},
		{source("web.git", "main") + "#site/main.sh", []string{"--git-ca", ca}, "\"site/main.sh\" is not a folder"},
		{source("web.git", "--upload-pack=touch"), nil, "SOURCE_UNUSABLE"},
		{"git+http://" + address + "/web.git@main", nil, "SOURCE_UNUSABLE"},
		{"ext::sh -c touch", nil, "SOURCE_UNUSABLE"},
	} {
		out, err := b.build(t, "1.0.0", c.from, c.more...)
		if text := out + fmt.Sprint(err); err == nil || !strings.Contains(text, c.reason) || !strings.Contains(text, "next") {
			t.Errorf("a build from %s %v prints no %q, or no next step: %s", c.from, c.more, c.reason, text)
		}
	}
	b.isInterrupted(t)
	from := source("web.git", "main") + "#site"
	must(b.build(t, "1.0.0", from, "--git-ca", ca, "--git-host", "127.0.0.1", "--wait"))(t)
	b.deploy(t, "web", "hello from git")
	shown := must(b.Muster("template", "show", "web"))(t)
	for _, want := range []string{commit, "https://" + address + "/web.git", `"folder": "site"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("muster template show prints no %q: %s", want, shown)
		}
	}
	// The same commit by its id.
	if out := must(b.build(t, "1.0.0", source("web.git", commit)+"#site", "--git-ca", ca, "--wait"))(t); strings.Contains(out, "Step 1") {
		t.Errorf("the same commit is built again: %s", out)
	}
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), "muster-??????"))
	for _, folder := range left {
		if _, err := os.Stat(filepath.Join(folder, "repository")); err == nil {
			t.Errorf("%s is left", folder)
		}
	}
}
