package app_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"muster.example/services/client/go/mustertest"
)

// The responses that legacy clients receive, as measured with Sonobuoy's aggregator, and for late or repeated results
// as designed.
func TestLegacyAnswersMatchSonobuoy(t *testing.T) {
	w := start(t)
	w.put("logs", "n1", "first")
	const results, progress = "/api/v1/results/", "/api/v1/progress/"
	for _, c := range []struct {
		name, method, path, body string
		code                     int
		text                     string // "": the body is empty
	}{
		{"stored", "PUT", results + "by-node/n2/logs", "x", 200, ""},
		{"the same again", "PUT", results + "by-node/n1/logs", "first", 200, ""},
		{"the seed's spelling", "PUT", results + "by_node/n1/logs", "first", 200, ""},
		{"different content", "PUT", results + "by-node/n1/logs", "second", 409, "another result"},
		{"a job's result", "PUT", results + "global/e2e", "x", 200, ""},
		{"global is a node's name", "PUT", results + "by-node/global/e2e", "x", 200, ""},
		{"an empty body", "PUT", results + "by-node/n2/e2e", "", 200, ""},
		{"dots stay in the name", "PUT", results + "global/p.json", "x", 200, ""},
		{"the oldest spelling", "PUT", results + "by-node/n1/e2e.tar.gz", "x", 200, ""},
		{"the query is ignored", "PUT", results + "by-node/n1/logs?x=y", "first", 200, ""},
		{"an unplanned plugin", "PUT", results + "by-node/n1/nothing", "x", 403, `"nothing/n1"`},
		{"an unplanned node", "PUT", results + "by-node/n9/logs", "x", 403, "n9"},
		{"an unplanned extension", "PUT", results + "by-node/n1/nothing.gz", "x", 403, `"nothing.gz/n1"`},
		{"an invalid name", "PUT", results + "by-node/n1/" + strings.Repeat("x", 254), "x", 403, "not expected"},
		{"a slash at the end", "PUT", results + "by-node/n1/logs/", "x", 404, "no such path"},
		{"a slash in a name", "PUT", results + "by-node/n1%2Flogs/e2e", "x", 404, "no such path"},
		{"letter case", "PUT", "/API/v1/results/by-node/n1/logs", "x", 404, "no such path"},
		{"the seed's typo", "PUT", "/api/v1/resutlts/by-node/n1/logs", "x", 404, "no such path"},
		{"a segment too few", "PUT", results + "by-node/logs", "x", 404, "no such path"},
		{"an unknown path", "GET", "/", "", 404, "no such path"},
		{"a double slash", "PUT", results + "by-node//n1/logs", "x", 301, ""},
		{"many slashes", "PUT", "//api/v1///results/by-node/n1/logs", "x", 301, ""},
		{"a path with dot segments", "PUT", results + "by-node/n1/../n1/logs", "x", 404, "no such path"},
		{"a node with dot segments", "PUT", results + "by-node/../logs", "x", 404, "no such path"},
		{"GET of a result", "GET", results + "by-node/n1/logs", "", 405, ""},
		{"POST of a result", "POST", results + "global/e2e", "x", 405, ""},
		{"DELETE of a result", "DELETE", results + "global/e2e", "", 405, ""},
		{"GET of progress", "GET", progress + "global/e2e", "", 405, ""},
		{"progress", "POST", progress + "by-node/n1/logs", `{"msg":"m","total":2,"completed":1}`, 200, ""},
		{"a job's progress", "POST", progress + "global/e2e", `{"appendtotals":true,"appendcompleted":1,"appendfailing":["a"]}`, 200, ""},
		{"no progress", "POST", progress + "global/e2e", "", 400, ""},
		{"progress that is not JSON", "POST", progress + "global/e2e", "x", 400, ""},
		{"progress that is not an object", "POST", progress + "global/e2e", "null", 400, ""},
		{"progress of a wrong type", "POST", progress + "global/e2e", `{"total":"many"}`, 400, ""},
		{"negative progress", "POST", progress + "global/e2e", `{"completed":-1}`, 400, "negative"},
		{"unplanned progress", "POST", progress + "by-node/n1/nothing", `{}`, 403, "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := strings.Split(strings.TrimSuffix(strings.Split(c.path, "?")[0], ".tar.gz"), "/")
			plugin, node := path[len(path)-1], path[len(path)-2]
			leaf := w.leaf("logs", "n1")
			if len(plugin) < 200 && c.code != 301 && c.code != 404 {
				leaf = w.leaf(plugin, node)
			}
			// Each with a Content-Length, and chunked.
			for _, body := range []any{strings.NewReader(c.body), struct{ *strings.Reader }{strings.NewReader(c.body)}} {
				reader, _ := body.(interface{ Read([]byte) (int, error) })
				a := call(t, oldClient(w.runA, leaf), c.method, "https://"+w.address()+c.path, reader)
				if a.code != c.code || (c.text == "") != (a.body == "") || !strings.Contains(a.body, c.text) {
					t.Errorf("answered %d %q, want %d %q", a.code, a.body, c.code, c.text)
				}
				if a.header.Get("Allow") != "" {
					t.Error("unexpected Allow header")
				}
				if a.body != "" && (a.header.Get("Content-Type") != "text/plain; charset=utf-8" || a.header.Get("X-Content-Type-Options") != "nosniff") {
					t.Errorf("headers of a text: %v", a.header)
				}
				if strings.Count(a.body, "\n") > 1 {
					t.Errorf("more than a line: %q", a.body)
				}
			}
		})
	}
	if got := w.aggregator.Get(key("e2e", "n1")); got == nil || got.Description.MediaType != "" && got.Description.MediaType != "application/gzip" {
		t.Errorf("the oldest spelling stored %+v", got)
	}
	if r := w.aggregator.Reports; len(r) < 4 || r[0].Message != "m" || r[0].Total != 2 || !r[2].AppendTotals || r[2].AppendFailing[0] != "a" {
		t.Errorf("progress arrived as %v", r)
	}
}

