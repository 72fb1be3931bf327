package app_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

// stream returns `size` bytes without a known length.
func stream(size int64) io.Reader { return struct{ io.Reader }{&pattern{size: size}} }

func digestOf(size int64) string {
	h := sha256.New()
	_, _ = io.Copy(h, &pattern{size: size})
	return hex.EncodeToString(h.Sum(nil))
}

func (w *testGateway) putStream(plugin, node string, body io.Reader, header ...string) (answer, error) {
	return try(oldClient(w.runA, w.leaf(plugin, node)), "PUT",
		"https://"+w.address()+"/api/v1/results/by-node/"+node+"/"+plugin, body, header...)
}

func (w *testGateway) wantDigest(k mustertest.Key, size int64) {
	w.t.Helper()
	got := w.aggregator.Get(k)
	if got == nil {
		w.t.Fatal("nothing is committed")
	}
	if hex.EncodeToString(got.SHA256) != digestOf(size) || got.Size != size {
		w.t.Errorf("committed %d bytes, %x", got.Size, got.SHA256)
	}
}

func TestPutAcceptsSizesAroundLimits(t *testing.T) {
	w := start(t)
	const chunk = 1 << 20
	for i, size := range []int64{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, chunk - 1, chunk, chunk + 1, 5*chunk + 7} {
		run := w.aggregator.AddRun(fmt.Sprintf("%016x", 0x2000+i), []string{"p"}, []string{"n"})
		w.aggregator.Port(run.ID)
		url := fmt.Sprintf("https://127.0.0.1:%d/api/v1/results/by-node/n/p", w.aggregator.Port(run.ID))
		client := oldClient(run, run.SelfSigned.Leaf(run.URI("plugin/p/node/n")))
		for range 2 { // the second one is already committed
			if a := call(t, client, "PUT", url, stream(size)); a.code != 200 || a.body != "" {
				t.Fatalf("%d bytes: %d %s", size, a.code, a.body)
			}
		}
		w.wantDigest(mustertest.Key{Run: run.ID, Plugin: "p", Node: "n"}, size)
		if a := call(t, client, "PUT", url, stream(size+1)); a.code != 409 {
			t.Errorf("%d bytes more: %d %s", size, a.code, a.body)
		}
	}
}

// Real workers send a whole file as one HTTP chunk.
func TestHugeChunkUsesLittleMemory(t *testing.T) {
	const size = 1 << 30
	w := start(t, func(w *testGateway) { w.aggregator.Forget = true })
	conn := w.dial(w.leaf("logs", "n1"))
	fmt.Fprintf(conn, "%s%x\r\n", request("PUT", "/api/v1/results/by-node/n1/logs",
		"Transfer-Encoding: chunked\r\nContent-Type: \r\nContent-Disposition: attachment;filename=x.gz\r\n", ""), size)
	old := debug.SetGCPercent(50)
	defer debug.SetGCPercent(old)
	var peak atomic.Uint64
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		block := bytes.Repeat([]byte("0123456789abcdef"), 4096)
		for sent := 0; sent < size; sent += len(block) {
			if _, err := conn.Write(block); err != nil {
				t.Error(err)
				return
			}
			if sent%(64<<20) == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapAlloc))
			}
		}
		_, _ = io.WriteString(conn, "\r\n0\r\n\r\n")
	}()
	<-finished
	if a := readAnswer(t, conn); a.code != 200 {
		t.Fatalf("answered %d %s", a.code, a.body)
	}
	if got := w.aggregator.Get(key("logs", "n1")); got.Size != size {
		t.Errorf("stored %d bytes", got.Size)
	}
	if peak.Load() > 64<<20 { // gateway, in-memory aggregator and client together
		t.Errorf("%d MiB of heap", peak.Load()>>20)
	}
	t.Logf("%d MiB of heap at most", peak.Load()>>20)
}

