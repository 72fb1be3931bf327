package muster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The example is built in a separate module outside of this tree, with vendored dependencies, as users do.
// Its dependencies are gRPC, protobuf and theirs.
func TestExampleBuildsInAnotherModuleAndDelivers(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	ours := read(t, "go.mod")
	// The versions that this module is tested with; `go mod tidy` would select the same ones.
	theirs := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(ours, "module plugin.test/count")
	theirs = regexp.MustCompile(`(?m)^replace .*$`).ReplaceAllString(theirs, "") + `
require muster.example/services/client/go v0.0.0

replace muster.example/services/client/go => ` + root + `/services/client/go

replace muster.example/proto/gen/go => ` + root + `/proto/gen/go
`
	for name, text := range map[string]string{
		"go.mod": theirs, "go.sum": read(t, "go.sum"), "main.go": read(t, "example/main.go"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command(t, folder, "go", "mod", "vendor")
	expected := regexp.MustCompile(`^# (google.golang.org/(grpc|protobuf|genproto/googleapis/rpc)|golang.org/x/(net|sys|text)|muster.example/.*) `)
	for _, line := range strings.Split(read(t, filepath.Join(folder, "vendor/modules.txt")), "\n") {
		if strings.HasPrefix(line, "# ") && !expected.MatchString(line) {
			t.Errorf("the client needs another module: %s", line)
		}
	}
	command(t, folder, "go", "build", "-mod=vendor", "-trimpath", "-o", "count", ".")

	w := start(t)
	w.file("one", nil)
	if _, err := w.load(); err != nil {
		t.Fatal(err)
	}
	out := command(t, folder, "./count", "--config", w.path, w.results)
	if out != "committed "+regexp.MustCompile(`\d+`).FindString(out)+" bytes\n" {
		t.Errorf("the example printed %q", out)
	}
	if got := w.committed("n1"); got == nil || !strings.Contains(string(got.Data), `"files":1`) {
		t.Errorf("delivered %+v", got)
	}
	if len(w.aggregator.Reported()) != 1 {
		t.Error("no progress was reported")
	}
	if heartbeats := w.aggregator.ReceivedHeartbeats(); len(heartbeats) == 0 || !heartbeats[len(heartbeats)-1].Goodbye {
		t.Errorf("heartbeats: %v", heartbeats)
	}
	command(t, folder, "./count", "--config", w.path, w.results) // a repetition with the same content succeeds
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
