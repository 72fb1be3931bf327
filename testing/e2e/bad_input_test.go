package e2e

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// smallResult returns a valid delivery.
func smallResult(run, plugin, node, body string) *musterv1.SubmitResultRequest {
	return &musterv1.SubmitResultRequest{
		Description: &musterv1.ResultDescription{Key: &musterv1.ResultKey{Run: run, Plugin: plugin, Node: node}, Attempt: 1},
		Crc32C:      crc32.Checksum([]byte(body), castagnoli), Body: []byte(body)}
}

// reason returns the machine-readable part of an error.
func reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if detail, ok := detail.(*musterv1.ErrorDetail); ok {
			return detail.Reason
		}
	}
	return ""
}

// wantError fails unless the error has this code and reason, a message, and a next step.
func wantError(t *testing.T, err error, code codes.Code, why string) {
	t.Helper()
	if status.Code(err) != code || reason(err) != why || status.Convert(err).Message() == "" {
		t.Errorf("got %v (reason %s), want %v (%s)", err, reason(err), code, why)
	}
}

func TestInvalidPlansAreRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	a := operator(t, f)
	for _, c := range []struct {
		name, reason string
		request      *musterv1.CreateRunRequest
	}{
		{"a node with dot segments", "INVALID_NAME", &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"}, Nodes: []string{"../x"}}},
		{"a node with a dot first", "INVALID_NAME", &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"}, Nodes: []string{".x"}}},
		{"a node with HTML", "INVALID_NAME",
			&musterv1.CreateRunRequest{Plugins: []string{"hostfacts"}, Nodes: []string{"<img src=x onerror=alert(1)>"}}},
		{"an empty node", "INVALID_NAME", &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"}, Nodes: []string{""}}},
		{"a node of 254 characters", "INVALID_NAME",
			&musterv1.CreateRunRequest{Plugins: []string{"hostfacts"}, Nodes: []string{strings.Repeat("n", 254)}}},
		{"a node called global", "INVALID_NAME", &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"}, Nodes: []string{"global"}}},
		{"a plugin's name with a slash", "INVALID_PLUGIN",
			&musterv1.CreateRunRequest{Plugins: []string{sidecarPlugin("a/b", "Job")}}},
		{"an unknown field", "INVALID_PLUGIN",
			&musterv1.CreateRunRequest{Plugins: []string{sidecarPlugin("p", "Job") + "specc: {}\n"}}},
		{"a definition without a driver", "INVALID_PLUGIN",
			&musterv1.CreateRunRequest{Plugins: []string{"sonobuoy-config: {plugin-name: p}\nspec: {image: x}\n"}}},
		{"invalid YAML", "INVALID_PLUGIN", &musterv1.CreateRunRequest{Plugins: []string{"a: [b"}}},
		{"no plugin", "EMPTY_PLAN", &musterv1.CreateRunRequest{Nodes: []string{"n1"}}},
		{"no node", "EMPTY_PLAN", &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"}}},
		{"a time-out of zero", "INVALID_TIMEOUT", &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"},
			Nodes: []string{"n1"}, Timeout: durationpb.New(0)}},
		{"a time-out of a year", "INVALID_TIMEOUT", &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"},
			Nodes: []string{"n1"}, Timeout: durationpb.New(365 * 24 * time.Hour)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			defer cancel()
			_, err := a.runs.CreateRun(ctx, c.request)
			wantError(t, err, codes.InvalidArgument, c.reason)
		})
	}
	t.Run("a name of 253 characters is valid", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		must(a.runs.CreateRun(ctx, &musterv1.CreateRunRequest{Plugins: []string{"hostfacts"},
			Nodes: []string{strings.Repeat("n", 253)}}))(t)
	})
}

func TestUnknownRunsPluginsAndNodesHaveDistinctErrors(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	a := operator(t, f)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	for _, c := range []struct {
		run, plugin, node, reason string
		code                      codes.Code
	}{
		{"0123456789abcdef", "logs", "n1", "RUN_NOT_FOUND", codes.NotFound},
		{"no-run-id", "logs", "n1", "INVALID_NAME", codes.InvalidArgument},
		{id, "nothing", "n1", "PAIR_NOT_PLANNED", codes.PermissionDenied},
		{id, "logs", "n2", "PAIR_NOT_PLANNED", codes.PermissionDenied},
		{id, "logs", "../n1", "INVALID_NAME", codes.InvalidArgument},
	} {
		_, err := a.results.GetResult(ctx, &musterv1.GetResultRequest{
			Key: &musterv1.ResultKey{Run: c.run, Plugin: c.plugin, Node: c.node}})
		wantError(t, err, c.code, c.reason)
	}
	_, err := a.archives.GetArchive(ctx, &musterv1.GetArchiveRequest{Run: id})
	wantError(t, err, codes.FailedPrecondition, "ARCHIVE_NOT_READY")
}

// uploader is an Upload stream that a test misuses.
type uploader struct {
	stream musterv1.ResultService_UploadClient
	opened *musterv1.OpenUploadResponse
}

func openUpload(t *testing.T, credential *fleet.Credential) uploader {
	t.Helper()
	connection := must(credential.GRPC())(t)
	t.Cleanup(func() { connection.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	t.Cleanup(cancel)
	client := musterv1.NewResultServiceClient(connection)
	opened := must(client.OpenUpload(ctx, &musterv1.OpenUploadRequest{Description: &musterv1.ResultDescription{
		Key: &musterv1.ResultKey{Run: credential.Run, Plugin: credential.Plugin, Node: credential.Node}, Attempt: 1}}))(t)
	stream := must(client.Upload(ctx))(t)
	check(t, stream.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Start_{
		Start: &musterv1.UploadRequest_Start{UploadId: opened.UploadId, Epoch: opened.Epoch}}}))
	return uploader{stream, opened}
}

func (u uploader) chunk(offset int64, data string, crc uint32) {
	_ = u.stream.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Chunk_{Chunk: &musterv1.UploadRequest_Chunk{
		Offset: offset, RawSize: int64(len(data)), Crc32C: crc, Data: []byte(data)}}})
}

