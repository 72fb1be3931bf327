package legacy

import (
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"muster.example/gateway/limits"
)

const (
	defaultFileName  = "result"
	gzipMediaType    = "application/gzip"
	dispositionField = "filename="
)

// fileName returns the file name of a Content-Disposition. Old workers do not quote it, whatever it contains; folders
// are dropped; an unusable name becomes "result".
func fileName(disposition string) string {
	name := ""
	if _, parameters, err := mime.ParseMediaType(disposition); err == nil {
		name = parameters["filename"]
	} else if at := strings.Index(strings.ToLower(disposition), dispositionField); at >= 0 && at+len(dispositionField) <= len(disposition) {
		name = strings.TrimSpace(disposition[at+len(dispositionField):])
		if len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"' {
			name = name[1 : len(name)-1]
		}
	}
	if at := strings.LastIndexAny(name, `/\`); at >= 0 {
		name = name[at+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '_'
		}
		return r
	}, name)
	for len(name) > limits.FileName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if strings.Trim(name, ". ") == "" {
		return defaultFileName
	}
	return name
}

// mediaType forwards the client's content type if the API accepts it.
func mediaType(contentType, extension string) string {
	if contentType == "" && (extension == ".tar.gz" || extension == ".tgz") {
		return gzipMediaType // v0.8 to v0.10 expressed it in the path
	}
	if len(contentType) > limits.MediaType || !utf8.ValidString(contentType) {
		return ""
	}
	return contentType
}
