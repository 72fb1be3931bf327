package legacy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/peer"
)

var metrics = inspect.NewMetrics()

// checkedAggregator accepts every delivery and report that the API would accept.
type checkedAggregator struct {
	musterv1.HeartbeatServiceClient
	t *testing.T
}

func (a *checkedAggregator) key(key muster.Key) {
	if !peer.ValidName(key.Plugin) || !peer.ValidName(key.Node) || key.Plugin != "logs" {
		a.t.Errorf("key %+v", key)
	}
}

func (a *checkedAggregator) Submit(_ context.Context, d *muster.Delivery) (*muster.Result, error) {
	a.key(d.Key)
	if !isFileName(d.FileName) || !utf8.ValidString(d.MediaType) || len(d.MediaType) > limits.MediaType {
		a.t.Errorf("file name %q, media type %q", d.FileName, d.MediaType)
	}
	size, err := io.Copy(io.Discard, d.Body)
	return &muster.Result{Size: size}, err
}

func (a *checkedAggregator) ReportProgress(_ context.Context, key muster.Key, p muster.Progress) error {
	a.key(key)
	for _, text := range slices.Concat([]string{p.Message}, p.Failures, p.Errors, p.AppendFailing) {
		if !utf8.ValidString(text) {
			a.t.Errorf("progress %q", text)
		}
	}
	return nil
}

func (a *checkedAggregator) SendHeartbeat(context.Context, *musterv1.SendHeartbeatRequest, ...grpc.CallOption) (*musterv1.SendHeartbeatResponse, error) {
	return &musterv1.SendHeartbeatResponse{Interval: durationpb.New(0)}, nil
}

func isFileName(name string) bool {
	return len(name) <= limits.FileName && utf8.ValidString(name) && strings.Trim(name, ". ") != "" &&
		!strings.ContainsAny(name, `/\`) && !strings.ContainsFunc(name, unicode.IsControl)
}

// answerTo returns the answer to a request with a certificate for the plugin logs.
func answerTo(t *testing.T, r *http.Request) *httptest.ResponseRecorder {
	const run = "00000000000000aa"
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1),
		URIs: []*url.URL{{Scheme: "spiffe", Host: run + ".f.muster", Path: "/plugin/logs"}}}
	aggregator := &checkedAggregator{t: t}
	h := &handler{run: run, planned: func(plugin string) bool { return plugin == "logs" }, revoked: fleet.NewRevoked(),
		metrics: metrics, log: slog.New(slog.DiscardHandler), limit: 4096, living: context.Background(),
		deliver: aggregator, heartbeats: aggregator}
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The error names the request as wrong, and not the gateway. A truncated body may be sent again.
func TestOnlyMalformedChunkIsBadRequest(t *testing.T) {
	const head = "PUT /api/v1/results/by-node/n1/logs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	for body, code := range map[string]int{
		"2\r\nab\r\nzz\r\nab\r\n0\r\n\r\n": 400, "2\r\nabcd\r\n0\r\n\r\n": 400, "fffffffffffffffff\r\na": 400,
		"2\nab\r\n": 400, "2\r;\r\nab\r\n": 400, "\r\nab\r\n": 400, strings.Repeat("0", 17) + "\r\n": 400,
		"2;" + strings.Repeat("x", 4096) + "\r\nab\r\n":               400,
		strings.Repeat("1;"+strings.Repeat("x", 4000)+"\r\na\r\n", 5): 400,
		"2\r\nab\r\n0\r\n\r\n":                                        200,
		"2\r\nab\r\n0\r\nno trailer\r\n\r\n":                          400,
		// Incomplete: the connection may have been cut, and old workers do not repeat a request after 4xx.
		"2\r\nab\r\n": 500, "5\r\nab": 500, "2\r\nab\r\n0\r\n": 500, "2\r\nab\r\n0\r\n\r": 500, "2\r\nab\r\n0\r\nA: b": 500,
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + body)))
		if err != nil {
			t.Fatal(err)
		}
		if w := answerTo(t, r); w.Code != code {
			t.Errorf("%q: %d %q, want %d", body, w.Code, w.Body, code)
		}
	}
}

// Every request that HTTP permits gets an answer that old workers understand, and only valid values are forwarded.
func FuzzRequestOfWorkerIsAnswered(f *testing.F) {
	for _, request := range []string{
		"PUT /api/v1/results/by-node/n1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/gzip\r\n" +
			"Content-Disposition: attachment;filename=a b.tar.gz\r\nContent-Length: 2\r\n\r\nab",
		"PUT /api/v1/results/by_node/n1/logs.tar.gz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
		"PUT /api/v1/results/by_node/n1/logs.\xb7\x99F=tar.gz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"PUT /api/v1/results//global/logs?x=%zz HTTP/1.1\r\nHost: x\r\nContent-Range: bytes 0-1/2\r\nContent-Length: 2\r\n\r\nab",
		"PUT /api/v1/results/global/logs HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"error\":\"no\"}",
		"POST /api/v1/progress/by-node/n1/logs HTTP/1.1\r\nHost: x\r\nContent-Length: 25\r\n\r\n{\"msg\":\"\xff\",\"completed\":1}",
		"GET /api/v1/health/by-node/n%2F1/lo%ffgs HTTP/1.0\r\n\r\n",
		"GET //n1/logs?a#%f HTTP/1.0\r\n\r\n",
		"GET //evil.example/%2e%2e/%5c HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT h:1 HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		w := answerTo(t, r)
		switch w.Code {
		case http.StatusCreated, http.StatusAccepted, http.StatusNoContent, http.StatusPartialContent, http.StatusTooManyRequests:
			t.Errorf("%s %q: %d", r.Method, r.URL, w.Code)
		case http.StatusMovedPermanently:
			to, err := url.Parse(w.Header().Get("Location"))
			if err != nil || to.Host != "" || to.User != nil || to.Scheme != "" || to.Path != cleanPath(r.URL.Path) {
				t.Errorf("%q leads to %q", r.URL, w.Header().Get("Location"))
			}
		}
		if body := w.Body.String(); !utf8.ValidString(body) || strings.Count(body, "\n") > 1 || len(body) > 4096+4*len(raw) {
			t.Errorf("%s %q: %q", r.Method, r.URL, body)
		}
	})
}

// The gateway sends the name of a result in the same header: who downloads a result and delivers it keeps its name.
func FuzzFileNameSurvivesDownload(f *testing.F) {
	for _, name := range []string{"r.json", `a"b`, "ü ü", "%41", "a;b=c", "a\tb", ". .x", strings.Repeat("ü", 512)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !isFileName(name) {
			return
		}
		disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
		if got := fileName(disposition, ""); got != name {
			t.Errorf("%q became %q through %q", name, got, disposition)
		}
	})
}
