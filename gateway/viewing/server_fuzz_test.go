package viewing

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/rest"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

const fuzzedOrigin = "https://pages.example"

// completeStatus is a status service whose runs are complete. It fails for a request that cannot be encoded.
func completeStatus(_ context.Context, _ string, request, response any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
	if _, err := proto.Marshal(request.(proto.Message)); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	complete := &musterv1.RunStatus{Run: "00000000000000aa", State: musterv1.RunState_RUN_STATE_COMPLETE}
	switch to := response.(type) {
	case *[]byte:
		*to, _ = proto.Marshal(complete)
	case *musterv1.RunStatus:
		proto.Merge(to, complete)
	}
	return nil
}

// Every request that HTTP permits gets an answer with readable text. Without a certificate and a session only pages are
// served.
func FuzzRequestOfViewerIsAnswered(f *testing.F) {
	for _, request := range []string{
		"GET /status?run=00000000000000aa&only=attention HTTP/1.1\r\nHost: x\r\nIf-None-Match: W/\"x\", *\r\nAccept-Encoding: gzip;q=0.5\r\n\r\n",
		"GET /status?run=%ff HTTP/1.1\r\nHost: x\r\nOrigin: " + fuzzedOrigin + "\r\n\r\n",
		"GET /status HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n",
		"OPTIONS /status HTTP/1.1\r\nHost: x\r\nOrigin: " + fuzzedOrigin + "\r\n\r\n",
		"GET /login?token=%00 HTTP/1.1\r\nHost: x\r\n\r\n", "POST /logout HTTP/1.1\r\nHost: x\r\nCookie: " + cookieName + "=x\r\n\r\n",
		"GET /api/v1/runs/a%2Fb/status?x=y HTTP/1.1\r\nHost: x\r\n\r\n", "DELETE /api/v1/runs/x HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /../%2e%2e/\\index.html HTTP/1.1\r\nHost: x\r\nRange: bytes=5-1\r\n\r\n",
	} {
		f.Add([]byte(request), true)
		f.Add([]byte(request), false)
	}
	authority := mustertest.NewFleet()
	keys, err := fleet.Open(authority.Folder(f, authority.Service("gateway", "g1")))
	if err != nil {
		f.Fatal(err)
	}
	connection, err := grpc.NewClient("passthrough:///none", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(completeStatus),
		grpc.WithStreamInterceptor(func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, status.Error(codes.Unavailable, "no stream")
		}))
	if err != nil {
		f.Fatal(err)
	}
	metrics, log, revoked := inspect.NewMetrics(), slog.New(slog.DiscardHandler), fleet.NewRevoked()
	sessions, watches := NewSessions("https://h:1"), rest.NewWatches(metrics)
	api, err := rest.New(rest.Services{Aggregator: connection, Status: connection, Relay: connection}, keys, revoked, sessions, watches, metrics, log)
	if err != nil {
		f.Fatal(err)
	}
	s := New(Settings{Origins: []string{fuzzedOrigin}}, connection, api, sessions, watches, keys, revoked, metrics, log)
	leaf := authority.Intermediate.Leaf("spiffe://" + mustertest.Domain + "/user/alice").Leaf
	f.Fuzz(func(t *testing.T, raw []byte, known bool) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		r.TLS = &tls.ConnectionState{}
		if known {
			r.TLS.PeerCertificates = []*x509.Certificate{leaf}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		asked, body := routeOf(r), w.Body.Bytes()
		if !known && (asked == "/status" || asked == "/api/") && w.Code < http.StatusBadRequest && r.Method != http.MethodOptions {
			t.Errorf("%s %q of a stranger: %d", r.Method, r.URL, w.Code)
		}
		// The codec of connections to services cleans the names of a path.
		if w.Code == http.StatusInternalServerError && utf8.ValidString(r.URL.Path) {
			t.Errorf("%s %q: %s", r.Method, r.URL, body)
		}
		if sessions.Count() != 0 || w.Header().Get("Access-Control-Allow-Origin") != "" && r.Header.Get("Origin") != fuzzedOrigin {
			t.Errorf("%s %q: %d sessions, %v", r.Method, r.URL, sessions.Count(), w.Header())
		}
		if w.Header().Get("Content-Encoding") == "gzip" || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			return
		}
		if !utf8.Valid(body) || len(body) > 0 && !json.Valid(body) {
			t.Errorf("%s %q: %d %q", r.Method, r.URL, w.Code, body)
		}
	})
}
