package muster

import "path/filepath"

// mediaTypes are the same on every machine, and those that old sidecars send.
var mediaTypes = map[string]string{
	".gz": "application/gzip", ".htm": "text/html; charset=utf-8", ".html": "text/html; charset=utf-8",
	".json": "application/json", ".log": "text/x-log; charset=utf-8", ".tar": "application/x-tar",
	".tgz": "application/x-compressed-tar", ".txt": "text/plain; charset=utf-8", ".xml": "text/xml; charset=utf-8",
	".yaml": "application/x-yaml", ".yml": "application/x-yaml",
}

// mediaType goes by the ending of the file's name; empty if it says nothing.
func mediaType(path string) string { return mediaTypes[filepath.Ext(path)] }
