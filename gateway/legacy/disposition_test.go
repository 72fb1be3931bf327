package legacy

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"muster.example/gateway/limits"
)

func TestMediaTypeIsForwardedIfValid(t *testing.T) {
	for _, c := range []struct{ contentType, extension, want string }{
		{"application/json", "", "application/json"}, {"text/x-log; charset=utf-8", "", "text/x-log; charset=utf-8"},
		{"", "", ""}, {"", ".tar.gz", "application/gzip"}, {"", ".tgz", "application/gzip"}, {"", ".xml", ""},
		{"text/plain", ".tar.gz", "text/plain"},
		{strings.Repeat("t", 255), "", strings.Repeat("t", 255)}, {strings.Repeat("t", 256), "", ""}, {"a\xff", "", ""},
	} {
		if got := mediaType(c.contentType, c.extension); got != c.want {
			t.Errorf("%q %q: got %q, want %q", c.contentType, c.extension, got, c.want)
		}
	}
}

// Any input yields a name that the API accepts.
func FuzzFileName(f *testing.F) {
	for _, disposition := range []string{
		"", "attachment", "attachment;filename=r.json", `attachment; filename="a b"`, "attachment;filename=a b",
		"attachment;filename=../../x", `attachment;filename=a\b\..`, "ATTACHMENT;FILENAME=X", "filename=", `filename="`, `filename=""`,
		"attachment;filename=" + strings.Repeat("ü", 1000), "attachment;filename=\x00\x1b[0m", "attachment;filename=\xff\xfe",
		"attachment; filename*=UTF-8''%2e%2e%2fx", "ſfilename=x", "attachment;filename=. . .",
	} {
		for _, extension := range []string{"", ".tar.gz", ".", ".\xb7\x99F=tar.gz", `.a\b`, ".\x00", "." + strings.Repeat("ü", 1000)} {
			f.Add(disposition, extension)
		}
	}
	f.Fuzz(func(t *testing.T, disposition, extension string) {
		name := fileName(disposition, extension)
		if name == "" || len(name) > limits.FileName || !utf8.ValidString(name) || strings.Trim(name, ". ") == "" ||
			strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl) {
			t.Errorf("%q %q gave %q", disposition, extension, name)
		}
	})
}
