package limits

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestQuotaBoundsAllAndEach(t *testing.T) {
	q := Quota{All: 10, Each: 6}
	if !q.Acquire("a", 6) || q.Acquire("a", 1) || !q.Acquire("b", 4) || q.Acquire("c", 1) || !q.Acquire("c", 0) {
		t.Error("bounds")
	}
	if q.Largest() != "a" {
		t.Errorf("%q holds most", q.Largest())
	}
	q.Release("a", 6)
	q.Release("b", 4)
	q.Release("c", 0)
	if q.Held() != 0 || len(q.held) != 0 || q.Largest() != "" || !q.Acquire("c", 6) {
		t.Errorf("%d held by %v", q.Held(), q.held)
	}
}

func TestTableIsComplete(t *testing.T) {
	names := map[string]bool{}
	for _, row := range Table() {
		if row.Name == "" || row.Default == "" || row.Per == "" || row.Reason == "" || row.Action == "" || names[row.Name+row.Per+row.Reason] {
			t.Errorf("%+v", row)
		}
		names[row.Name+row.Per+row.Reason] = true
	}
	var out strings.Builder
	Print(&out)
	if lines := strings.Count(out.String(), "\n"); lines != len(names)+2 {
		t.Errorf("%d lines for %d limits", lines, len(names))
	}
}

var number = regexp.MustCompile(`^\s*(const |var )?[mM]ax\w*\s*=\s*[0-9]`)

// The table is complete only if no limit stands elsewhere.
func TestNoLimitStandsElsewhere(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../*/*.go", "../cmd/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	if len(files) < 100 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if number.MatchString(line) && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
}
