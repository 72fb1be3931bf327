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
	"strings"
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
	describeErrors(document)
	// A client certificate, which most paths require, has no form in this version of the format.
	document["securityDefinitions"] = map[string]any{"session": map[string]any{"type": "apiKey", "in": "header", "name": "Cookie",
		"description": "A browser's session at the status listener, from a link of /api/v1/dashboard-links. All other callers " +
			"authenticate by a client certificate of the fleet (mutual TLS), which this version of OpenAPI cannot express."}}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// errors are the codes of every call, with their causes.
var errors = map[string]string{
	"400": "The request is invalid, or has an unknown field or parameter.",
	"401": "The request has neither a certificate nor a session.",
	"403": "The caller may not make this call, or was revoked.",
	"429": "The caller exceeds a limit: the field reason names it.",
	"503": "A service does not answer now. Retry.",
}

// describeErrors adds the errors that the fragment does not describe to every operation.
func describeErrors(document map[string]any) {
	paths, _ := document["paths"].(map[string]any)
	schema := map[string]any{"$ref": "#/definitions/Error"}
	for path, methods := range paths {
		for method, described := range methods.(map[string]any) {
			operation, ok := described.(map[string]any)
			id, _ := operation["operationId"].(string)
			if !ok || method == "parameters" {
				continue
			}
			responses := operation["responses"].(map[string]any)
			if strings.HasPrefix(id, "Legacy_") || path == "/login" || path == "/logout" {
				responses["default"] = map[string]any{"description": "An error, with a line of text."}
				continue
			}
			add := func(code, text string) {
				if _, there := responses[code]; !there {
					responses[code] = map[string]any{"description": text, "schema": schema}
				}
			}
			for code, text := range errors {
				add(code, text)
			}
			if strings.Contains(path, "{") {
				add("404", "The object was not found.")
			}
			add("default", "Any other error.")
			if strings.HasPrefix(path, "/status") || method == "get" && strings.HasPrefix(path, "/api/") {
				operation["security"] = []any{map[string]any{}, map[string]any{"session": []any{}}}
			}
		}
	}
}
