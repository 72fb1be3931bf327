package rest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
	"muster.example/services/client/go/peer"
)

// noLinks returns links that open nothing.
type noLinks struct{}

func (noLinks) New(*x509.Certificate, peer.Identity) (string, time.Duration) {
	return "https://x/login", time.Second
}

// newUnconnected returns a server whose calls end in `call` instead of a service.
func newUnconnected(f *testing.F, call func(request proto.Message) error) (*Server, *x509.Certificate) {
	f.Helper()
	authority := mustertest.NewFleet()
	keys, err := fleet.Open(authority.Folder(f, authority.Service("gateway", "g1")))
	if err != nil {
		f.Fatal(err)
	}
	connection, err := grpc.NewClient("passthrough:///none", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(_ context.Context, _ string, request, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			return call(request.(proto.Message))
		}),
		grpc.WithStreamInterceptor(func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, withReason(status.New(codes.NotFound, "no stream"), Problem{Reason: "RUN_NOT_FOUND", NextStep: "List them."}, 0).Err()
		}))
	if err != nil {
		f.Fatal(err)
	}
	metrics := inspect.NewMetrics()
	s, err := New(Services{connection, connection, connection, connection}, keys, fleet.NewRevoked(), noLinks{}, NewWatches(metrics), metrics, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	return s, authority.Intermediate.Leaf("spiffe://" + mustertest.Domain + "/user/alice").Leaf
}

// Every request that HTTP permits gets an answer with a bounded, readable text, and only valid messages are forwarded.
func FuzzRequestIsAnswered(f *testing.F) {
	post := func(path, body string) string {
		return "POST " + path + " HTTP/1.0\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	}
	for _, request := range []string{
		post("/api/v1/runs", `{"title":"\u0000ü","nodes":["n1"],"plugins":["name: logs"],"deadline":"5s"}`),
		post("/api/v1/runs", `{"titel":1}`), post("/api/v1/runs", `{"title":"\ud800"}`), post("/api/v1/runs", "{\"title\":\"\xff\"}"),
		post("/api/v1/runs", `{} {}`), post("/api/v1/runs/00000000000000aa:cancel", `{"reason":"x"}`), post("/api/v1/dashboard-links", "x"),
		"GET /api/v1/runs?page_size=5&page_token=%ff HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /api/v1/runs?pageSise=5 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /api/v1/nodes?labels[rack]=a HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /api/v1/runs/%ff/results/a%2Fb/n1/content HTTP/1.1\r\nHost: x\r\nRange: bytes=0-\r\nIf-None-Match: *\r\n\r\n",
		"GET /api/v1/runs/00000000000000aa/status:watch HTTP/1.1\r\nHost: x\r\n\r\n",
		"DELETE /api/v1/runs/00000000000000aa HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: cross-site\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	var forwarded proto.Message
	s, leaf := newUnconnected(f, func(request proto.Message) error {
		forwarded = request
		return nil
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		forwarded = nil
		w := httptest.NewRecorder()
		RefuseCrossSite(s).ServeHTTP(w, r)
		if forwarded != nil {
			// The codec of connections to services cleans the names of a path.
			if _, err := proto.Marshal(forwarded); err != nil && utf8.ValidString(r.URL.Path) {
				t.Errorf("%s %q forwards %v", r.Method, r.URL, err)
			}
		}
		checkAnswer(t, w, len(raw))
		if held := s.bodies.Held(); held != 0 {
			t.Errorf("%d bytes are still counted", held)
		}
	})
}

// checkAnswer checks that an error is a Problem with all its texts, and not much larger than the request.
func checkAnswer(t *testing.T, w *httptest.ResponseRecorder, asked int) {
	t.Helper()
	body := w.Body.Bytes()
	if !utf8.Valid(body) {
		t.Errorf("%d %q is not UTF-8", w.Code, body)
	}
	if w.Code < http.StatusBadRequest {
		return
	}
	var problem Problem
	if err := json.Unmarshal(body, &problem); err != nil || problem.Reason == "" || problem.NextStep == "" || problem.Message == "" {
		t.Errorf("%d %q: %v", w.Code, body, err)
	}
	if len(body) > 1024+6*asked {
		t.Errorf("%d bytes answer a request of %d", len(body), asked)
	}
}

// A body is refused, or what is understood of it survives being written and read again.
func FuzzBodySurvivesTranslation(f *testing.F) {
	for _, text := range []string{
		`{"title":"a","nodes":["n1"],"deadline":"1.5s","planNodes":[]}`, `{"title":null}`, `{"nodes":{}}`, `[]`, `null`, ``, `{"a":{"b":1}}`,
		`{"title":"\ud83d\ude00"}`, `{"deadline":"315576000001s"}`, `{"title":"a","title":"b"}`,
	} {
		f.Add(text)
	}
	marshaler := newOneValue()
	f.Fuzz(func(t *testing.T, text string) {
		var first, second musterv1.CreateRunRequest
		if err := marshaler.NewDecoder(bytes.NewReader([]byte(text))).Decode(&first); err != nil {
			if errors.Is(err, io.EOF) && len(bytes.TrimSpace([]byte(text))) > 0 {
				t.Errorf("%q is no empty body", text)
			}
			return
		}
		written, err := marshaler.Marshal(&first)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := marshaler.NewDecoder(bytes.NewReader(written)).Decode(&second); err != nil || !proto.Equal(&first, &second) {
			t.Errorf("%q became %s: %v", text, written, err)
		}
	})
}

// A range is inside of the file and not empty, or it is ignored or refused.
func FuzzRangeIsInsideTheFile(f *testing.F) {
	for _, text := range []string{"bytes=0-0", "bytes=5-", "bytes=-5", "bytes=9223372036854775807-", "bytes=1-0", "bytes=0-1,2-3", "bytes = 1-2", "x=0-1"} {
		f.Add(text, int64(10))
	}
	f.Add("bytes=-0", int64(0))
	f.Fuzz(func(t *testing.T, text string, size int64) {
		if size < 0 {
			return
		}
		part, result := parseRange(text, size)
		if result == rangeGood && (part.first < 0 || part.length < 1 || part.first > size-part.length) || result != rangeGood && part != (span{}) {
			t.Errorf("%q of %d: %+v, %d", text, size, part, result)
		}
	})
}
