package boundaries

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNoIncludeCrossesABoundary(t *testing.T) {
	found, err := Check("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, crossing := range found {
		t.Error(crossing)
	}
}

func TestIncludeOfAnotherServiceIsFound(t *testing.T) {
	root := t.TempDir()
	for folder := range mayInclude {
		if err := os.MkdirAll(filepath.Join(root, folder, "runs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"services/relay/runs/a.h":        "#include \"services/aggregator/runs/runs.h\"\n",
		"services/relay/runs/b.cc":       "#include <grpcpp/channel.h>\n",
		"services/relay/runs/c.cc":       "#include \"testing/fixtures/test_fleet.h\"\n",
		"services/relay/runs/c_test.cc":  "#include \"testing/fixtures/test_fleet.h\"\n#include <grpcpp/channel.h>\n",
		"services/agent/runs/d.cc":       "#include \"services/client/client.h\"\n#include \"services/common/base/clock.h\"\n",
		"services/common/runs/client.cc": "#include \"services/client/client.h\"\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 4 {
		t.Errorf("found %q", found)
	}
}

func TestNoImportCrossesABoundary(t *testing.T) {
	found, err := CheckImports("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, crossing := range found {
		t.Error(crossing)
	}
}

func TestImportOfTheGatewayByAServiceIsFound(t *testing.T) {
	root := t.TempDir()
	for folder := range mayImport {
		if err := os.MkdirAll(filepath.Join(root, folder, "runs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"services/common/runs/a.go":         "package runs\n\nimport \"muster.example/gateway/limits\"\n",
		"services/common/runs/b.go":         "package runs\n\nimport (\n\t\"os\"\n\t\"muster.example/services/common/generated\"\n)\n",
		"services/client/go/runs/c_test.go": "package runs\n\nimport g \"muster.example/gateway/fleet\"\n",
		"gateway/runs/d.go":                 "package runs\n\nimport client \"muster.example/services/client/go\"\n",
		"gateway/runs/e.go":                 "package runs\n\nimport _ \"muster.example/services/common/generated\"\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := CheckImports(root)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	want := []string{"gateway/runs/e.go:3: imports services/common/generated", "services/client/go/runs/c_test.go:3: imports gateway/fleet",
		"services/common/runs/a.go:3: imports gateway/limits"}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

// A program that is fetched has to be the one that was tried.
func TestToolsAreInstalledByHash(t *testing.T) {
	for _, name := range []string{"deploy/lib.sh", "deploy/quickstart", "testing/lint", "testing/test"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "pip\"") && strings.Contains(line, "install") && !strings.Contains(line, "--require-hashes") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	text, err := os.ReadFile("../../deploy/tools")
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "==") {
			if entries++; !strings.HasSuffix(strings.TrimSpace(line), "\\") {
				t.Errorf("no hash follows: %s", line)
			}
		}
	}
	if entries == 0 {
		t.Error("deploy/tools is empty")
	}
}
