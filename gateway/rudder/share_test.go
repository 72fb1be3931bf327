package rudder

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// signed returns the signature of a node over a content, in hex.
func signed(source, content string) string {
	sum := sha512.Sum512([]byte(content))
	signature, err := rsa.SignPKCS1v15(rand.Reader, identityOf(source).key, crypto.SHA512, sum[:])
	if err != nil {
		panic(err)
	}
	return hex.EncodeToString(signature)
}

// share sends a file; parameters are "name=value" and replace the defaults.
func (s *testRelay) share(target, source, file, content string, parameters ...string) reply {
	s.t.Helper()
	query := url.Values{"source-uuid": {source}, "signature": {signed(source, content)}}
	for _, parameter := range parameters {
		name, value, given := strings.Cut(parameter, "=")
		query.Del(name)
		if given {
			query.Set(name, value)
		}
	}
	return s.call("POST", "shared-files/node/"+target+"/"+file+"?"+query.Encode(), strings.NewReader(content))
}

func (s *testRelay) has(target, source, file, hash string) int {
	s.t.Helper()
	return s.call("HEAD", "shared-files/node/"+target+"/"+file+"?source-uuid="+source+"&hash="+hash, nil).code
}

// files returns all files of the folder of shared files, except the spool.
func (s *testRelay) files() (names []string) {
	root := s.config.FilesFolder()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == spoolFolder {
			return filepath.SkipDir
		}
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
	return names
}

func (s *testRelay) wantFiles(want ...string) {
	s.t.Helper()
	if got := s.files(); strings.Join(got, " ") != strings.Join(want, " ") {
		s.t.Errorf("there are %q, want %q", got, want)
	}
}

func TestShareIsStoredUnderRelaysOfRoute(t *testing.T) {
	f := startExtendedTree(t)
	f.root.want(f.root.share("n-d", "n-a", "file", content, "ttl=1h"), 200, "")
	f.root.wantFiles("r1/r2/n-d/n-a/file", "r1/r2/n-d/n-a/file.medata")
	if got := f.root.read("shared-files-nodes/r1/r2/n-d/n-a/file"); got != content {
		t.Errorf("%q", got)
	}
	short := sha256.Sum256([]byte(content))
	described := map[string]string{}
	for line := range strings.Lines(f.root.read("shared-files-nodes/r1/r2/n-d/n-a/file.medata")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		described[name] = value
	}
	date, err := time.Parse(time.RFC3339, described["date"])
	ends, _ := strconv.ParseInt(described["expires"], 10, 64)
	if err != nil || time.Since(date) > time.Minute || described["hash"] != sumOf(content) || described["signature"] != signed("n-a", content) ||
		described["hash-sha256"] != hex.EncodeToString(short[:]) || described["size"] != strconv.Itoa(len(content)) ||
		ends < time.Now().Unix()+3500 || ends > time.Now().Unix()+3600 {
		t.Error(described)
	}
	for hash, want := range map[string]int{sumOf(content): 200, hex.EncodeToString(short[:]): 200, sumOf("other"): 404} {
		if got := f.root.has("n-d", "n-a", "file", hash); got != want {
			t.Error(got, want)
		}
	}
	for _, other := range [][3]string{{"n-d", "n-a", "file2"}, {"n-d", "n-b", "file"}, {"n-c", "n-a", "file"}, {"nobody", "n-a", "file"}} {
		if got := f.root.has(other[0], other[1], other[2], sumOf(content)); got != 404 {
			t.Error(other, got)
		}
	}
	f.root.want(f.root.share("n-a", "n-e", "file", "", "hash="+sumOf("")), 200, "") // empty, for a node that is attached here
	f.root.want(f.root.share("r1", "n-e", "file", "x"), 200, "")
	if got := f.root.files(); len(got) != 6 || got[0] != "n-a/n-e/file" {
		t.Error(got)
	}
}

