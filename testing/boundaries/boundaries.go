// Package boundaries checks which folder of the C++ code may include which, and which folder of Go may import which.
package boundaries

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The folders that a folder may include besides itself. Services stand side by side on services/common;
// fixtures that several services' tests share are in testing/fixtures, and services/simulation joins the services.
var mayInclude = map[string][]string{
	"services/common":     {"testing/fixtures"},
	"services/client":     {"services/common", "testing/fixtures"},
	"services/aggregator": {"services/common", "testing/fixtures"},
	"services/status":     {"services/common", "testing/fixtures"},
	"services/relay":      {"services/common", "testing/fixtures"},
	"services/agent":      {"services/common", "services/client", "testing/fixtures"},
	"services/simulation": {
		"services/common", "services/aggregator", "services/status", "services/relay", "services/agent",
	},
	"cli": {"services/common", "services/client", "services/agent", "testing/fixtures"},
}

// Folders whose files do not see gRPC types: docs/development.md.
var withoutGRPC = []string{
	"services/common/base", "services/common/identity", "services/common/store", "services/common/blob",
	"services/common/journal", "services/common/plugin", "services/common/archive", "services/common/heartbeat",
	"services/common/jobs", "services/common/errors", "services/aggregator/runs", "services/aggregator/uploads",
	"services/aggregator/nodes", "services/aggregator/changes", "services/aggregator/verify",
	"services/status/board", "services/status/heartbeats",
	"services/relay/jobs", "services/relay/spool", "services/relay/runs", "services/agent/modules",
	"services/agent/collection", "services/agent/jobs", "services/agent/vault", "services/jobs/vault", "cli/commands", "cli/output", "cli/supervisor",
}

var include = regexp.MustCompile(`^#include [<"]([^">]+)[">]`)

// Check returns a line for each include below root that crosses a boundary.
func Check(root string) ([]string, error) {
	var found []string
	for folder, others := range mayInclude {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !(strings.HasSuffix(path, ".h") || strings.HasSuffix(path, ".cc")) {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			crossings, err := checkFile(path, name, append([]string{folder}, others...))
			found = append(found, crossings...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// checkFile returns a line for each include of the file that is in none of the allowed folders.
func checkFile(path, name string, allowed []string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	test := strings.HasSuffix(name, "_test.cc")
	if test { // the client library is also a peer in tests
		allowed = append(allowed, "services/client")
	}
	var found []string
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		match := include.FindStringSubmatch(lines.Text())
		switch {
		case match == nil:
		case strings.HasPrefix(match[1], "grpcpp/"):
			if !test && isBelow(name, withoutGRPC) {
				found = append(found, fmt.Sprintf("%s:%d: includes %s in a folder without gRPC types", name, number, match[1]))
			}
		case isBelow(match[1], []string{"services", "cli", "testing"}) && !isBelow(match[1], allowed):
			found = append(found, fmt.Sprintf("%s:%d: includes %s", name, number, match[1]))
		case isBelow(match[1], []string{"testing"}) && !test && !strings.Contains(name, "/testing/"):
			found = append(found, fmt.Sprintf("%s:%d: includes %s outside of tests", name, number, match[1]))
		}
	}
	return found, lines.Err()
}

// isBelow reports whether the path is in one of the folders.
func isBelow(path string, folders []string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}