func (u uploader) finish(size int64, crc uint32, sha []byte) {
	_ = u.stream.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Finish_{
		Finish: &musterv1.UploadRequest_Finish{Size: size, Crc32C: crc, Sha256: sha}}})
	_ = u.stream.CloseSend()
}

// end reads to the end and returns the error.
func (u uploader) end() error {
	for {
		if _, err := u.stream.Recv(); err != nil {
			return err
		}
	}
}

func TestInvalidUploadsHaveReasonsAndLoseNothing(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "logs", "n1"))(t)
	sum := func(text string) uint32 { return crc32.Checksum([]byte(text), castagnoli) }
	for _, c := range []struct {
		name, reason string
		code         codes.Code
		misuse       func(u uploader)
	}{
		{"an offset that is high", "OFFSET_TOO_HIGH", codes.OutOfRange, func(u uploader) { u.chunk(100, "abc", sum("abc")) }},
		{"an offset that is negative", "INVALID_OFFSET", codes.InvalidArgument, func(u uploader) { u.chunk(-1, "abc", sum("abc")) }},
		{"an offset that overflows", "INVALID_OFFSET", codes.InvalidArgument,
			func(u uploader) { u.chunk(1<<63-2, "abc", sum("abc")) }},
		{"a wrong CRC of a chunk", "CRC_MISMATCH", codes.DataLoss, func(u uploader) { u.chunk(0, "abc", 1) }},
		{"a wrong CRC of the whole", "CRC_MISMATCH", codes.DataLoss,
			func(u uploader) { u.chunk(0, "abc", sum("abc")); u.finish(3, 1, nil) }},
		{"a wrong size", "SIZE_MISMATCH", codes.DataLoss,
			func(u uploader) { u.chunk(0, "abc", sum("abc")); u.finish(4, sum("abc"), nil) }},
		{"a wrong digest", "DIGEST_MISMATCH", codes.DataLoss,
			func(u uploader) { u.chunk(0, "abc", sum("abc")); u.finish(3, sum("abc"), make([]byte, 32)) }},
		{"a chunk that is too large", "CHUNK_TOO_LARGE", codes.InvalidArgument, func(u uploader) {
			text := strings.Repeat("x", int(u.opened.ChunkMax)+1)
			u.chunk(0, text, sum(text))
		}},
		{"a chunk that claims another size", "INVALID_CHUNK", codes.InvalidArgument, func(u uploader) {
			_ = u.stream.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Chunk_{Chunk: &musterv1.UploadRequest_Chunk{
				RawSize: 2, Crc32C: sum("abc"), Data: []byte("abc")}}})
		}},
		{"a frame that is not zstd", "INVALID_CHUNK", codes.InvalidArgument, func(u uploader) {
			_ = u.stream.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Chunk_{Chunk: &musterv1.UploadRequest_Chunk{
				RawSize: 3, Crc32C: sum("abc"), Encoding: musterv1.UploadRequest_ENCODING_ZSTD, Data: []byte("abc")}}})
		}},
		{"an end without a finish", "NO_READABLE_MESSAGE", codes.InvalidArgument, func(u uploader) {
			u.chunk(0, "abc", sum("abc"))
			_ = u.stream.CloseSend()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := openUpload(t, credential)
			c.misuse(u)
			wantError(t, u.end(), c.code, c.reason)
		})
	}
	t.Run("a repeated chunk with other bytes", func(t *testing.T) {
		u := openUpload(t, credential)
		u.chunk(u.opened.Offset, "abc", sum("abc"))
		u.chunk(u.opened.Offset, "xyz", sum("xyz"))
		if err := u.end(); status.Code(err) != codes.InvalidArgument && status.Code(err) != codes.DataLoss {
			t.Errorf("got %v (%s), want a refusal of the chunk", err, reason(err))
		}
	})
	t.Run("a stream that was taken over", func(t *testing.T) {
		first := openUpload(t, credential)
		openUpload(t, credential)
		first.chunk(first.opened.Offset, "abc", sum("abc"))
		wantError(t, first.end(), codes.Aborted, "TAKEN_OVER")
	})
	t.Run("a small result with a wrong CRC", func(t *testing.T) {
		bad := smallResult(id, "logs", "n1", "abc")
		bad.Crc32C++
		connection := must(credential.GRPC())(t)
		defer connection.Close()
		_, err := musterv1.NewResultServiceClient(connection).SubmitResult(context.Background(), bad)
		wantError(t, err, codes.DataLoss, "CRC_MISMATCH")
	})
	// None of these prevents the genuine result; after it, different content is a conflict.
	check(t, submit(t, credential, id, "logs", "n1", "genuine"))
	check(t, submit(t, credential, id, "logs", "n1", "genuine"))
	err := submit(t, credential, id, "logs", "n1", "another")
	if code := status.Code(err); code != codes.AlreadyExists && code != codes.FailedPrecondition {
		t.Errorf("a second, different result got %v", err)
	}
	if got := operator(t, f).result(t, id, "logs", "n1"); got.Size != int64(len("genuine")) || got.Generation != 1 {
		t.Errorf("the genuine result did not stay: %v", got)
	}
}

