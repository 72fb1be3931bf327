package rudder

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.example/gateway/limits"
)

const content = "what one node has for another\n\x00\xff"

// put uploads for the target n-b, from n-a; `head` is its header block.
func (s *testRelay) put(name, head, content string) reply {
	s.t.Helper()
	return s.call("PUT", "shared-files/n-b/n-a/"+name, strings.NewReader(head+"\n"+content))
}

func (s *testRelay) stored(name string) string { return s.read("shared-files/n-b/files/n-a/" + name) }

// leftovers counts partial uploads.
func (s *testRelay) leftovers() int {
	found, err := os.ReadDir(filepath.Join(s.config.FilesFolder(), incoming))
	if err != nil {
		s.t.Error(err)
	}
	return len(found)
}

func expires(t *testing.T, metadata string) int64 {
	t.Helper()
	_, text, found := strings.Cut(metadata, "\nexpires=")
	seconds, err := strconv.ParseInt(strings.TrimSuffix(text, "\n"), 10, 64)
	if !found || err != nil {
		t.Errorf("no single line with the expiry at the end of %q", metadata)
	}
	return seconds
}

func TestUploadIsStoredWithHeaderBlock(t *testing.T) {
	s := startRoot(t)
	for _, algorithm := range []string{"sha512", "sha256"} {
		head := block("n-a", algorithm, content)
		s.want(s.put("file?ttl=1d", head, content), 200, "")
		metadata := s.stored("file.metadata")
		end := expires(t, metadata)
		if s.stored("file") != content || metadata != head+fmt.Sprintf("expires=%d\n", end) {
			t.Errorf("stored %q with %q", s.stored("file"), metadata)
		}
		if left := end - time.Now().Unix() - 86400; left < -60 || left > 0 {
			t.Error("expires", left)
		}
	}
	if s.leftovers() != 0 {
		t.Error("a partial file is left")
	}
}

func TestHeadComparesStoredHash(t *testing.T) {
	s := startRoot(t)
	s.want(s.put("file?ttl=1d", block("n-a", "sha512", content), content), 200, "")
	sum := sumOf(content)
	for query, want := range map[string]int{
		"hash=" + sum: 200, "hash=" + sum[:127] + "g": 404, "hash=0xcafecafecafe": 404, "hash=": 404, "": 404, "sum=" + sum: 404,
		"hash=" + strings.ToUpper(sum): 404,
	} {
		s.want(s.call("HEAD", "shared-files/n-b/n-a/file?"+query, nil), want, "")
	}
	s.want(s.call("HEAD", "shared-files/n-b/n-a/other?hash="+sum, nil), 404, "")
	s.want(s.call("HEAD", "shared-files/n-b/stranger/file?hash="+sum, nil), 404, "")
	if err := os.Remove(filepath.Join(s.config.SharedFiles, "n-b/files/n-a/file")); err != nil {
		t.Fatal(err)
	}
	s.want(s.call("HEAD", "shared-files/n-b/n-a/file?hash="+sum, nil), 200, "") // only the header block is read
	s.write("shared-files/n-b/files/n-a/file.metadata", "nonsense")
	s.want(s.call("HEAD", "shared-files/n-b/n-a/file?hash="+sum, nil), 500, "")
}

func TestUploadWithWrongSignatureStoresNothing(t *testing.T) {
	s := startRoot(t)
	wrong := block("n-a", "sha512", content, func(values map[string]string) {
		last := "0"
		if strings.HasSuffix(values["digest"], "0") {
			last = "1"
		}
		values["digest"] = values["digest"][:len(values["digest"])-1] + last
	})
	s.want(s.put("file2?ttl=1d", wrong, content), 500, "")
	s.want(s.put("file2?ttl=1d", block("n-a", "sha512", content), content+"more"), 500, "")
	s.want(s.put("file2?ttl=1d", block("n-a", "sha512", content), ""), 500, "")
	s.want(s.put("file2?ttl=nonsense", wrong, content), 500, "") // the ttl is checked after the signature
	if s.stored("file2") != "" || s.stored("file2.metadata") != "" || s.leftovers() != 0 {
		t.Error("a file was stored")
	}
}

