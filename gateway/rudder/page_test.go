package rudder

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/rudder.md says which test holds each promise: it names those that there are, and leaves none of this folder out.
func TestThePageNamesTheTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/rudder.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"../cmd/*/*_test.go", "../../testing/e2e/*_test.go"} {
		found, err := filepath.Glob(more)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	there := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(content), -1) {
			there[found[1]] = file
		}
	}
	named := map[string]bool{}
	for _, found := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1) {
		named[found[1]] = true
		if there[found[1]] == "" {
			t.Errorf("the page names %s, which is not there", found[1])
		}
	}
	for name, file := range there {
		if strings.HasPrefix(file, "../rudder/") && !named[name] && name != t.Name() {
			t.Errorf("the page does not name %s", name)
		}
	}
}