// A low offset comes from a sender that resumes before the stored end: the same bytes are accepted.
func TestRepeatedChunkWithSameBytesIsIgnored(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	u := openUpload(t, must(f.Export(id, "logs", "n1"))(t))
	for _, text := range []string{"abc", "abc", "def"} {
		u.chunk(int64(strings.Index("abcdef", text)), text, crc32.Checksum([]byte(text), castagnoli))
	}
	u.finish(6, crc32.Checksum([]byte("abcdef"), castagnoli), nil)
	if err := u.end(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if got := operator(t, f).result(t, id, "logs", "n1"); got.Outcome != musterv1.Outcome_OUTCOME_GENUINE || got.Size != 6 {
		t.Errorf("the result is %v", got)
	}
}

// A truncated body is not a result; the complete one that follows is.
func TestTruncatedBodyIsNotAResult(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "logs", "n1"))(t)
	whole := strings.Repeat("x", 1<<20)
	// The announced length is larger than the body: the connection ends within the body.
	client := must(credential.HTTP())(t)
	_ = putShort(t, client, credential.AggregatorURL+"/api/v1/results/by-node/n1/logs", whole)
	a := operator(t, f)
	if got := a.result(t, id, "logs", "n1"); got.Outcome != musterv1.Outcome_OUTCOME_PENDING {
		t.Errorf("a truncated body became %v", got)
	}
	// While the gateway has not noticed the end of the first connection, it refuses a second delivery with 503, and the
	// client tries again.
	until(t, "the whole body is accepted", func() bool {
		code, err := put(t, credential, "n1", whole)
		if err != nil || code != 200 && code != 503 {
			t.Errorf("the whole body got %d %v", code, err)
		}
		return code == 200
	})
	if got := a.result(t, id, "logs", "n1"); got.Size != int64(len(whole)) {
		t.Errorf("the result is %v", got)
	}
}

// Unusual file names are data: the files are stored in their own folder.
func TestUnusualFileNamesAreStoredSafely(t *testing.T) {
	t.Parallel()
	f := up(t)
	odd := map[string]string{"n1": `attachment;filename="../../../../escaped"`, "n2": `attachment;filename=with space.txt`,
		"n3": `attachment;filename="/etc/passwd"`, "n4": `attachment;filename=".."`, "n5": `gibberish;;;`,
		"n6": `attachment;filename="` + strings.Repeat("l", 2000) + `"`}
	var nodes []string
	for node := range odd {
		nodes = append(nodes, node)
	}
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, nodes...)
	for node, disposition := range odd {
		file := must(f.WriteFile("content-"+node, "content of "+node))(t)
		credential := must(f.Export(id, "logs", node))(t)
		if code, body := curl(t, credential, "--no-alpn", "-T", file, "-H", "Content-Disposition: "+disposition,
			credential.AggregatorURL+"/api/v1/results/by-node/"+node+"/logs"); code != "200" {
			t.Errorf("%s: answered %s %s", disposition, code, body)
		}
	}
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	files := archive(t, f, id)
	for node := range odd {
		var found bool
		for name, text := range files {
			found = found || strings.HasPrefix(name, "plugins/logs/results/"+node+"/") && text == "content of "+node
		}
		if !found {
			t.Errorf("the result of %s is not in its folder: %v", node, names(files))
		}
	}
	for name := range files {
		if strings.Contains(name, "..") || strings.HasPrefix(name, "/") {
			t.Errorf("the archive holds %s", name)
		}
	}
}

