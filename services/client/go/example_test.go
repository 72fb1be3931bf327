package muster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The example in a module of its own, outside of this tree, with everything vendored: as others use the
// package.
func TestTheExampleBuildsElsewhereAndDelivers(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	ours := read(t, filepath.Join(root, "go.mod"))
	// The versions that this tree is tested with; `go mod tidy` would choose them as well.
	theirs := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(ours, "module plugin.test/count")
	theirs = regexp.MustCompile(`(?s)\ntool \(.*?\n\)`).ReplaceAllString(theirs, "") +
		"\nrequire muster.example v0.0.0\n\nreplace muster.example => " + root + "\n"
	for name, text := range map[string]string{
		"go.mod": theirs, "go.sum": read(t, filepath.Join(root, "go.sum")), "main.go": read(t, "example/main.go"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command(t, folder, "go", "mod", "vendor")
	command(t, folder, "go", "build", "-mod=vendor", "-trimpath", "-o", "count", ".")

	w := start(t)
	w.file("one", nil)
	if _, err := w.load(); err != nil {
		t.Fatal(err)
	}
	out := command(t, folder, "./count", "--config", w.path, w.results)
	if out != "committed "+regexp.MustCompile(`\d+`).FindString(out)+" bytes\n" {
		t.Errorf("it printed %q", out)
	}
	if got := w.committed("n1"); got == nil || !strings.Contains(string(got.Data), `"files":1`) {
		t.Errorf("delivered %+v", got)
	}
	if len(w.aggregator.Reported()) != 1 {
		t.Error("no progress was reported")
	}
	if beats := w.aggregator.Beats(); len(beats) == 0 || !beats[len(beats)-1].Goodbye {
		t.Errorf("heartbeats: %v", beats)
	}
	command(t, folder, "./count", "--config", w.path, w.results) // once more: the same content is a success
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func command(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	c := exec.Command(name, arguments...)
	c.Dir = folder
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, arguments, err, stderr.String())
	}
	return string(out)
}
