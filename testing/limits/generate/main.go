// Generate writes docs/limits.md from the table of limits: services/common/limits/*.yaml, and the table of the gateway.
// A test fails when the page is stale.
//
//	go run ./testing/limits/generate   # from the root
package main

import (
	"muster.example/services/common/generated"
	"muster.example/testing/limits/table"
)

func main() { generated.Main(files) }

// files returns the text of the generated file by its path.
func files(root string) (map[string]string, error) {
	sheets, err := table.Read(root)
	return map[string]string{"docs/limits.md": page(sheets)}, err
}
