// Package gen holds what generate.sh writes.
package gen

import _ "embed"

// OpenAPI is the document of all paths, JSON.
//
//go:embed openapi.json
var OpenAPI []byte
