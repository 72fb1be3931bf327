package rest

import (
	"context"
	"hash/crc32"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// silentDownload sends a byte after each of the pauses, and then nothing until its call ends.
type silentDownload struct {
	grpc.ServerStreamingClient[musterv1.FileChunk]
	ctx    context.Context
	pauses []time.Duration
	sent   int64
}

func (d *silentDownload) Context() context.Context { return d.ctx }

func (d *silentDownload) Recv() (*musterv1.FileChunk, error) {
	if len(d.pauses) == 0 {
		<-d.ctx.Done()
		return nil, d.ctx.Err()
	}
	time.Sleep(d.pauses[0])
	d.pauses = d.pauses[1:]
	d.sent++
	data := []byte("x")
	return &musterv1.FileChunk{Offset: d.sent - 1, Data: data, Crc32C: crc32.Checksum(data, castagnoli)}, nil
}

// download serves 10 bytes of a service that is silent after the pauses, and returns the answer, whether the connection
// was aborted, and the time that has passed on the fake clock.
func download(t *testing.T, pauses ...time.Duration) (answer *httptest.ResponseRecorder, aborted bool, passed time.Duration) {
	answer = httptest.NewRecorder()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		b := &bulk{metrics: inspect.NewMetrics(), log: slog.New(slog.DiscardHandler)}
		file := &stored{size: 10, read: func(ctx context.Context, _ int64) (grpc.ServerStreamingClient[musterv1.FileChunk], error) {
			return &silentDownload{ctx: ctx, pauses: pauses}, nil
		}}
		func() {
			defer func() { aborted = recover() == http.ErrAbortHandler }()
			b.serve(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), file)
		}()
		passed = time.Since(begin)
	})
	return answer, aborted, passed
}

func TestDownloadOfAServiceThatFallsSilentIsAborted(t *testing.T) {
	pause := limits.ReadStall - time.Second
	answer, aborted, passed := download(t, pause, pause, pause) // each byte begins a new wait
	if !aborted || answer.Code != http.StatusOK || answer.Body.Len() != 3 {
		t.Errorf("answered %d with %d bytes; aborted: %v", answer.Code, answer.Body.Len(), aborted)
	}
	if want := 3*pause + limits.ReadStall; passed != want {
		t.Errorf("aborted after %v, want %v", passed, want)
	}
}

func TestDownloadOfASilentServiceIsAnsweredWithAnError(t *testing.T) {
	answer, aborted, passed := download(t)
	if aborted || answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "the service stopped sending") {
		t.Errorf("answered %d %s; aborted: %v", answer.Code, answer.Body, aborted)
	}
	if passed != limits.ReadStall {
		t.Errorf("answered after %v, want %v", passed, limits.ReadStall)
	}
}