func TestPartOfResultIsRefused(t *testing.T) {
	w := start(t)
	a := w.put("logs", "n1", "part", "Content-Range", "bytes 0-3/10")
	if a.code != 400 || !strings.Contains(a.body, "Content-Range") {
		t.Errorf("answered %d %s", a.code, a.body)
	}
	if stored := w.aggregator.Get(key("logs", "n1")); stored != nil {
		t.Errorf("stored %+v", stored)
	}
	if a := w.put("logs", "n1", "the whole"); a.code != 200 {
		t.Errorf("the whole: answered %d %s", a.code, a.body)
	}
}

// Without a length and without chunks HTTP has no body: bytes that follow are not a part of the request.
func TestPutWithoutLengthIsRefused(t *testing.T) {
	w := start(t)
	for _, sent := range []struct{ header, code string }{{"", "411"}, {"Content-Length: 0\r\n", "200"}} {
		conn := w.dial(w.leaf("logs", "n1"))
		if _, err := conn.Write([]byte(request("PUT", "/api/v1/results/by-node/n1/logs", sent.header+"Connection: close\r\n", ""))); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+sent.code) {
			t.Errorf("%q: %v %s", sent.header, err, got)
		}
		if stored := w.aggregator.Get(key("logs", "n1")); (stored != nil) != (sent.code == "200") {
			t.Errorf("%q: stored %+v", sent.header, stored)
		}
		conn.Close()
	}
}

func TestPutAfterRunEndedReturns410(t *testing.T) {
	w := start(t)
	for _, reason := range []string{"RUN_SEALED", "RUN_CANCELLED"} {
		w.aggregator.Refuse(runA, codes.FailedPrecondition, reason)
		for _, size := range []int{1, 200 << 10} {
			if a := w.put("logs", "n1", strings.Repeat("x", size)); a.code != 410 {
				t.Errorf("%s: answered %d %s", reason, a.code, a.body)
			}
		}
	}
}

func TestPutIsAuthorizedByCertificate(t *testing.T) {
	w := start(t)
	url := "https://" + w.address() + "/api/v1/results/by-node/n1/logs"
	for name, c := range map[string]struct {
		leaf tls.Certificate
		code int
	}{
		"its own":                {w.leaf("logs", "n1"), 200},
		"any node":               {w.runA.SelfSigned.Leaf(w.runA.URI("plugin/logs")), 200},
		"another node":           {w.leaf("logs", "n2"), 403},
		"another plugin":         {w.leaf("e2e", "n1"), 403},
		"any node of e2e":        {w.runA.SelfSigned.Leaf(w.runA.URI("plugin/e2e")), 403},
		"an operator":            {w.runA.SelfSigned.Leaf(alice), 403},
		"a subdomain of the run": {w.runA.SelfSigned.Leaf("spiffe://x." + runA + "." + mustertest.Domain + "/plugin/logs/node/n1"), 403},
		"another run's URI":      {w.runA.SelfSigned.Leaf("spiffe://" + runB + "." + mustertest.Domain + "/plugin/logs/node/n1"), 403},
	} {
		for _, size := range []int{4, 300 << 10} { // small and streamed
			a := call(t, oldClient(w.runA, c.leaf), "PUT", url, struct{ *bytes.Reader }{bytes.NewReader(bytes.Repeat([]byte("x"), size))})
			if a.code != c.code && (c.code != 200 || a.code != 409) {
				t.Errorf("%s: answered %d %s, want %d", name, a.code, a.body, c.code)
			}
		}
	}
	for _, caller := range w.aggregator.Callers {
		if caller != "[]" && caller != "["+w.runA.URI("plugin/logs/node/n1")+"]" && caller != "["+w.runA.URI("plugin/logs")+"]" {
			t.Errorf("the aggregator was called by %s", caller)
		}
	}
}