func TestInvalidHeaderBlockIsRefused(t *testing.T) {
	s := startRoot(t)
	good := block("n-a", "sha512", content)
	for _, name := range metadataKeys {
		missing := block("n-a", "sha512", content, func(values map[string]string) { delete(values, name) })
		s.want(s.put("file?ttl=1d", missing, content), 500, "")
		s.want(s.put("file?ttl=1d", good+name+"=again\n", content), 500, "")
	}
	for name, value := range map[string]string{
		"header": "rudder-signature-v2", "algorithm": "sha1", "digest": "xyz", "hash_value": "00", "short_pubkey": "AAAA", "expires": "soon",
	} {
		s.want(s.put("file?ttl=1d", block("n-a", "sha512", content, func(values map[string]string) { values[name] = value }), content), 500, "")
	}
	s.want(s.put("file?ttl=1d", strings.ReplaceAll(good, "\n", "\r\n"), content), 500, "")
	s.want(s.put("file?ttl=1d", good+"\r", content), 500, "") // the empty line is CRLF: it does not end the block
	s.want(s.put("file?ttl=1d", good+"hostname2=\xff\n", content), 500, "")
	s.want(s.put("file?ttl=1d", good+"long="+strings.Repeat("x", int(limits.ShareHead))+"\n", content), 500, "")
	if s.stored("file") != "" {
		t.Error("a file was stored")
	}
}

func TestHeaderBlockVariantsAreAccepted(t *testing.T) {
	s := startRoot(t)
	odd := block("n-a", "sha512", content, func(values map[string]string) {
		values["expires"], values["other"], values["hash_value"] = "12", "dropped", strings.ToUpper(values["hash_value"])
	})
	shuffled := slices.Collect(strings.Lines(odd))
	slices.Reverse(shuffled)
	s.want(s.put("file3.properties?ttl=1d", "no key and no value\n"+strings.Join(shuffled, ""), content), 200, "")
	metadata := s.stored("file3.properties.metadata")
	if !strings.HasPrefix(metadata, block("n-a", "sha512", content)[:200]) || strings.Contains(metadata, "other") ||
		strings.Count(metadata, "expires=") != 1 || expires(t, metadata) < time.Now().Unix()+86000 {
		t.Error(metadata)
	}
	s.want(s.call("HEAD", "shared-files/n-b/n-a/file3.properties?hash="+sumOf(content), nil), 200, "")
	s.want(s.put("empty?ttl=1", block("n-a", "sha512", ""), ""), 200, "")
	// Like released relays, the hash is not compared with the content.
	lie := block("n-a", "sha512", content, func(values map[string]string) { values["hash_value"] = sumOf("another") })
	s.want(s.put("lie?ttl=1d", lie, content), 200, "")
	s.want(s.call("HEAD", "shared-files/n-b/n-a/lie?hash="+sumOf("another"), nil), 200, "")
}

func TestIdsWithDotSegmentsAreRefused(t *testing.T) {
	s := startRoot(t)
	good := block("n-a", "sha512", content)
	s.want(s.put("file?ttl=1d", good, content), 200, "")
	before := s.stored("file.metadata")
	for _, id := range []string{"file.metadata", "file.METADATA", "a%2Fb", "%2e%2e", "%2e", "a%20b", "a%00b", "%C3%A9", strings.Repeat("x", 4096)} {
		s.want(s.put(id+"?ttl=1d", good, content), 400, "")
		s.want(s.call("HEAD", "shared-files/n-b/n-a/"+id+"?hash=00", nil), 400, "")
		s.want(s.call("HEAD", "shared-files/"+strings.TrimSuffix(id, ".metadata")+"x%2F/n-a/f?hash=00", nil), 400, "")
	}
	if s.stored("file.metadata") != before {
		t.Error("the header block of another file changed")
	}
	for _, id := range []string{"file.metadata.properties", "...", ".hidden", "_-.x", strings.Repeat("x", 246), "%66ile9"} {
		s.want(s.put(id+"?ttl=1d", good, content), 200, "")
	}
	if s.stored("file9") != content {
		t.Error("the id was not decoded")
	}
	for _, path := range []string{"shared-files/n-b/n-a/", "shared-files/n-b//file", "shared-files/n-b/n-a", "shared-files/n-b/n-a/file/x"} {
		s.want(s.call("PUT", path+"?ttl=1d", strings.NewReader("x")), 404, "NOT FOUND")
	}
}

