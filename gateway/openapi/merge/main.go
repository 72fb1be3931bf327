// Merge adds hand-written routes to the generated OpenAPI document.
//
//	merge GENERATED FRAGMENT >MERGED
//
// The fragment has the members "info", "paths" and "definitions". They must not repeat names of the generated document,
// except "info", which is replaced.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "merge:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: merge GENERATED FRAGMENT")
	}
	var documents [2]map[string]any
	for i, name := range args {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(content, &documents[i]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	document, fragment := documents[0], documents[1]
	document["info"] = fragment["info"]
	for _, member := range []string{"paths", "definitions"} {
		additions, _ := fragment[member].(map[string]any)
		target, ok := document[member].(map[string]any)
		if !ok {
			return fmt.Errorf("%s: no member %q", args[0], member)
		}
		for name, value := range additions {
			if _, there := target[name]; there {
				return fmt.Errorf("%s %q is in the generated document already", member, name)
			}
			target[name] = value
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}