func TestTruncatedBodyIsNotCommitted(t *testing.T) {
	w := start(t)
	for name, text := range map[string]string{
		"small, with a length":   request("PUT", "/api/v1/results/by-node/n1/logs", "Content-Length: 100\r\n", "x"),
		"small, chunked":         request("PUT", "/api/v1/results/by-node/n1/logs", "Transfer-Encoding: chunked\r\n", "5\r\nabcde\r\n"),
		"nothing, chunked":       request("PUT", "/api/v1/results/by-node/n1/logs", "Transfer-Encoding: chunked\r\n", ""),
		"large, with a length":   request("PUT", "/api/v1/results/by-node/n1/logs", "Content-Length: 3000001\r\n", strings.Repeat("x", 3_000_000)),
		"large, chunked":         request("PUT", "/api/v1/results/by-node/n1/logs", "Transfer-Encoding: chunked\r\n", "2dc6c0\r\n"+strings.Repeat("x", 3_000_000)+"\r\n"),
		"large, within a chunk":  request("PUT", "/api/v1/results/by-node/n1/logs", "Transfer-Encoding: chunked\r\n", "2dc6c1\r\n"+strings.Repeat("x", 3_000_000)),
		"large, a broken length": request("PUT", "/api/v1/results/by-node/n1/logs", "Transfer-Encoding: chunked\r\n", "2dc6c0\r\n"+strings.Repeat("x", 3_000_000)+"\r\nzz\r\n"),
	} {
		conn := w.dial(w.leaf("logs", "n1"))
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if a := readAnswer(t, conn); a.code == 200 {
			t.Errorf("%s: answered %d %s", name, a.code, a.body)
		}
	}
	mustertest.Await(t, "all deliveries have ended", func() bool { return w.metric("deliveries_active", "") == 0 })
	if w.aggregator.Get(key("logs", "n1")) != nil {
		t.Error("something was committed")
	}
}

// A body with only the last chunk is complete and is answered immediately. (A client that announces chunks and does not
// send even the last one, as curl 7.88 does with "-T" and an empty file, sent an incomplete body.)
func TestEmptyChunkedBodyIsCommitted(t *testing.T) {
	w := start(t)
	for node, pieces := range map[string][]string{"n1": {"0\r\n\r\n"}, "n2": {"0", "\r\n", "\r\n"}} {
		conn := w.dial(w.leaf("logs", node))
		_, _ = io.WriteString(conn, request("PUT", "/api/v1/results/by-node/"+node+"/logs", "Transfer-Encoding: chunked\r\n", ""))
		for _, piece := range pieces {
			_, _ = io.WriteString(conn, piece)
		}
		if a := readAnswer(t, conn); a.code != 200 {
			t.Errorf("%s: answered %d %s", node, a.code, a.body)
		}
		if got := w.aggregator.Get(key("logs", node)); got == nil || got.Size != 0 {
			t.Errorf("%s: stored %+v", node, got)
		}
	}
}

// The aggregator stops at several points of an upload and restarts: the client does not notice.
func TestPutIsHeldWhileAggregatorRestarts(t *testing.T) {
	const size = 9<<20 + 5
	var stops atomic.Int32
	w := start(t)
	w.aggregator.OnChunk(func(k mustertest.Key, chunk *musterv1.UploadRequest_Chunk) error {
		if n := stops.Load(); int64(n) < 4 && chunk.Offset >= int64(n)*2<<20 && stops.CompareAndSwap(n, n+1) {
			go func() {
				w.aggregator.Stop()
				w.aggregator.Start()
			}()
			return status.Error(codes.Unavailable, "stopping")
		}
		return nil
	})
	a, err := w.putStream("logs", "n1", stream(size))
	if err != nil || a.code != 200 {
		t.Fatalf("%v %d %s", err, a.code, a.body)
	}
	w.wantDigest(key("logs", "n1"), size)
	if stops.Load() != 4 || w.aggregator.Count(key("logs", "n1")) < 5 {
		t.Errorf("%d stops, opened %d times", stops.Load(), w.aggregator.Count(key("logs", "n1")))
	}
}

