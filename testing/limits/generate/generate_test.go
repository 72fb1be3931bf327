package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster.example/services/common/generated"
	"muster.example/testing/limits/table"
)

const root = "../../.."

// The folders of the programs.
var folders = []string{"services", "gateway", "cli"}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	texts, err := files(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range generated.Outdated(root, texts) {
		t.Errorf("%s is stale: go run ./testing/limits/generate", name)
	}
}

// TestRowsAreTrue compares each row with the programs: its constant exists, and so do its key, its metric and the
// reason of its refusal.
func TestRowsAreTrue(t *testing.T) {
	code := sources(t)
	reasons, err := os.ReadFile(filepath.Join(root, "docs/errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sheets(t) {
		for _, l := range s.Limits {
			if file, names, ok := strings.Cut(l.At, ":"); ok {
				if folder, _, _ := strings.Cut(file, "/"); !slices.Contains(folders, folder) {
					t.Errorf("%s: %s: %s is not below %v", s.Title, l.Bounds, file, folders)
				}
				text, err := os.ReadFile(filepath.Join(root, file))
				for name := range strings.SplitSeq(names, ",") {
					if err != nil || !word(name).MatchString(codeOf(string(text))) {
						t.Errorf("%s: %s: %s has no %s (%v)", s.Title, l.Bounds, file, name, err)
					}
				}
			}
			metric, _, _ := strings.Cut(l.Metric, "{")
			metric = strings.TrimPrefix(metric, "muster_gateway_") // which the gateway adds to all of its names
			for _, literal := range []string{l.Key, metric} {
				if literal != "" && !strings.Contains(code, `"`+literal+`"`) {
					t.Errorf("%s: %s: there is no %q in the sources", s.Title, l.Bounds, literal)
				}
			}
			if err := l.CheckWire(root); err != nil {
				t.Errorf("%s: %v", s.Title, err)
			}
			if l.Reason != "" && !strings.Contains(string(reasons), "`"+l.Reason+"`") {
				t.Errorf("%s: %s: docs/errors.md has no reason %s", s.Title, l.Bounds, l.Reason)
			}
		}
	}
}

// codeOf returns a source without its includes, comments and namespaces, whose words are no constants.
func codeOf(source string) string {
	return noCode.ReplaceAllString(source, "")
}

var noCode = regexp.MustCompile(`(?m)^#.*|//.*|\bnamespace .*`)

func word(text string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(text) + `\b`)
}

func sheets(t *testing.T) []*table.Sheet {
	t.Helper()
	all, err := table.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sources returns the text of all sources of the programs, without tests and without the tables.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := entry.Name()
			if entry.IsDir() {
				if name == "limits" || name == "node_modules" {
					return filepath.SkipDir
				}
				return nil
			}
			extension := filepath.Ext(name)
			if extension != ".cc" && extension != ".h" && extension != ".go" || strings.Contains(name, "_test.") {
				return nil
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