// All nodes of a plugin may share a URI: the services distinguish them by their certificates.
func TestCertificateOfSharedIdentityIsForwarded(t *testing.T) {
	w := start(t)
	uri := w.runA.URI("plugin/logs")
	var want []string
	for range 2 {
		leaf := w.runA.SelfSigned.Leaf(uri)
		for _, request := range [][3]string{
			{"PUT", "results/by-node/n1/logs", "small"}, {"PUT", "results/by-node/n2/logs", strings.Repeat("x", 300<<10)},
			{"POST", "progress/by-node/n1/logs", "{}"}, {"GET", "health/by-node/n1/logs", ""},
		} {
			a := call(t, oldClient(w.runA, leaf), request[0], "https://"+w.address()+"/api/v1/"+request[1], strings.NewReader(request[2]))
			if a.code != 200 {
				t.Errorf("%s %s: %d %s", request[0], request[1], a.code, a.body)
			}
		}
		want = append(want, fmt.Sprintf("[%x:%x]", leaf.Leaf.AuthorityKeyId, leaf.Leaf.SerialNumber.Bytes()))
	}
	w.gateway.Stop()
	var got []string
	for i, caller := range w.aggregator.Callers {
		if caller == "["+uri+"]" {
			got = append(got, w.aggregator.Certificates[i])
		}
	}
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("the services were called with %v, want %v", got, want)
	}
}

func TestRefusedHandshakesAreCountedByReason(t *testing.T) {
	w := start(t)
	other := w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
	for reason, leaf := range map[string][]tls.Certificate{
		"other_authority": {other.SelfSigned.Leaf(other.URI("plugin/logs/node/n1"))},
		"no_certificate":  nil,
		"expired":         {w.runA.SelfSigned.Expired(w.runA.URI("plugin/logs/node/n1"))},
	} {
		_, err := try(oldClient(w.runA, leaf...), "PUT", "https://"+w.address()+"/api/v1/results/by-node/n1/logs", strings.NewReader("x"))
		if err == nil {
			t.Errorf("%s: the handshake succeeded", reason)
		}
		mustertest.Await(t, reason+" is counted", func() bool { return w.metric("refused_handshakes_total", reason) == 1 })
	}
	if w.aggregator.Get(key("logs", "n1")) != nil {
		t.Error("a result was stored")
	}
}

// syncBuffer is a buffer for the log. Safe for concurrent use.
type syncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A client that sends the certificate of another run is named. One of Go's library does not send it, because the server
// names its CA: the log says what that means.
func TestStaleSidecarIsNamedInLog(t *testing.T) {
	log := &syncBuffer{}
	w := start(t, func(w *testGateway) { w.log = log })
	other := w.aggregator.AddRun(runB, []string{"logs"}, []string{"n1"})
	stale := other.SelfSigned.Leaf(other.URI("plugin/logs/node/n1"))
	quiet := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.runA.SelfSigned.Pool(), Certificates: []tls.Certificate{stale}}}}
	for _, client := range []*http.Client{oldClient(w.runA, stale), quiet} {
		if a, err := try(client, "PUT", "https://"+w.address()+"/api/v1/results/by-node/n1/logs", strings.NewReader("x")); err == nil {
			t.Errorf("answered %d", a.code)
		}
	}
	mustertest.Await(t, "the quiet one is explained", func() bool { return strings.Contains(log.String(), "one of another CA") })
	mustertest.Await(t, "it is named", func() bool { return strings.Contains(log.String(), other.URI("plugin/logs/node/n1")+": ") })
}

// A revoked or an expired client is named with its run.
func TestRefusedCredentialIsNamedInLog(t *testing.T) {
	log := &syncBuffer{}
	w := start(t, func(w *testGateway) { w.log = log })
	uri := w.runA.URI("plugin/logs/node/n1")
	deliver := func(leaf tls.Certificate) {
		_, _ = try(oldClient(w.runA, leaf), "PUT", "https://"+w.address()+"/api/v1/results/by-node/n1/logs", strings.NewReader("x"))
	}
	deliver(w.runA.SelfSigned.Expired(uri))
	mustertest.Await(t, "the expired one is named", func() bool { return strings.Contains(log.String(), `error="`+uri+": ") })
	w.revoke(uri)
	leaf := w.runA.SelfSigned.Leaf(uri)
	mustertest.Await(t, "the revoked one is named", func() bool {
		deliver(leaf)
		return strings.Contains(log.String(), `msg="identity refused"`) && strings.Contains(log.String(), "uri="+uri)
	})
}

