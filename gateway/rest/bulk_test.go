package rest

import (
	"context"
	"errors"
	"hash/crc32"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"

	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// silentFile sends a number of chunks of one byte, each after limits.ReadStall less a second, and is silent then.
type silentFile struct {
	grpc.ClientStream
	ctx    context.Context
	chunks int64
	sent   int64
}

func (f *silentFile) Context() context.Context { return f.ctx }

func (f *silentFile) Recv() (*musterv1.FileChunk, error) {
	if f.sent == f.chunks {
		<-f.ctx.Done()
		return nil, f.ctx.Err()
	}
	time.Sleep(limits.ReadStall - time.Second) // of the fake clock of synctest
	f.sent++
	data := []byte{'x'}
	return &musterv1.FileChunk{Offset: f.sent - 1, Data: data, Crc32C: crc32.Checksum(data, castagnoli)}, nil
}

// download serves a file whose service becomes silent after some chunks. It returns the answer, how long the download
// took, and whether it was aborted.
func download(b *bulk, chunks int64) (answer *httptest.ResponseRecorder, took time.Duration, aborted bool) {
	answer = httptest.NewRecorder()
	began := time.Now()
	defer func() {
		failure, _ := recover().(error)
		took, aborted = time.Since(began), errors.Is(failure, http.ErrAbortHandler)
	}()
	b.serve(answer, httptest.NewRequest("GET", "/", nil), &stored{size: 100,
		read: func(ctx context.Context, _ int64) (grpc.ServerStreamingClient[musterv1.FileChunk], error) {
			return &silentFile{ctx: ctx, chunks: chunks}, nil
		}})
	return answer, took, aborted
}

func TestDownloadOfSilentServiceIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bulk{metrics: inspect.NewMetrics(), log: slog.New(slog.DiscardHandler)}
		answer, took, aborted := download(b, 3)
		if want := 3*(limits.ReadStall-time.Second) + limits.ReadStall; took != want || !aborted || answer.Body.String() != "xxx" {
			t.Errorf("ended after %v, want %v; aborted: %v, %q", took, want, aborted, answer.Body)
		}
		var broken dto.Metric
		if err := b.metrics.BrokenReads.Write(&broken); err != nil || broken.Counter.GetValue() != 1 {
			t.Errorf("%v broken downloads are counted, %v", broken.Counter, err)
		}
	})
}

func TestDownloadOfServiceThatSendsNothingGetsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bulk{metrics: inspect.NewMetrics(), log: slog.New(slog.DiscardHandler)}
		answer, took, aborted := download(b, 0)
		if took != limits.ReadStall || aborted || answer.Code != http.StatusServiceUnavailable {
			t.Errorf("ended after %v, aborted: %v, %d", took, aborted, answer.Code)
		}
	})
}