// Done files without a usable path lead to an error result with the reason.
func TestInvalidDoneFilesLeadToErrorResults(t *testing.T) {
	t.Parallel()
	f := up(t)
	outside := must(f.WriteFile("outside", "not the plugin's"))(t)
	reasons := map[string]string{"missing": "FILE_NOT_FOUND", "outside": "DONE_FILE_OUTSIDE", "empty": "DONE_FILE_INVALID",
		"dies": "7", "pipe": "NOT_A_FILE", "huge-path": "DONE_FILE_INVALID", "huge": "RESULT_TOO_LARGE",
		"unreadable": "FILE_NOT_ACCESSIBLE"}
	for name, shell := range map[string]string{
		"missing":   `echo "$RESULTS_DIR/nothing" > "$RESULTS_DIR/done"`,
		"outside":   `echo "` + outside + `" > "$RESULTS_DIR/done"`,
		"empty":     `: > "$RESULTS_DIR/done"`,
		"dies":      `echo "the reason is here" >&2; exit 7`,
		"no-done":   `true`,
		"pipe":      `mkfifo "$RESULTS_DIR/p"; echo "$RESULTS_DIR/p" > "$RESULTS_DIR/done"`,
		"huge-path": `head -c 100000 /dev/zero | tr '\0' x > "$RESULTS_DIR/done"`,
		// One byte more than the limit of the agent.
		"huge":       `truncate -s 1048577 "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`,
		"unreadable": `echo x > "$RESULTS_DIR/r"; chmod 0 "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`,
	} {
		t.Run(name, func(t *testing.T) {
			id := run(t, f, []string{execPlugin("p", "DaemonSet", shell)}, "n1")
			credential := must(f.Export(id, "p", "n1"))(t)
			agent, stderr := weakAgent(t, f, credential)
			if _ = agent.Run(); agent.ProcessState.ExitCode() != 10 {
				t.Errorf("the agent exited with %d, want 10: %s", agent.ProcessState.ExitCode(), stderr)
			}
			got := operator(t, f).result(t, id, "p", "n1")
			if got.Outcome != musterv1.Outcome_OUTCOME_ERROR || got.Error == "" {
				t.Errorf("the outcome is %v, want an error with a reason", got)
			}
			if why := reasons[name]; !strings.Contains(got.Error, why) {
				t.Errorf("the error is %q, want %q in it", got.Error, why)
			}
		})
	}
}

// weakAgent returns an agent that respects file modes, also if the tests run as root, and accepts results of at most 1
// MiB.
func weakAgent(t *testing.T, f *fleet.Fleet, credential *fleet.Credential) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), crashSoon)
	t.Cleanup(cancel)
	agent, stderr := f.Command(ctx, "agent", "--config", credential.File), new(bytes.Buffer)
	if os.Getuid() == 0 {
		weak := exec.CommandContext(ctx, "setpriv", append([]string{"--bounding-set=-dac_override,-dac_read_search"}, agent.Args...)...)
		weak.Env, weak.WaitDelay = agent.Env, agent.WaitDelay
		agent = weak
	}
	agent.Env, agent.Stderr = append(agent.Env, "MUSTER_MAX_RESULT_BYTES=1048576"), stderr
	return agent, stderr
}

// Each service names the file and the field of a typing error in its configuration.
func TestConfigurationErrorNamesFileAndField(t *testing.T) {
	t.Parallel()
	f := up(t)
	for _, service := range []string{"aggregator", "status", "gateway"} {
		must(f.Muster("down"))(t)
		file := filepath.Join(f.Home, "config", service+".yaml")
		text := must(os.ReadFile(file))(t)
		check(t, os.WriteFile(file, append(text, "\nlisten_addres: 1\n"...), 0o600))
		err := f.Up()
		if err == nil {
			t.Fatalf("`muster up` started with an unknown field in the file of %s", service)
		}
		if message := err.Error(); !strings.Contains(message, service+".yaml") || !strings.Contains(message, "listen_addres") {
			t.Errorf("neither file nor field is named: %s", message)
		}
		check(t, os.WriteFile(file, text, 0o600))
		check(t, f.Up())
	}
}
