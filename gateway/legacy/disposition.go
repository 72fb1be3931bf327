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

// fileName returns the name of a result: that of its Content-Disposition, or "result" with the extension of the path.
func fileName(disposition, extension string) string {
	name := dispositionName(disposition)
	if at := strings.LastIndexAny(name, `/\`); at >= 0 {
		name = name[at+1:]
	}
	if name = validFileName(name); name == defaultFileName {
		return validFileName(name + extension)
	}
	return name
}

// dispositionName returns the file name in a Content-Disposition. Old workers do not quote it, whatever it contains.
func dispositionName(disposition string) string {
	if _, parameters, err := mime.ParseMediaType(disposition); err == nil {
		return parameters["filename"]
	}
	at := strings.Index(strings.ToLower(disposition), dispositionField)
	if at < 0 || at+len(dispositionField) > len(disposition) {
		return ""
	}
	name := strings.TrimSpace(disposition[at+len(dispositionField):])
	if len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"' {
		return name[1 : len(name)-1]
	}
	return name
}

// validFileName replaces what the API refuses in a name and shortens it; a name of dots and spaces becomes "result".
func validFileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || r == '/' || r == '\\' {
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