func TestTimeToLiveFormats(t *testing.T) {
	for text, want := range map[string]uint64{
		"9136": 9136, "1h 7s": 3607, "1hour 2minutes": 3720, "1d 7seconds": 86407, "0": 0, "1s1m1h": 3661, "2 weeks": 1209600,
		"1M": 2630016, "1month": 2630016, "1y": 31557600, "1500ms 500ms": 2, "999999ns": 0, "3min": 180, "10years": 315576000,
		"18446744073709551615": 1<<64 - 1,
	} {
		if got, err := parseTTL(text); err != nil || got != want {
			t.Errorf("%q: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"913j", "913b83", "913h 89j", "not-a-duration", "", " ", "-1", "1.5h", "5h 3", "h", "1h,2m", "1H", "99999999999999999999",
		"5s 18446744073709551615s", "18446744073709551615y"} {
		if got, err := parseTTL(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
	s := startRoot(t)
	good := block("n-a", "sha512", content)
	for _, ttl := range []string{"18446744073709551615", "not-a-duration", ""} {
		s.want(s.put("file?ttl="+ttl, good, content), 400, "")
	}
	s.want(s.put("file", good, content), 404, "NOT FOUND")
	s.want(s.put("file?ttl=1h+7s", good, content), 200, "")
	if left := expires(t, s.stored("file.metadata")) - time.Now().Unix(); left < 3500 || left > 3607 {
		t.Error(left)
	}
}

func TestUploadOfUnknownNodeFails(t *testing.T) {
	s := startRoot(t, func(s *testRelay) {
		list := listOf("n-a a.example root", "n-b b.example root", "other o.example root")
		list = strings.Replace(list, identityOf("other").keyHash(), "sha256:", 1)
		s.write("nodeslist.json", list)
	})
	good := block("n-a", "sha512", content)
	send := func(path string) reply {
		return s.call("PUT", "shared-files/"+path+"?ttl=1d", strings.NewReader(good+"\n"+content))
	}
	s.want(send("stranger/n-a/file"), 500, "") // the target, on root
	s.want(s.call("HEAD", "shared-files/stranger/n-a/file?hash=00", nil), 500, "")
	s.want(send("n-b/stranger/file"), 404, "") // the source
	s.want(send("n-a/n-b/file"), 404, "")      // signed with a key that is not the source's
	s.want(send("n-b/other/file"), 500, "")    // a source without a key hash
}

func TestUploadLengthsAndMethodsAreChecked(t *testing.T) {
	s := startRoot(t, func(s *testRelay) { s.config.MaxBodySize = 8192 })
	s.want(s.put("big?ttl=1d", "", strings.Repeat("x", 9000)), 413, "PAYLOAD TOO LARGE")
	s.want(s.put("small?ttl=1d", "", strings.Repeat("x", 100)), 500, "")
	path := "shared-files/n-b/n-a/file?ttl=1d"
	s.want(s.call("PUT", path, io.LimitReader(strings.NewReader("x"), 1)), 411, "LENGTH REQUIRED")
	for _, method := range []string{"GET", "POST", "DELETE", "PATCH"} {
		s.want(s.call(method, path, nil), 404, "NOT FOUND")
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	head := block("n-a", "sha512", content)
	fmt.Fprintf(conn, "PUT %s1/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s\n%s", basePath, path, len(head)+len(content)+50, head, content)
	_ = conn.CloseWrite()
	answer, _ := io.ReadAll(conn)
	conn.Close()
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 500")) || s.stored("file") != "" || s.leftovers() != 0 {
		t.Errorf("a body that is shorter than said: %q", answer)
	}
}

func TestRootRefusesUnknownTarget(t *testing.T) {
	root := startRoot(t, func(s *testRelay) {
		s.config.UpstreamHost, s.config.UpstreamCertificateFile = "127.0.0.2", s.write("policy_server.pem", identityOf("r1").pem())
	})
	other := start(t, "r1", "127.0.0.2", root.config.HTTPSPort, listOf("stranger s.example r1", "n-a a.example r1"))
	path := "shared-files/stranger/n-a/file?ttl=1d"
	upload := block("n-a", "sha512", content) + "\n" + content
	root.want(root.call("PUT", path, strings.NewReader(upload)), 500, "")
	other.want(other.call("PUT", path, strings.NewReader(upload)), 200, "")
}

func TestUnknownTargetIsForwardedUpstreamOnce(t *testing.T) {
	root := start(t, "root", "127.0.0.1", 0, listOf("root r root", "n-a a.example r1", "r1 127.0.0.2 root", "n-b b.example root"))
	r1 := start(t, "r1", "127.0.0.2", root.config.HTTPSPort, listOf("n-a a.example r1"), func(s *testRelay) {
		s.config.UpstreamHost, s.config.UpstreamCertificateFile = "127.0.0.1", s.write("policy_server.pem", identityOf("root").pem())
	})
	good := block("n-a", "sha512", content)
	r1.want(r1.call("HEAD", "shared-files/n-b/n-a/file?hash="+sumOf(content), nil), 404, "")
	r1.want(r1.put("file?ttl=1h+1s", good, content), 200, "")
	if root.stored("file") != content || r1.stored("file") != "" {
		t.Error("it is not stored where the target is known")
	}
	r1.want(r1.call("HEAD", "shared-files/n-b/n-a/file?hash="+sumOf(content), nil), 200, "")
	r1.want(r1.put("file?ttl=never", good, content), 400, "")
	r1.want(r1.call("HEAD", "shared-files/stranger/n-a/file?hash=00", nil), 500, "")
	r1.want(r1.call("HEAD", "shared-files/n-b/n-a/..%2f?hash=00", nil), 400, "")
	r1.write("policy_server.pem", identityOf("n-a").pem()) // another than root shows
	if err := r1.server.Reload(); err != nil {
		t.Fatal(err)
	}
	r1.want(r1.put("file?ttl=1h", good, content), 500, "")
}

func TestUnreachableUpstreamOrLoopFails(t *testing.T) {
	upstream := "127.0.0.2" // this relay itself
	s := start(t, "r1", "127.0.0.2", 0, listOf("n-a a.example r1"), func(s *testRelay) {
		s.config.UpstreamHost, s.config.UpstreamCertificateFile = upstream, s.config.CertificateFile
	})
	s.want(s.put("file?ttl=1h", block("n-a", "sha512", content), content), 500, "")
	s.config.UpstreamHost = "127.0.0.77" // no relay listens there
	s.want(s.put("file?ttl=1h", block("n-a", "sha512", content), content), 500, "")
	s.config.UpstreamHost = ""
	s.want(s.call("HEAD", "shared-files/n-b/n-a/file?hash=00", nil), 500, "")
}

func TestSignatureOfOpenSSLIsAccepted(t *testing.T) {
	s := startRoot(t)
	file := s.write("content", content)
	key := s.write("signer.key", identityOf("n-a").keyPEM())
	if out, err := exec.Command("openssl", "dgst", "-sha512", "-sign", key, "-out", file+".sig", file).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	head := block("n-a", "sha512", content, func(values map[string]string) {
		values["digest"] = hex.EncodeToString([]byte(s.read("content.sig")))
	})
	s.want(s.put("file?ttl=1d", head, content), 200, "")
}

func TestLargeUploadUsesLittleMemory(t *testing.T) {
	s := startRoot(t)
	const size = 32 << 20
	source, keys := s.server.state.Load().nodes["n-a"], strings.Repeat("0123456789abcdef", size/16)
	head := block("n-a", "sha512", keys) + "\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code, err := s.server.receive(struct{ io.Reader }{io.MultiReader(strings.NewReader(head), strings.NewReader(keys))},
		sharedID{"n-b", "n-a", "file"}, source, "1d")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; code != 200 || err != nil || used > size/8 {
		t.Error(code, err, used)
	}
	if info, err := os.Stat(filepath.Join(s.config.SharedFiles, "n-b/files/n-a/file")); err != nil || info.Size() != size {
		t.Error(info, err)
	}
}
