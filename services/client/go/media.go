package muster

import (
	"mime"
	"path/filepath"
	"strings"
)

// mediaType guesses from the file's name, the same on every machine for the names that matter.
func mediaType(path string) string {
	switch extension := strings.ToLower(filepath.Ext(path)); extension {
	case ".gz", ".tgz":
		return "application/gzip"
	case ".json":
		return "application/json"
	case ".xml":
		return "text/xml; charset=utf-8"
	case ".txt", ".log":
		return "text/plain; charset=utf-8"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".tar":
		return "application/x-tar"
	default:
		return mime.TypeByExtension(extension)
	}
}
