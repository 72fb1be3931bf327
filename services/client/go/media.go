package muster

import "path/filepath"

// mediaTypes are independent of the machine, and equal to those of old sidecars.
var mediaTypes = map[string]string{
	".gz": "application/gzip", ".htm": "text/html; charset=utf-8", ".html": "text/html; charset=utf-8",
	".json": "application/json", ".log": "text/x-log; charset=utf-8", ".tar": "application/x-tar",
	".tgz": "application/x-compressed-tar", ".txt": "text/plain; charset=utf-8", ".xml": "text/xml; charset=utf-8",
	".yaml": "application/x-yaml", ".yml": "application/x-yaml",
}

// mediaType returns the type for a file name's extension, or "".
func mediaType(path string) string { return mediaTypes[filepath.Ext(path)] }
