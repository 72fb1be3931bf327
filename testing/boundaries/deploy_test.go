package boundaries

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var goRelease = regexp.MustCompile(`(?m)^go (\d+)\.(\d+)\.(\d+)$`)

func TestModulesNameOneReleaseOfGo(t *testing.T) {
	release := goRelease.FindString(read(t, "go.mod"))
	if release == "" {
		t.Fatal("go.mod does not name a release of Go")
	}
	out, err := exec.Command("git", "-C", "../..", "ls-files", "go.mod", "*/go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(out))
	if len(modules) < 2 {
		t.Errorf("found only %q", modules)
	}
	for _, module := range modules {
		for _, line := range regexp.MustCompile(`(?m)^(?:go|toolchain) .*$`).FindAllString(read(t, module), -1) {
			if line != release {
				t.Errorf("%s has the line %q, and go.mod %q", module, line, release)
			}
		}
	}
}

func TestOnlyGoThatGoModAcceptsIsUsed(t *testing.T) {
	var major, minor, patch int
	if _, err := fmt.Sscanf(goRelease.FindString(read(t, "go.mod")), "go %d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatal(err)
	}
	for release, want := range map[string]bool{
		fmt.Sprintf("go%d.%d.%d", major, minor, patch):   true,
		fmt.Sprintf("go%d.%d.%d", major, minor, patch+2): true,
		fmt.Sprintf("go%d.%d.0", major, minor+1):         true,
		fmt.Sprintf("go%d.%d", major, minor+10):          true,
		fmt.Sprintf("go%d.%d.99", major, minor-1):        false,
		fmt.Sprintf("go%d.%d", major, minor-1):           false,
		"":                                               false,
	} {
		program := filepath.Join(t.TempDir(), "go")
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho "+release+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		check := exec.Command("sh", "-c", `. "$root/deploy/lib.sh"; go_is_new_enough "$1"`, "sh", program)
		check.Env = append(os.Environ(), "root=../..")
		if accepted := check.Run() == nil; accepted != want {
			t.Errorf("%q is accepted: %v, want %v", release, accepted, want)
		}
	}
}

func TestUnitsBoundTheirRights(t *testing.T) {
	units, err := filepath.Glob("../../deploy/systemd/*.service")
	if err != nil || len(units) != 4 {
		t.Fatalf("found the units %q: %v", units, err)
	}
	for _, unit := range units {
		text := read(t, filepath.Join("deploy/systemd", filepath.Base(unit)))
		for _, setting := range []string{"CapabilityBoundingSet", "NoNewPrivileges", "ProtectSystem", "RestrictNamespaces", "UMask"} {
			if !strings.Contains(text, "\n"+setting+"=") {
				t.Errorf("%s does not set %s", filepath.Base(unit), setting)
			}
		}
		page := regexp.MustCompile(`(?m)^Documentation=file:///usr/share/doc/muster/(.*)$`).FindStringSubmatch(text)
		if page == nil {
			t.Errorf("%s names no page", filepath.Base(unit))
		} else if _, err := os.Stat(filepath.Join("../../docs", page[1])); err != nil {
			t.Error(err)
		}
	}
}
