// Package dashboard serves the pages for browsers. They are built from src/ into dist/, which is checked in
// (docs/development.md). The pages fetch their data from the REST API of the same server.
package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"muster.example/gateway/rest"
)

//go:embed dist
var dist embed.FS

// policy allows the pages only their own files and the server's own API, and forbids frames.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

type file struct {
	content []byte
	hash    string // SHA-256, in hexadecimal
	typ     string
}

// Handler serves the pages at "/" and their files; every other path is 404. They hold no secret, so it requires no
// session: the API does. Safe for concurrent use.
func Handler() http.Handler {
	files := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" {
			name = "index.html"
		}
		found, ok := files[name]
		if !ok {
			rest.AnswerProblem(w, http.StatusNotFound, rest.PathNotFound(r.URL.Path, "Open the dashboard: muster dashboard."))
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			rest.AnswerProblem(w, http.StatusMethodNotAllowed, rest.ListenerIsReadOnly())
			return
		}
		describe(w.Header(), found, r.URL.Query().Get("v"))
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(found.content))
	})
}

// describe sets the headers of a file. index.html names the others with the beginning of their hash: a client that
// requests that name may cache the file for ever.
func describe(header http.Header, f file, version string) {
	header.Set("Content-Type", f.typ)
	header.Set("ETag", `"`+f.hash+`"`)
	header.Set("Cache-Control", "no-cache")
	if version != "" && strings.HasPrefix(f.hash, version) && len(version) >= 16 {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// load reads the embedded files. It fails only if the program was built wrongly.
func load() map[string]file {
	files := map[string]file{}
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(dist, path.Join("dist", entry.Name()))
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		files[entry.Name()] = file{content, hex.EncodeToString(sum[:]), types[path.Ext(entry.Name())]}
	}
	return files
}
