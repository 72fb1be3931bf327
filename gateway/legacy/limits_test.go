package legacy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
)

// silentServices answer nothing before the deadline of a call.
type silentServices struct {
	musterv1.HeartbeatServiceClient
}

func await(ctx context.Context) error {
	<-ctx.Done()
	return muster.AsError(status.FromContextError(ctx.Err()).Err())
}

func (silentServices) Submit(ctx context.Context, _ *muster.Delivery) (*muster.Result, error) {
	return nil, await(ctx)
}

func (silentServices) ReportProgress(ctx context.Context, _ muster.Key, _ muster.Progress) error {
	return await(ctx)
}

func (silentServices) SendHeartbeat(ctx context.Context, _ *musterv1.SendHeartbeatRequest, _ ...grpc.CallOption) (*musterv1.SendHeartbeatResponse, error) {
	return nil, await(ctx)
}

func TestReportToSilentServiceIsAnsweredInTime(t *testing.T) {
	metrics := inspect.NewMetrics()
	synctest.Test(t, func(t *testing.T) {
		const run = "00000000000000aa"
		leaf := &x509.Certificate{SerialNumber: big.NewInt(1),
			URIs: []*url.URL{{Scheme: "spiffe", Host: run + ".f.muster", Path: "/plugin/logs"}}}
		h := &handler{run: run, planned: func(string) bool { return true }, revoked: fleet.NewRevoked(), metrics: metrics,
			log: slog.New(slog.DiscardHandler), limit: 4096, living: context.Background(), deliver: silentServices{}, heartbeats: silentServices{}}
		for method, path := range map[string]string{"POST": "/api/v1/progress/by-node/n1/logs", "GET": "/api/v1/health/by-node/n1/logs"} {
			request := httptest.NewRequest(method, path, strings.NewReader("{}"))
			request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
			answer, began := httptest.NewRecorder(), time.Now()
			h.ServeHTTP(answer, request)
			if took := time.Since(began); took != limits.ProgressTime || answer.Code != http.StatusServiceUnavailable {
				t.Errorf("%s: %d %q after %v", path, answer.Code, answer.Body, took)
			}
		}
	})
}

// endless is a body without an end.
type endless struct {
	pause time.Duration // before each read
	most  int           // bytes of a read; 0: any
}

func (e endless) Read(into []byte) (int, error) {
	time.Sleep(e.pause)
	if e.most > 0 {
		return min(e.most, len(into)), nil
	}
	return len(into), nil
}

// drained returns how much of a refused body is read, and for how long.
func drained(from io.Reader) (bytes int64, took time.Duration, answer *httptest.ResponseRecorder) {
	answer, began := httptest.NewRecorder(), time.Now()
	b := &body{from: from, count: func(int) {}}
	b.refuse(answer, httptest.NewRequest("PUT", "/", nil), func() {})
	return b.total, time.Since(began), answer
}

// duplex is a connection that can be read after the answer.
type duplex struct {
	*httptest.ResponseRecorder
}

func (duplex) EnableFullDuplex() error { return nil }

func TestSmallRefusedBodyIsReadBeforeTheAnswer(t *testing.T) {
	for _, c := range []struct {
		size, announced, before int64
	}{
		{100, 100, 100}, {limits.DrainFirst, -1, limits.DrainFirst}, {limits.DrainFirst + 1, limits.DrainFirst + 1, 0},
		{3 * limits.DrainFirst, -1, limits.DrainFirst + 32<<10},
	} {
		answer, before := duplex{httptest.NewRecorder()}, int64(-1)
		b := &body{from: io.LimitReader(endless{}, c.size), count: func(int) {}}
		r := httptest.NewRequest("PUT", "/", nil)
		r.ContentLength = c.announced
		b.refuse(answer, r, func() { before = b.total })
		closed := answer.Header().Get("Connection") == "close"
		if before != c.before || b.total != c.size || closed != (c.size > limits.DrainFirst) {
			t.Errorf("%+v: %d bytes before the answer, %d in all, closed: %v", c, before, b.total, closed)
		}
	}
}

func TestRefusedBodyIsReadUpToItsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bytes, _, answer := drained(endless{})
		if bytes < limits.DrainBytes || bytes > limits.DrainBytes+1<<20 || answer.Header().Get("Connection") != "close" {
			t.Errorf("%d bytes are read, %v", bytes, answer.Header())
		}
		// The pauses are shorter than the silence that ends the body.
		bytes, took, answer := drained(endless{pause: time.Second, most: 1})
		if took != limits.DrainTime || bytes != int64(limits.DrainTime/time.Second) || answer.Header().Get("Connection") != "close" {
			t.Errorf("%d bytes are read within %v, %v", bytes, took, answer.Header())
		}
	})
}
