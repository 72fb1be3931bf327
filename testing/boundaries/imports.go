package boundaries

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

const module = "muster.example/"

// The folders whose Go packages a folder may import besides its own. The gateway uses the services as any other client
// does; what joins it with the services is in testing.
var mayImport = map[string][]string{
	"proto":              nil,
	"services/client/go": {"proto/gen/go"},
	"services/common":    nil,
	"gateway":            {"proto/gen/go", "services/client/go"},
}

// CheckImports returns a line for each import of a Go file below root that crosses a boundary.
func CheckImports(root string) ([]string, error) {
	var found []string
	for folder, others := range mayImport {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			crossings, err := checkImports(root, path, append([]string{folder}, others...))
			found = append(found, crossings...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// checkImports returns a line for each import of a package of ours that is in none of the allowed folders.
func checkImports(root, path string, allowed []string) ([]string, error) {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if ours, is := strings.CutPrefix(imported, module); is && !isBelow(ours+"/", allowed) {
			found = append(found, fmt.Sprintf("%s:%d: imports %s", name, files.Position(spec.Pos()).Line, ours))
		}
	}
	return found, nil
}
