package muster_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/mustertest"
	"muster.example/services/client/go/reasons"
)

const run = "00000000000000aa"

type fixture struct {
	t          *testing.T
	aggregator *mustertest.Aggregator
	run        *mustertest.Run
	config     map[string]any // the content of the JSON file
	results    string
	path       string // of the JSON file
}

// start starts an in-memory aggregator with a run, and returns the configuration of plugin p on node n1. The
// changes are made before the aggregator starts.
func start(t *testing.T, change ...func(*fixture)) *fixture {
	t.Helper()
	fleet := mustertest.NewFleet()
	w := &fixture{t: t, aggregator: mustertest.NewAggregator(t, fleet), results: t.TempDir()}
	for _, c := range change {
		c(w)
	}
	w.run = w.aggregator.AddRun(run, []string{"p"}, []string{"n1", "global"})
	chain, key := mustertest.PEM(w.run.Signed.Leaf(w.run.URI("plugin/p/node/n1")))
	w.config = map[string]any{
		"grpc_targets": []string{w.aggregator.Start()}, "status_targets": []string{w.aggregator.StartStatus()},
		"plugin": "p", "fleet_ca_cert": fleet.Root.PEM(), "client_cert": chain, "client_key": key,
		"results_dir": w.results, "done_file_delay": "0s", "mode": "wait",
	}
	return w
}

func (w *fixture) load() (*muster.Config, error) {
	text, err := json.Marshal(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.path = filepath.Join(w.t.TempDir(), "node.json")
	if err := os.WriteFile(w.path, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return muster.LoadConfig(w.path)
}

func (w *fixture) client() *muster.Client {
	w.t.Helper()
	config, err := w.load()
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := muster.New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { client.Close() })
	return client
}

func (w *fixture) file(name string, content []byte) string {
	w.t.Helper()
	path := filepath.Join(w.results, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *fixture) committed(node string) *mustertest.Committed {
	return w.aggregator.Get(mustertest.Key{Run: run, Plugin: "p", Node: node})
}

func bytesOf(size int) []byte {
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
	}
	return content
}

func TestSubmittedFilesAndStreamsAreCommittedAndSigned(t *testing.T) {
	for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 3<<20 + 5} {
		for _, stream := range []bool{false, true} {
			w := start(t)
			client, content := w.client(), bytesOf(size)
			var result *muster.Result
			var err error
			if stream {
				result, err = client.Submit(t.Context(), &muster.Delivery{Body: bytes.NewBuffer(content), FileName: "r.json", MediaType: "application/json"})
			} else {
				result, err = client.SubmitFile(t.Context(), w.file("r.json", content), muster.Delivery{})
			}
			if err != nil {
				t.Fatalf("%d bytes, stream %v: %v", size, stream, err)
			}
			digest := sha256.Sum256(content)
			got := w.committed("n1")
			if !bytes.Equal(got.Data, content) || !bytes.Equal(result.SHA256, digest[:]) || result.Size != int64(size) {
				t.Errorf("%d bytes, stream %v: committed %d bytes", size, stream, len(got.Data))
			}
			if got.Description.FileName != "r.json" || got.Description.MediaType != "application/json" {
				t.Errorf("described as %v", got.Description)
			}
			checkSignature(t, w, got)
		}
	}
}

func TestSignatureCoversTheTextsAsTheyAreSent(t *testing.T) {
	w := start(t)
	if _, err := w.client().Submit(t.Context(), &muster.Delivery{Body: strings.NewReader("x"), FileName: "caf\xe9\xe9\n.txt",
		MediaType: "text/\xff"}); err != nil {
		t.Fatal(err)
	}
	got := w.committed("n1")
	if got.Description.FileName != "caf\uFFFD\n.txt" || got.Description.MediaType != "text/\uFFFD" {
		t.Errorf("described as %v", got.Description)
	}
	checkSignature(t, w, got)
}

func checkSignature(t *testing.T, w *fixture, got *mustertest.Committed) {
	t.Helper()
	block, _ := pem.Decode([]byte(got.Signature.GetCertificateChainPem()))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	text := sha256.Sum256(fmt.Appendf(nil, "muster-result-v1\n%s\np\nn1\n%d\n%d\n%x\nresult\n%d\n%s\n%d\n%s\n", run, got.Description.Attempt, got.Size, got.SHA256,
		len(got.Description.MediaType), got.Description.MediaType, len(got.Description.FileName), got.Description.FileName))
	if !ecdsa.VerifyASN1(certificate.PublicKey.(*ecdsa.PublicKey), text[:], got.Signature.Value) {
		t.Error("the signature is wrong")
	}
	if certificate.URIs[0].String() != w.run.URI("plugin/p/node/n1") {
		t.Errorf("signed by %s", certificate.URIs[0])
	}
}

