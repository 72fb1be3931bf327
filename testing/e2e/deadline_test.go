package e2e

import (
	"context"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// shortRun creates a run with a deadline in some seconds, in which a busy machine has to deliver, and without grace.
func shortRun(t *testing.T, a api, nodes ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	return must(a.runs.CreateRun(ctx, &musterv1.CreateRunRequest{Plugins: []string{sidecarPlugin("logs", "DaemonSet")},
		Nodes: nodes, Timeout: durationpb.New(15 * time.Second), SealGrace: durationpb.New(0)}))(t).Id
}

// A partial result is not a result, but the bytes received before the deadline are in the archive, marked as partial.
func TestPartialResultAtDeadlineIsArchived(t *testing.T) {
	t.Parallel()
	f := up(t)
	a := operator(t, f)
	id := shortRun(t, a, "n1", "n2")
	credential := must(f.Export(id, "logs", "n1"))(t)
	check(t, submit(t, must(f.Export(id, "logs", "n2"))(t), id, "logs", "n2", "in time"))
	u := openUpload(t, credential)
	half := strings.Repeat("half of a result\n", 10_000)
	u.chunk(0, half, crc32.Checksum([]byte(half), castagnoli))
	until(t, "the chunk is acknowledged", func() bool {
		answer, err := u.stream.Recv()
		check(t, err)
		return answer.GetAck().GetWritten() == int64(len(half))
	})
	a.awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	got := a.result(t, id, "logs", "n1")
	if got.Outcome != musterv1.Outcome_OUTCOME_TIMED_OUT || got.Error == "" {
		t.Errorf("the outcome is %v, want a time-out with a reason", got)
	}
	wantError(t, u.end(), codes.FailedPrecondition, "RUN_SEALED")
	wantError(t, submit(t, credential, id, "logs", "n1", "too late"), codes.FailedPrecondition, "RUN_SEALED")
	files := archive(t, f, id)
	wantFile(t, files, "plugins/logs/results/n2/result", "in time")
	var kept bool
	for name, content := range files {
		kept = kept || strings.HasPrefix(name, "plugins/logs/errors/n1/partial/") && content == half
		if strings.HasPrefix(name, "plugins/logs/results/n1") {
			t.Errorf("a partial result is among the results: %s", name)
		}
	}
	if !kept || !strings.Contains(files["plugins/logs/errors/n1/error.json"], "timeout") {
		t.Errorf("the partial result and its reason are not in the archive: %v", names(files))
	}
}

// Reads have limits, too.
func TestReadOutsideOfFileFailsWithReason(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := completeWithResults(t, f)
	a := operator(t, f)
	whole := readArchive(t, a, id, 0)
	check(t, whole.err)
	size := int64(len(whole.content))
	if tail := readArchive(t, a, id, size-5); tail.err != nil || string(tail.content) != string(whole.content[size-5:]) {
		t.Errorf("the last five bytes: %v", tail)
	}
	wantError(t, readArchive(t, a, id, -1).err, codes.InvalidArgument, "INVALID_OFFSET")
	wantError(t, readArchive(t, a, id, size+1).err, codes.OutOfRange, "OFFSET_TOO_HIGH")
	for offset, want := range map[int64]string{-1: "INVALID_OFFSET", 1 << 62: "OFFSET_TOO_HIGH"} {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		stream := must(a.results.ReadResult(ctx, &musterv1.ReadResultRequest{
			Key: &musterv1.ResultKey{Run: id, Plugin: "checks", Node: "n1"}, Offset: offset}))(t)
		_, err := stream.Recv()
		if reason(err) != want {
			t.Errorf("a result from byte %d: %v (%s), want %s", offset, err, reason(err), want)
		}
	}
}

// download is the content of a stream of chunks.
type download struct {
	content []byte
	err     error
}

func readArchive(t *testing.T, a api, id string, offset int64) (d download) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	stream := must(a.archives.ReadArchive(ctx, &musterv1.ReadArchiveRequest{Run: id, Offset: offset}))(t)
	for {
		chunk, err := stream.Recv()
		if err == io.EOF {
			return d
		}
		if err != nil {
			return download{err: err}
		}
		d.content = append(d.content, chunk.Data...)
	}
}