func TestShareWithWrongSignatureFails(t *testing.T) {
	s := startExtended(t, withCertificates("n-a", "n-b", "r1"))
	for why, c := range map[string]struct {
		source, signature string
		code              int
	}{
		"signature: ":                 {"n-a", signed("n-a", content+"more"), 403},
		"signature: not":              {"n-a", signed("n-b", content), 403},
		"signature: n":                {"n-a", "00", 403},
		"signature: should":           {"n-a", "xyz", 400},
		"signature: sh":               {"n-a", "", 400},
		"source-uuid: no certificate": {"n-e", signed("n-e", content), 403}, // it has no certificate here
		"source-uuid: node not found": {"stranger", signed("stranger", content), 404},
		"source-uuid: should":         {"", signed("n-a", content), 400},
	} {
		got := s.share("n-b", "n-a", "file", content, "source-uuid="+c.source, "signature="+c.signature)
		if got.code != c.code || !strings.HasPrefix(got.body, why) {
			t.Errorf("%s: %s", why, got)
		}
	}
	if got := s.share("nobody", "n-a", "file", content); got.code != 404 || !strings.HasPrefix(got.body, "target_uuid: ") {
		t.Error(got)
	}
	if got := s.share("n-b", "n-a", "file", content, "hash="+sumOf("other")); got.code != 400 || !strings.HasPrefix(got.body, "hash: ") {
		t.Error(got)
	}
	s.wantFiles()
	s.want(s.share("n-b", "n-a", "file", content, "signature="+strings.ToUpper(signed("n-a", content))), 200, "")
}

func TestShareWithUnlistedKeyFails(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"), func(s *testRelay) {
		s.write("nodeslist.json", strings.Replace(listOf("n-a a root", "n-b b root"), identityOf("n-a").keyHash(), identityOf("n-b").keyHash(), 1))
	})
	if got := s.share("n-b", "n-a", "file", content); got.code != 403 || !strings.Contains(got.body, "no certificate of the node has the key of the nodes list") {
		t.Error(got)
	}
	s.write("nodeslist.json", keylessList([]string{"n-a a root", "n-b b root"}))
	if err := s.server.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := s.share("n-b", "n-a", "file", content); got.code != 403 || !strings.Contains(got.body, "no usable key-hash") {
		t.Error(got)
	}
	s.wantFiles()
}

func TestInvalidShareFailsWithField(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"))
	long := strings.Repeat("x", 4096)
	for _, id := range []string{"x.metadata", "x.MetaData", "x.medata", "x.MEDATA", ".medata", "%2e%2e", "%2E", "a%2Fb", "..%2f..%2fx", "a%00b", "a%20b", "%C3%A9", long,
		".incoming", ".spool", strings.Repeat("x", 249)} {
		for field, path := range map[string]string{"file_id": "n-b/" + id, "target_uuid": id + "/file"} {
			query := "?source-uuid=n-a&hash=" + sumOf(content) + "&signature=" + signed("n-a", content)
			got := s.call("POST", "shared-files/node/"+path+query, strings.NewReader(content))
			if got.code != 400 || !strings.HasPrefix(got.body, field+": ") {
				t.Errorf("%.40s: %s", path, got)
			}
			if got := s.call("HEAD", "shared-files/node/"+path+"?source-uuid=n-a&hash="+sumOf(content), nil); got.code != 400 {
				t.Errorf("%.40s: %s", path, got)
			}
		}
		plain, err := url.PathUnescape(id)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.share("n-b", "n-a", "file", content, "source-uuid="+plain); got.code != 400 || !strings.HasPrefix(got.body, "source-uuid: ") {
			t.Errorf("%.40s: %s", id, got)
		}
	}
	for parameter, field := range map[string]string{
		"hash=": "hash", "hash=" + strings.ToUpper(sumOf(content)): "hash", "hash=00": "hash", "hash=" + long: "hash", "hash=" + sumOf(content)[1:] + "g": "hash",
		"ttl=": "ttl", "ttl=nonsense": "ttl", "ttl=-1": "ttl", "ttl=18446744073709551615": "ttl", "ttl=5h 3": "ttl", "time=1h": "time", "source-uuid": "source-uuid",
		"signature": "signature",
	} {
		if got := s.share("n-b", "n-a", "file", content, parameter); got.code != 400 || !strings.HasPrefix(got.body, field+": ") {
			t.Errorf("%.40s: %s", parameter, got)
		}
	}
	for _, query := range []string{"", "source-uuid=n-a", "hash=" + sumOf(content), "source-uuid=n-a&hash=" + strings.ToUpper(sumOf(content)),
		"source-uuid=n-a&source-uuid=n-b&hash=" + sumOf(content), "source-uuid=n-a&ttl=1h&hash=" + sumOf(content), "%zz"} {
		if got := s.call("HEAD", "shared-files/node/n-b/file?"+query, nil); got.code != 400 {
			t.Errorf("%.40s: %s", query, got)
		}
	}
	for _, path := range []string{"shared-files/node/n-b", "shared-files/node//file", "shared-files/node/n-b/", "shared-files/n-b/n-a/file", "shared-files/uploads/",
		"shared-files/node/n-b/n-a/file", "shared-files"} {
		s.want(s.call("POST", path, strings.NewReader("")), 404, "NOT FOUND")
	}
	if got := s.call("PUT", "shared-files/node/n-b/file", strings.NewReader("")); got.code != 405 || got.header.Get("Allow") != "POST, HEAD" {
		t.Error(got)
	}
	s.wantFiles()
	for _, id := range []string{"file.metadata.properties", "...", ".hidden", "medata", strings.Repeat("x", 248)} {
		s.want(s.share("n-b", "n-a", id, content), 200, "")
	}
}

