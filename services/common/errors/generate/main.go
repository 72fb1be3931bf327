// Generate writes what comes from the table of errors (services/common/errors/*.yaml): the C++ constructors, the
// constructors and constants for Go, the next steps for the dashboard, and docs/errors.md. All of it is checked in; a test fails when it is stale.
//
//	go run ./services/common/errors/generate   # from the root
package main

import "muster.example/services/common/generated"

func main() { generated.Main(files) }

func files(root string) (map[string]string, error) {
	sheets, err := readTable(root)
	if err != nil {
		return nil, err
	}
	return generate(sheets)
}

// generate returns the text of each generated file by its path.
func generate(sheets []*sheet) (map[string]string, error) {
	files := map[string]string{"docs/errors.md": page(sheets), typeScriptFile: typeScript(sheets)}
	text, err := goReasons(sheets)
	if err != nil {
		return nil, err
	}
	files["services/client/go/reasons/reasons.go"] = text
	for _, s := range sheets {
		if s.Cpp {
			files[folder+"/"+s.name+".h"] = cppHeader(s)
			files[folder+"/"+s.name+".cc"] = cppSource(s, sheets)
		}
		if s.Go != nil {
			if files[s.Go.File], err = goSource(s); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}