func TestPutBeforeAggregatorStartsIsHeld(t *testing.T) {
	w := start(t)
	w.address()
	w.aggregator.Stop()
	var all sync.WaitGroup
	for node, size := range map[string]int64{"n1": 100, "n2": 3 << 20} {
		all.Go(func() {
			if a, err := w.putStream("logs", node, stream(size)); err != nil || a.code != 200 {
				t.Errorf("%s: %v %d %s", node, err, a.code, a.body)
			}
		})
	}
	mustertest.Await(t, "both deliveries wait", func() bool { return w.metric("deliveries_active", "") == 2 })
	w.aggregator.Start()
	all.Wait()
}

func TestHeldPutFailsWith503(t *testing.T) {
	w := start(t, func(w *testGateway) { w.config.Hold = 300 * time.Millisecond })
	w.address()
	w.aggregator.Stop()
	for _, size := range []int64{100, 3 << 20} {
		if a, err := w.putStream("logs", "n1", stream(size)); err != nil || a.code != 503 || a.body == "" {
			t.Errorf("%d bytes: %v %d %q", size, err, a.code, a.body)
		}
	}
}

// A PUT is not held because of a full disk or a full run, unlike a restart of the aggregator.
func TestPutOnFullDiskFailsImmediately(t *testing.T) {
	w := start(t)
	for reason, size := range map[string]int64{"DISK_FULL": 100, "RUN_FULL": 3 << 20} {
		w.aggregator.Refuse(runA, codes.ResourceExhausted, reason)
		if a, err := w.putStream("logs", "n1", stream(size)); err != nil || a.code != 507 || !strings.Contains(a.body, reason) {
			t.Errorf("%d bytes: %v %d %q", size, err, a.code, a.body)
		}
	}
	w.aggregator.Stop() // its fields may be read now
	asked := 0
	for _, caller := range w.aggregator.Callers {
		if strings.Contains(caller, "/plugin/") {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("the aggregator was asked %d times for two deliveries", asked)
	}
}

func TestAggregatorErrorsMapToHTTPCodes(t *testing.T) {
	w := start(t, func(w *testGateway) { w.config.Hold = 10 * time.Millisecond })
	for _, c := range []struct {
		code   codes.Code
		reason string
		want   int
	}{
		{codes.ResourceExhausted, "TOO_MANY_UPLOADS", 503}, {codes.ResourceExhausted, "DISK_FULL", 507},
		{codes.Unavailable, "DRAINING", 503}, {codes.Aborted, "TAKEN_OVER", 503}, {codes.DataLoss, "DIGEST_MISMATCH", 503},
		{codes.PermissionDenied, "NOT_YOURS", 403}, {codes.NotFound, "RUN_NOT_FOUND", 410},
		{codes.InvalidArgument, "INVALID_NAME", 400}, {codes.Unimplemented, "", 500},
	} {
		w.aggregator.Refuse(runA, c.code, c.reason)
		for _, size := range []int64{100, 3 << 20} {
			if a, err := w.putStream("logs", "n1", stream(size)); err != nil || a.code != c.want {
				t.Errorf("%v %s: %v %d %q, want %d", c.code, c.reason, err, a.code, a.body, c.want)
			}
		}
	}
}

// A refusal that does not need the body is answered before it: the reason is that of the gateway, or of the aggregator
// when it is asked to open the upload. The rest of the body is read, because an old client that is disconnected while it
// sends would not see the answer.
func TestRefusalIsAnsweredBeforeBody(t *testing.T) {
	const size = 8 << 20
	w := start(t)
	const length = "Content-Length: 8388608\r\n"
	for _, c := range []struct {
		node, reason, header string
		want                 int
	}{
		{"n9", "", length, 403}, {"n9", "", length + "Expect: 100-continue\r\n", 403},
		{"n1", "RUN_SEALED", length, 410}, {"n1", "RUN_SEALED", length + "Expect: 100-continue\r\n", 410},
		{"n1", "RUN_SEALED", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", 410},
	} {
		w.aggregator.Refuse(runA, codes.FailedPrecondition, c.reason)
		conn := w.dial(w.leaf("logs", "n1"))
		_, _ = io.WriteString(conn, request("PUT", "/api/v1/results/by-node/"+c.node+"/logs", c.header, ""))
		if a := readAnswer(t, conn); a.code != c.want {
			t.Errorf("%+v: %d %s", c, a.code, a.body)
		}
		if _, err := io.Copy(conn, stream(size)); c.header == length && err != nil {
			t.Errorf("%+v: disconnected while the body is sent: %v", c, err)
		}
	}
}

// The client sends the next request on the same connection.
func TestSmallRefusedPutKeepsConnection(t *testing.T) {
	w := start(t)
	conn := w.dial(w.leaf("logs", "n1"))
	reader := bufio.NewReader(conn)
	for _, body := range []string{"Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000), "Transfer-Encoding: chunked\r\n\r\n2\r\nxx\r\n0\r\n\r\n"} {
		_, _ = io.WriteString(conn, "PUT /api/v1/results/by-node/n9/logs HTTP/1.1\r\nHost: x\r\n"+body)
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 403 || response.Close {
			t.Errorf("%v %+v", err, response)
		}
	}
}

func TestTooLargePutReturns413(t *testing.T) {
	w := start(t, func(w *testGateway) { w.config.ResultBytes = 1 << 20 })
	for name, body := range map[string]io.Reader{"chunked": stream(3 << 20), "with a length": bytes.NewReader(make([]byte, 3<<20))} {
		if a, err := w.putStream("logs", "n1", body); err != nil || a.code != 413 {
			t.Errorf("%s: %v %d", name, err, a.code)
		}
	}
	if a, err := w.putStream("logs", "n1", stream(1<<20)); err != nil || a.code != 200 {
		t.Errorf("the largest: %v %d %s", err, a.code, a.body)
	}
}

// Stalled senders and unfinished handshakes do not delay others.
func TestSlowSendersDoNotDelayOthers(t *testing.T) {
	w := start(t)
	for range 20 {
		conn := w.dial(w.leaf("logs", "n1"))
		_, _ = io.WriteString(conn, request("PUT", "/api/v1/results/by-node/n1/logs", "Content-Length: 1000000000\r\n", strings.Repeat("x", 2<<20)))
	}
	mustertest.Await(t, "all deliveries are in progress", func() bool { return w.metric("deliveries_active", "") == 20 })
	if a, err := w.putStream("logs", "n2", stream(8<<20)); err != nil || a.code != 200 {
		t.Errorf("%v %d %s", err, a.code, a.body)
	}
}

// A stop waits for a delivery to end.
func TestStopWaitsForDelivery(t *testing.T) {
	w := start(t)
	conn := w.dial(w.leaf("logs", "n1"))
	_, _ = io.WriteString(conn, request("PUT", "/api/v1/results/by-node/n1/logs", "Content-Length: 100\r\n", strings.Repeat("x", 50)))
	mustertest.Await(t, "the delivery is in progress", func() bool { return w.metric("deliveries_active", "") == 1 })
	stopped := make(chan struct{})
	go func() {
		w.gateway.Stop()
		close(stopped)
	}()
	mustertest.Await(t, "new connections are refused", func() bool {
		_, err := w.putStream("logs", "n2", stream(1))
		return err != nil
	})
	_, _ = io.WriteString(conn, strings.Repeat("x", 50))
	if a := readAnswer(t, conn); a.code != 200 {
		t.Errorf("answered %d %s", a.code, a.body)
	}
	<-stopped
}

func TestStopCancelsStalledDelivery(t *testing.T) {
	w := start(t, func(w *testGateway) { w.config.Drain = 200 * time.Millisecond })
	conn := w.dial(w.leaf("logs", "n1"))
	_, _ = io.WriteString(conn, request("PUT", "/api/v1/results/by-node/n1/logs", "Content-Length: 100\r\n", "x"))
	mustertest.Await(t, "the delivery is in progress", func() bool { return w.metric("deliveries_active", "") == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	go func() {
		w.gateway.Stop()
		cancel()
	}()
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("the gateway did not stop")
	}
}