func TestUploadResumesAfterLossAtAnyByte(t *testing.T) {
	for _, stream := range []bool{false, true} {
		w := start(t, func(w *fixture) { w.aggregator.ChunkMax, w.aggregator.Window = 64<<10, 256<<10 })
		content := bytesOf(2<<20 + 77)
		var chunks, highest atomic.Int64
		w.aggregator.OnChunk(func(_ mustertest.Key, chunk *musterv1.UploadRequest_Chunk) error {
			if chunk.Offset < highest.Load()-256<<10 {
				t.Errorf("byte %d is sent again after byte %d was acknowledged", chunk.Offset, highest.Load())
			}
			highest.Store(max(highest.Load(), chunk.Offset))
			if chunks.Add(1)%7 == 0 {
				return status.Error(codes.Unavailable, "lost")
			}
			return nil
		})
		var body io.Reader = bytes.NewBuffer(content)
		if !stream {
			file, err := os.Open(w.file("r", content))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			body = file
		}
		if _, err := w.client().Submit(t.Context(), &muster.Delivery{Body: body}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(w.committed("n1").Data, content) {
			t.Error("the received bytes differ")
		}
	}
}

// A gateway does not sign, and its server computes the digest anyway.
func TestForwardedResultNamesNoDigest(t *testing.T) {
	for _, size := range []int{5, 3<<20 + 5} {
		for _, forwarded := range []bool{false, true} {
			w := start(t)
			content := bytesOf(size)
			if _, err := w.client().Submit(t.Context(), &muster.Delivery{Body: bytes.NewBuffer(content), Forwarded: forwarded}); err != nil {
				t.Fatal(err)
			}
			got := w.committed("n1")
			if !bytes.Equal(got.Data, content) {
				t.Errorf("%d bytes forwarded %v: other bytes were committed", size, forwarded)
			}
			if named := len(got.Named) > 0; named == forwarded {
				t.Errorf("%d bytes forwarded %v: a digest was named: %v", size, forwarded, named)
			}
		}
	}
}

// During a forwarded upload another sender commits a result of the same size. The checksum shows if it is the same one.
func TestForwardedUploadComparesResultOfAnotherSender(t *testing.T) {
	for _, same := range []bool{true, false} {
		w := start(t, func(w *fixture) { w.aggregator.ChunkMax, w.aggregator.Window = 64<<10, 256<<10 })
		content := bytesOf(1<<20 + 77)
		other := bytes.Clone(content)
		if !same {
			other[len(other)-1]++
		}
		client, overtaken := w.client(), false
		w.aggregator.OnChunk(func(_ mustertest.Key, chunk *musterv1.UploadRequest_Chunk) error {
			if overtaken || chunk.Offset < 512<<10 {
				return nil
			}
			overtaken = true
			if _, err := client.Submit(t.Context(), &muster.Delivery{Body: bytes.NewBuffer(other)}); err != nil {
				t.Error(err)
			}
			return status.Error(codes.Unavailable, "lost")
		})
		_, err := w.client().Submit(t.Context(), &muster.Delivery{Body: bytes.NewBuffer(content), Forwarded: true})
		var lost *muster.LostError
		if same && err != nil || !same && !errors.As(err, &lost) {
			t.Errorf("same content: %v; %v", same, err)
		}
		// The next delivery computes its digest from the start, because a result exists.
		_, err = w.client().Submit(t.Context(), &muster.Delivery{Body: bytes.NewBuffer(content), Forwarded: true})
		var answer *muster.Error
		conflict := errors.As(err, &answer) && answer.Reason == reasons.ResultConflict
		if same && err != nil || !same && !conflict {
			t.Errorf("same content: %v; repeated: %v", same, err)
		}
	}
}

// A killed sender resumes, because the attempt's number is the file's time.
func TestUploadOfFileResumesInAnotherProcess(t *testing.T) {
	w := start(t)
	path := w.file("r", bytesOf(3<<20))
	ctx, kill := context.WithCancel(t.Context())
	var first atomic.Int64
	first.Store(-1)
	w.aggregator.OnChunk(func(_ mustertest.Key, chunk *musterv1.UploadRequest_Chunk) error {
		if chunk.Offset >= 2<<20 && ctx.Err() == nil {
			kill()
			return status.Error(codes.Unavailable, "lost")
		}
		if ctx.Err() != nil {
			first.CompareAndSwap(-1, chunk.Offset)
		}
		return nil
	})
	if _, err := w.client().SubmitFile(ctx, path, muster.Delivery{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := w.client().SubmitFile(t.Context(), path, muster.Delivery{}); err != nil {
		t.Fatal(err)
	}
	if first.Load() != 2<<20 {
		t.Errorf("resumed from byte %d", first.Load())
	}
}

func TestSpooledResultIsAwaitedOrLeft(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *fixture) { w.aggregator.SpoolCount = 2 })
	client := w.client()
	key := muster.Key{Run: run, Plugin: "p", Node: "n1"}
	small := func(leave bool) *muster.Delivery {
		return &muster.Delivery{Key: key, Attempt: 1, Body: strings.NewReader("{}"), LeaveWhenSpooled: leave}
	}
	_, err := client.Submit(t.Context(), small(true))
	var held *muster.SpooledError
	if !errors.As(err, &held) || held.Relay != "r1" {
		t.Fatalf("returned %v", err)
	}
	// Now the call is repeated until the result is committed.
	result, err := client.Submit(t.Context(), small(false))
	if err != nil || result.Size != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
}

func TestFinalErrorsAreNotRetried(t *testing.T) {
	w := start(t)
	client := w.client()
	if _, err := client.SubmitFile(t.Context(), w.file("a", []byte("a")), muster.Delivery{}); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{5, 100 << 10} {
		_, err := client.SubmitFile(t.Context(), w.file("b", bytesOf(size)), muster.Delivery{})
		var answer *muster.Error
		if !errors.As(err, &answer) || answer.Reason != "RESULT_CONFLICT" || answer.NextStep == "" || answer.Retryable() {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := client.Submit(t.Context(), &muster.Delivery{Key: muster.Key{Run: run, Plugin: "p", Node: "n9"}, Body: strings.NewReader("x")}); err == nil ||
		muster.AsError(err).Reason != "PAIR_NOT_PLANNED" {
		t.Error(err)
	}
	var unreadable *muster.BodyError
	if _, err := client.SubmitFile(t.Context(), filepath.Join(w.results, "nothing"), muster.Delivery{}); !errors.As(err, &unreadable) {
		t.Error(err)
	}
	if _, err := client.SubmitFile(t.Context(), w.results, muster.Delivery{}); !errors.As(err, &unreadable) {
		t.Error(err)
	}
}

func TestErrorConflictsWithCommittedResult(t *testing.T) {
	w := start(t)
	client := w.client()
	submitError := func(text, want string) {
		t.Helper()
		_, err := client.SubmitError(t.Context(), muster.Key{}, text)
		if (err == nil) != (want == "") || (err != nil && muster.AsError(err).Reason != want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	submitError("no disk", "")
	submitError("no disk", "") // the same
	submitError("no space", "RESULT_CONFLICT")
	if _, err := client.SubmitError(t.Context(), muster.Key{}, "no space"); err != nil && !strings.Contains(err.Error(), "Deliver a genuine result") {
		t.Errorf("the next step after another error: %v", err)
	}
	large := muster.Delivery{IsError: true, Body: bytes.NewReader(bytesOf(100 << 10))}
	if _, err := client.Submit(t.Context(), &large); err == nil || muster.AsError(err).Reason != "RESULT_CONFLICT" {
		t.Errorf("an upload: %v", err)
	}
	if _, err := client.SubmitFile(t.Context(), w.file("r", []byte("no disk")), muster.Delivery{}); err != nil {
		t.Fatal(err)
	}
	submitError("no disk", "RESULT_CONFLICT") // a genuine result
	if got := w.committed("n1"); got.Description.IsError || string(got.Data) != "no disk" {
		t.Errorf("%+v is committed", got)
	}
}

func TestServerMustBeAggregatorOfFleet(t *testing.T) {
	w := start(t)
	w.config["grpc_targets"] = w.config["status_targets"]
	if _, err := w.client().Submit(t.Context(), &muster.Delivery{Body: strings.NewReader("x"), Hold: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "not an instance of aggregator") {
		t.Error(err)
	}
	w.config["fleet_ca_cert"] = mustertest.NewFleet().Root.PEM()
	if _, err := w.client().Submit(t.Context(), &muster.Delivery{Body: strings.NewReader("x"), Hold: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Error(err)
	}
}

func TestProgressIsReported(t *testing.T) {
	w := start(t)
	err := w.client().ReportProgress(t.Context(), muster.Key{}, muster.Progress{Message: "m", Total: 3, Failures: []string{"f"}})
	if err != nil || len(w.aggregator.Reports) != 1 || w.aggregator.Reports[0].Message != "m" || w.aggregator.Reports[0].Key.Node != "n1" {
		t.Errorf("%v %v", err, w.aggregator.Reports)
	}
}