func TestShareBodyLengthIsChecked(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"), func(s *testRelay) { s.config.MaxBodySize = 1000 })
	path := "shared-files/node/n-b/file?source-uuid=n-a&signature=" + signed("n-a", content)
	s.want(s.call("POST", path, io.LimitReader(strings.NewReader(content), 100)), 411, "LENGTH REQUIRED")
	s.want(s.share("n-b", "n-a", "file", strings.Repeat("x", 1001)), 413, "PAYLOAD TOO LARGE")
	s.want(s.share("n-b", "n-a", "full", strings.Repeat("x", 1000)), 200, "")
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n%s", basePath+path, content)
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(conn); !strings.HasPrefix(string(text), "HTTP/1.1 400 ") || !strings.HasSuffix(string(text), "the body is shorter than its Content-Length") {
		t.Errorf("%q", text)
	}
	s.wantFiles("n-b/n-a/full", "n-b/n-a/full.medata")
}

func TestShareExpires(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"))
	s.want(s.share("n-b", "n-a", "short", content, "ttl=1h"), 200, "")
	s.want(s.share("n-b", "n-a", "ever", content), 200, "")
	if strings.Contains(s.read("shared-files-nodes/n-b/n-a/ever.medata"), "expires") {
		t.Error("the file has an expiry")
	}
	medata := s.read("shared-files-nodes/n-b/n-a/short.medata")
	at, _, _ := strings.Cut(medata, "expires=")
	s.write("shared-files-nodes/n-b/n-a/short.medata", at+"expires="+strconv.FormatInt(time.Now().Unix()-1, 10)+"\n")
	if got := s.has("n-b", "n-a", "short", sumOf(content)); got != 404 { // an expired file counts as absent before the sweep
		t.Error(got)
	}
	s.write("shared-files-nodes/n-b/n-a/odd.medata", "nonsense")
	s.server.store.sweep(t.Context(), time.Now().Add(1000*time.Hour))
	s.wantFiles("n-b/n-a/ever", "n-b/n-a/ever.medata", "n-b/n-a/odd.medata")
	if got := s.has("n-b", "n-a", "ever", sumOf(content)); got != 200 {
		t.Error(got)
	}
	if got := s.has("n-b", "n-a", "odd", sumOf(content)); got != 404 {
		t.Error(got)
	}
}

func TestShareIsStoredAtomically(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"))
	// Killed between the two steps of storing, or damaged later.
	s.write("shared-files-nodes/n-b/n-a/file", content)
	if got := s.has("n-b", "n-a", "file", sumOf(content)); got != 404 {
		t.Error(got)
	}
	s.want(s.share("n-b", "n-a", "file", content), 200, "")
	s.write("shared-files-nodes/n-b/n-a/file", content[1:])
	if got := s.has("n-b", "n-a", "file", sumOf(content)); got != 404 {
		t.Error(got)
	}
	var working sync.WaitGroup
	for i := range 8 {
		one := strings.Repeat(strconv.Itoa(i), 100_000+i)
		working.Go(func() { s.want(s.share("n-b", "n-a", "file", one), 200, "") })
	}
	working.Wait()
	kept := s.read("shared-files-nodes/n-b/n-a/file")
	if got := s.has("n-b", "n-a", "file", sumOf(kept)); got != 200 {
		t.Error("content and description are of two uploads", got)
	}
}

