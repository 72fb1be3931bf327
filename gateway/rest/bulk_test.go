package rest

import (
	"context"
	"hash/crc32"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
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
		b := newBulk(nil, nil, inspect.NewMetrics(), slog.New(slog.DiscardHandler))
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

// The downloads of an identity, and those of all, are bounded: each holds memory for as long as its reader is slow.
func TestDownloadsInProgressAreBounded(t *testing.T) {
	b := newBulk(nil, nil, inspect.NewMetrics(), slog.New(slog.DiscardHandler))
	b.open.All = int64(limits.DownloadsOfIdentity) + 1
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	get := func(node string, begun chan<- struct{}) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		file := &stored{size: 10, read: func(ctx context.Context, _ int64) (grpc.ServerStreamingClient[musterv1.FileChunk], error) {
			begun <- struct{}{}
			return &silentDownload{ctx: ctx}, nil
		}}
		identity := fleet.WithClient(ctx, nil, peer.Identity{URI: "spiffe://f.muster/node/" + node, Kind: peer.Node})
		b.serve(answer, httptest.NewRequestWithContext(identity, http.MethodGet, "/", nil), file)
		return answer
	}
	begin := func(node string) {
		begun := make(chan struct{})
		reading.Go(func() { get(node, begun) })
		<-begun
	}
	refused := func(node string) {
		t.Helper()
		answer := get(node, nil)
		if answer.Code != http.StatusTooManyRequests || !strings.Contains(answer.Body.String(), "TOO_MANY_DOWNLOADS") || answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s: answered %d %s", node, answer.Code, answer.Body)
		}
	}
	for range limits.DownloadsOfIdentity {
		begin("n1")
	}
	refused("n1")
	begin("n2")
	refused("n3")
	end()
	reading.Wait()
	if held := b.open.Held(); held != 0 {
		t.Errorf("%d downloads are held after their ends", held)
	}
}
