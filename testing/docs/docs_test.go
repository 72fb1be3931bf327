// Package docs checks that files, headings and tests that the documentation names exist.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	quoted  = regexp.MustCompile("`([^`\\s]+)`")
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// Prefixes of paths of the tree; other names in backticks are not checked.
	ours = regexp.MustCompile(`^(bazel|cli|deploy|docs|gateway|proto|services|testing)/[\w./*-]*$`)
)

// pages returns README.md and all pages of docs/.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(path string) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		found[path] = fenced.ReplaceAllString(string(text), "")
	}
	add("README.md")
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			name, _ := filepath.Rel(root, path)
			add(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return found
}

func TestLinksResolveAndEveryPageIsLinked(t *testing.T) {
	all := pages(t)
	linked := map[string]bool{"README.md": true}
	for page, text := range all {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := page
			if target != "" {
				to = filepath.Join(filepath.Dir(page), target)
			}
			linked[to] = true
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, match[1])
			} else if anchor != "" && !anchors(all[to])[anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, match[1])
			}
		}
	}
	for page := range all {
		if !linked[page] {
			t.Errorf("no page has a link to %s", page)
		}
	}
}

func TestFilesInDocsExist(t *testing.T) {
	for page, text := range pages(t) {
		for _, match := range quoted.FindAllStringSubmatch(text, -1) {
			if !ours.MatchString(match[1]) {
				continue
			}
			if found, err := filepath.Glob(filepath.Join(root, match[1])); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
}