func TestPlainHTTPGetsHelpText(t *testing.T) {
	w := start(t)
	for _, address := range []string{w.address(), w.gateway.Addresses.Gateway} {
		a := call(t, http.DefaultClient, "PUT", "http://"+address+"/api/v1/results/by-node/n1/logs", bytes.NewReader(make([]byte, 10_000)))
		if a.code != 400 || !strings.Contains(a.body, "https://") {
			t.Errorf("%s answered %d %q", address, a.code, a.body)
		}
	}
}

func TestListenerAcceptsTLS12AndTLS13(t *testing.T) {
	w := start(t)
	for version, fits := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", w.address(), &tls.Config{MinVersion: version, MaxVersion: version,
			RootCAs: w.runA.SelfSigned.Pool(), Certificates: []tls.Certificate{w.leaf("logs", "n1")}, NextProtos: []string{"h2", "http/1.1"}})
		if (err == nil) != fits {
			t.Errorf("TLS %x: %v", version, err)
		}
		if err == nil {
			if p := conn.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
				t.Errorf("negotiated %q", p)
			}
			conn.Close()
		}
	}
}

func TestFileNamesAndTypesAreStored(t *testing.T) {
	w := start(t)
	for i, c := range []struct{ disposition, contentType, name, mediaType string }{
		{"attachment;filename=r.json", "application/json", "r.json", "application/json"},
		{`attachment; filename="a b.txt"`, "text/plain", "a b.txt", "text/plain"},
		{"attachment;filename=a b.txt", "", "a b.txt", ""},
		{"attachment;filename=größe.txt", "", "größe.txt", ""},
		{`attachment; filename="../../etc/passwd"`, "", "passwd", ""},
		{`attachment;filename=..\..\x`, "", "x", ""},
		{"attachment;filename=..", "", "result", ""},
		{"attachment", "", "result", ""},
		{"", "application/gzip", "result", "application/gzip"},
		{"attachment;filename=" + strings.Repeat("n", 2000), "", strings.Repeat("n", 1024), ""},
		{"", strings.Repeat("t", 300), "result", ""},
	} {
		run := w.aggregator.AddRun(fmt.Sprintf("%016x", 0x1000+i), []string{"p"}, []string{"n"})
		url := fmt.Sprintf("https://127.0.0.1:%d/api/v1/results/by-node/n/p", w.aggregator.Port(run.ID))
		header := []string{"Content-Type", c.contentType}
		if c.disposition != "" {
			header = append(header, "Content-Disposition", c.disposition)
		}
		a := call(t, oldClient(run, run.SelfSigned.Leaf(run.URI("plugin/p/node/n"))), "PUT", url, strings.NewReader("x"), header...)
		got := w.aggregator.Get(mustertest.Key{Run: run.ID, Plugin: "p", Node: "n"})
		if a.code != 200 || got.Description.FileName != c.name || got.Description.MediaType != c.mediaType {
			t.Errorf("%q %q: %d, stored as %q %q", c.disposition, c.contentType, a.code, got.Description.FileName, got.Description.MediaType)
		}
	}
}

func TestErrorReportOfOldWorkerIsStoredAsError(t *testing.T) {
	w := start(t)
	if a := w.put("logs", "n1", `{"error":"no such file"}`, "Content-Type", "application/gzip"); a.code != 200 {
		t.Fatal(a)
	}
	got := w.aggregator.Get(key("logs", "n1"))
	if !got.Description.IsError || string(got.Data) != "no such file" {
		t.Errorf("stored %+v %q", got.Description, got.Data)
	}
	w.put("logs", "n2", `{"error":"x"}`, "Content-Disposition", "attachment;filename=r.json")
	if got := w.aggregator.Get(key("logs", "n2")); got.Description.IsError {
		t.Error("a named file was treated as an error report")
	}
}

func TestRunPortIsKeptOverRestartAndClosesWithRun(t *testing.T) {
	w := start(t, supervised)
	before := w.aggregator.Port(runA)
	w.gateway.Stop()
	w.startGateway()
	if a := w.put("logs", "n1", "x"); a.code != 200 {
		t.Errorf("answered %d %s", a.code, a.body)
	}
	w.deleteRun(runA)
	mustertest.Await(t, "the port is closed", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", before))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}
