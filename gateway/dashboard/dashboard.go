// Package dashboard serves the pages for browsers. They are built from src/ into dist/, which is checked
// in: docs/development.md says how. What they show they fetch from the REST API of the server they came from.
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
)

//go:embed dist
var dist embed.FS

// policy lets the pages use what came with them and the server's own API, and nothing else; nobody may put
// them into a frame.
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

// Handler serves the pages at "/" and what belongs to them beside it; every other path is 404. It holds no
// secret, so it asks for no session: the API does. Safe for concurrent use.
func Handler() http.Handler {
	files := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" {
			name = "index.html"
		}
		found, ok := files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the pages can only be read", http.StatusMethodNotAllowed)
			return
		}
		describe(w.Header(), found, r.URL.Query().Get("v"))
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(found.content))
	})
}

// describe sets the headers of a file. index.html names the others with the beginning of their hash: who
// asks by that may keep the file for good.
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

// load reads what was embedded. It cannot fail, unless the program was built wrongly.
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
