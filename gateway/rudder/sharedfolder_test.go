package rudder

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// folder starts a relay with files, with a client that may read them.
func folder(t *testing.T) *testRelay {
	s := startRoot(t, withCertificates("n-a"))
	s.client = s.clientOf("n-a")
	s.write("shared-folder/file", "123\n")
	s.write("shared-folder/sub/with space.txt", "123\n")
	s.write("shared-folder/pages/index.html", "<p>")
	s.write("secret", "secret")
	if err := os.Symlink(filepath.Join(s.folder, "secret"), filepath.Join(s.config.SharedFolder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(s.config.SharedFolder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSharedFolderComparesHashes(t *testing.T) {
	s := folder(t)
	sum256 := sha256.Sum256([]byte("123\n"))
	right, right512 := hex.EncodeToString(sum256[:]), sumOf("123\n")
	for path, want := range map[string]int{
		"file?hash=" + right: 304, "file?hash=" + strings.ToUpper(right): 304, "sub/with%20space.txt?hash=" + right: 304,
		"file?hash_type=sha512&hash=" + right512: 304, "file?hash_type=sha256&hash=" + right: 304,
		"file?hash=" + right[:63] + "0": 200, "file?hash=": 200, "file": 200,
		"file?hash=test": 400, "file?hash=" + right512: 400, "file?hash_type=wrong-hash-type": 400,
		"file?hash_type=wrong-hash-type&hash=" + right: 400, "../secret": 400, "%2e%2e/secret": 400, `a%5Cb`: 400,
		"nowhere/file?hash=" + right: 404, "missing": 404, "link": 404, "file/x": 404, "a%00b": 404, "sub": 500, "pipe": 500,
	} {
		if got := s.call("HEAD", "shared-folder/"+path, nil); got.code != want {
			t.Errorf("%s: got %s, want %d", path, got, want)
		}
	}
}

func TestSharedFolderSendsFiles(t *testing.T) {
	s := folder(t)
	get := func(path string, header ...string) reply { return s.call("GET", "shared-folder/"+path, nil, header...) }
	got := get("file")
	s.want(got, 200, "123\n")
	modified := got.header.Get("Last-Modified")
	if got.header.Get("Accept-Ranges") != "bytes" || got.header.Get("ETag") != "" || modified == "" || got.header.Get("Content-Length") != "4" {
		t.Error(got.header)
	}
	s.want(get("sub/with%20space.txt"), 200, "123\n")
	if kind := get("sub/with%20space.txt").header.Get("Content-Type"); kind != "text/plain; charset=utf-8" {
		t.Error(kind)
	}
	s.want(get("pages"), 200, "<p>")
	s.want(get("pages/"), 200, "<p>")
	s.want(get("file", "Range", "bytes=1-2"), 206, "23")
	if got := get("file", "Range", "bytes=9-"); got.code != 416 {
		t.Error(got)
	}
	s.want(get("file", "If-Modified-Since", modified), 304, "")
	if got := get("file", "If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"); got.code != 412 {
		t.Error(got)
	}
	for _, path := range []string{"missing", "sub", "pipe", "file/x", "", "link", "%2e%2e/secret", "..%2fsecret", "/etc/passwd", "a%5C..%5Cb"} {
		s.want(get(path), 404, "NOT FOUND")
	}
	s.want(s.call("POST", "shared-folder/file", nil), 404, "NOT FOUND")
}

func TestSharedFolderRequiresCertificate(t *testing.T) {
	s := folder(t)
	for id, want := range map[string]int{"": 403, "stranger": 403, "n-a": 200} {
		if got := s.callAs(s.clientOf(id), http.MethodGet, s.base+basePath+"shared-folder/file", nil); got.code != want {
			t.Errorf("%q: %s", id, got)
		}
	}
}