func TestShareCannotReplaceFolderOfAnotherNode(t *testing.T) {
	f := startExtendedTree(t)
	f.root.want(f.root.share("r1", "n-c", "n-a", "a file"), 200, "") // r1/n-c/n-a
	if got := f.root.share("n-c", "n-a", "file", content); got.code != 409 {
		t.Error(got) // it would be r1/n-c/n-a/file
	}
	f.root.want(f.root.share("n-c", "n-b", "file", content), 200, "")
	if got := f.root.share("r1", "n-c", "n-b", content); got.code != 409 {
		t.Error(got)
	}
}

func TestShareWithoutRouteFails(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"))
	for _, target := range []string{"loop1", "lost"} {
		if got := s.share(target, "n-a", "file", content); got.code != 500 || !strings.Contains(got.body, "no route to the target") {
			t.Error(got)
		}
		if got := s.has(target, "n-a", "file", sumOf(content)); got != 404 {
			t.Error(got)
		}
	}
	s.wantFiles()
}

func TestShareBeyondQuotaFails(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"), func(s *testRelay) { s.config.SharedFilesQuota = 100 << 10 })
	old := strings.Repeat("o", 40<<10)
	s.want(s.share("n-b", "n-a", "one", old), 200, "")
	if got := s.share("n-b", "n-a", "never", strings.Repeat("x", 101<<10)); got.code != 413 || !strings.Contains(got.body, "shared_files_quota") {
		t.Error(got)
	}
	if got := s.share("n-b", "n-a", "two", strings.Repeat("x", 50<<10)); got.code != 507 || !strings.Contains(got.body, "shared_files_quota") {
		t.Error(got)
	}
	s.want(s.share("n-b", "n-a", "two", strings.Repeat("x", 30<<10), "ttl=0"), 200, "")
	s.wantFiles("n-b/n-a/one", "n-b/n-a/one.medata", "n-b/n-a/two", "n-b/n-a/two.medata")
	s.restart() // existing files count, including those of other programs
	if got := s.share("n-b", "n-a", "three", strings.Repeat("x", 30<<10)); got.code != 507 {
		t.Error(got)
	}
	s.server.store.sweep(t.Context(), time.Now().Add(time.Minute))
	s.want(s.share("n-b", "n-a", "three", strings.Repeat("x", 30<<10)), 200, "")
	if s.read("shared-files-nodes/n-b/n-a/one") != old {
		t.Error("an accepted file is missing")
	}
	if used, _ := s.server.store.space.state(); used != roundedSize(40<<10)+roundedSize(30<<10)+2*minSize {
		t.Error(used)
	}
	if s.leftovers() != 0 {
		t.Error("a partial file is left")
	}
}

func TestStrictUploadBeyondQuotaFails(t *testing.T) {
	s := startRoot(t, func(s *testRelay) { s.config.SharedFilesQuota = 100 << 10 })
	put := func(name string, size int) reply {
		text := strings.Repeat("x", size)
		return s.put(name+"?ttl=1d", block("n-a", "sha512", text), text)
	}
	s.want(put("one", 60<<10), 200, "")
	s.want(put("never", 101<<10), 413, "")
	s.want(put("two", 40<<10), 507, "")
	s.want(put("one", 20<<10), 200, "") // smaller than before
	s.want(put("two", 40<<10), 200, "")
}

func TestStalledSenderIsAnswered(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"), withShortTimeout)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %sshared-files/node/n-b/file?source-uuid=n-a&signature=%s HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n%s", basePath,
		signed("n-a", content), content)
	if text, _ := io.ReadAll(conn); !strings.HasPrefix(string(text), "HTTP/1.1 408 ") {
		t.Errorf("%q", text)
	}
	s.wantFiles()
}
