package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	goTest  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	cppTest = regexp.MustCompile(`(?m)^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)`)
	// The forms in which pages name tests: with a file, or alone.
	namedInFile = regexp.MustCompile("`([\\w/.-]+_(?:test|contract)\\.(?:go|cc|h)):(\\w+(?:\\.\\w+)?)`")
	namedGo     = regexp.MustCompile("`(Test[A-Z0-9]\\w*)`")
	namedCpp    = regexp.MustCompile("`(\\w+(?:Test|Contract)\\.\\w+)`")
)

// testsOfTheTree returns the tests of each file: "TestX" and "FuzzX" of Go, "Suite.Name" of C++.
func testsOfTheTree(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		name, _ := filepath.Rel(root, path)
		isGo := strings.HasSuffix(path, "_test.go")
		if !isGo && !strings.HasSuffix(path, "_test.cc") && !strings.HasSuffix(path, "_contract.h") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if isGo {
			for _, match := range goTest.FindAllStringSubmatch(string(text), -1) {
				found[name] = append(found[name], match[1])
			}
			return nil
		}
		for _, match := range cppTest.FindAllStringSubmatch(string(text), -1) {
			found[name] = append(found[name], match[1]+"."+match[2])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A page that names the test of a promise names an existing test, in the file that it names.
func TestTestsInDocsExist(t *testing.T) {
	tests := testsOfTheTree(t)
	there := map[string]bool{}
	for _, names := range tests {
		for _, name := range names {
			there[name] = true
		}
	}
	named := 0
	for page, text := range pages(t) {
		for _, match := range namedInFile.FindAllStringSubmatch(text, -1) {
			named++
			if !slices.Contains(tests[match[1]], match[2]) {
				t.Errorf("%s names %s of %s, which does not exist", page, match[2], match[1])
			}
		}
		for _, match := range slices.Concat(namedGo.FindAllStringSubmatch(text, -1), namedCpp.FindAllStringSubmatch(text, -1)) {
			named++
			if !there[match[1]] {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
	if named < 200 {
		t.Errorf("found only %d names of tests in the pages", named)
	}
}

// docs/rudder.md describes every test of the package, without its fuzz targets.
func TestRudderPageNamesEveryTest(t *testing.T) {
	page := pages(t)["docs/rudder.md"]
	for file, names := range testsOfTheTree(t) {
		if filepath.Dir(file) != "gateway/rudder" {
			continue
		}
		for _, name := range names {
			if strings.HasPrefix(name, "Test") && !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/rudder.md does not name %s", name)
			}
		}
	}
}
