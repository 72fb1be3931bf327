package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// replayPatience is the time after which a stream that stays open is cancelled.
const replayPatience = time.Second

// recording is one stream as a valid client sends it.
type recording struct {
	cell
	messages []proto.Message
	check    func(wanted bool) string // what is wrong after the stream, which may or must have committed a result
}

// recorder makes recordings of real streams.
type recorder struct {
	*fuzzed
	statement *musterv1.AttachStatement // of n1 for the root relay
	job       string
	runs      musterv1.RunServiceClient    // of an operator
	results   musterv1.ResultServiceClient // of an operator
	sender    musterv1.ResultServiceClient // of n1
	committed atomic.Int64

	mutex sync.Mutex // guards the following
	pairs []*musterv1.ResultKey
	old   []string // earlier runs
}

const pairsOfRun = 100

// nextPair returns a pair of n1 without a result. When there is none left, it makes a run, and deletes an earlier one.
func (r *recorder) nextPair(ctx context.Context) (*musterv1.ResultKey, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.pairs) == 0 {
		request := &musterv1.CreateRunRequest{Nodes: []string{"n1"}}
		for i := range pairsOfRun {
			request.Plugins = append(request.Plugins, sidecarPlugin(fmt.Sprintf("p%d", i), "DaemonSet"))
		}
		made, err := r.runs.CreateRun(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, plugin := range made.Plugins {
			r.pairs = append(r.pairs, &musterv1.ResultKey{Run: made.Id, Plugin: plugin.Name, Node: "n1"})
		}
		if r.old = append(r.old, made.Id); len(r.old) > 3 {
			if _, err := r.runs.CancelRun(ctx, &musterv1.CancelRunRequest{Run: r.old[0]}); err != nil {
				return nil, err
			}
			if _, err := r.runs.DeleteRun(ctx, &musterv1.DeleteRunRequest{Run: r.old[0]}); err != nil {
				return nil, err
			}
			r.old = r.old[1:]
		}
	}
	key := r.pairs[0]
	r.pairs = r.pairs[1:]
	return key, nil
}

func (r *recorder) recordings() []func(random *rand.Rand) *recording {
	at := func(listener, method, role string, messages ...proto.Message) func(*rand.Rand) *recording {
		return func(*rand.Rand) *recording {
			return &recording{cell: cell{listener, method, role, "", true}, messages: messages}
		}
	}
	beat := func(sequence int64) *musterv1.StreamHeartbeatsRequest {
		return &musterv1.StreamHeartbeatsRequest{Node: "n1", InstanceId: "replayed", Sequence: sequence, Activities: []*musterv1.Activity{{
			Key: &musterv1.ResultKey{Run: r.callers.run, Plugin: "logs", Node: "n1"}, Phase: musterv1.Phase_PHASE_WORKING, Message: "working",
			Progress: &musterv1.ReportProgressRequest{Total: 9, Completed: sequence}}}}
	}
	attach := func(message *musterv1.AttachRequest) proto.Message { return message }
	statement, _ := proto.Marshal(r.statement)
	return []func(*rand.Rand) *recording{
		r.upload, r.upload,
		at(statusListener, "/muster.v1.HeartbeatService/StreamHeartbeats", "RunNode", beat(1), beat(2), beat(3), beat(4)),
		at(relayListener, "/muster.v1.HeartbeatService/StreamHeartbeats", "Node", beat(1), beat(2), beat(3)),
		at(statusListener, "/muster.v1.HeartbeatService/RelayHeartbeats", "Relay",
			&musterv1.RelayHeartbeatsRequest{Relay: "walker", Senders: []*musterv1.RelayHeartbeatsRequest_Sender{
				{Id: 1, Uri: r.callers.uri("Node"), AttachStatement: statement, Beat: beat(1)}}},
			&musterv1.RelayHeartbeatsRequest{HeardIds: []int32{1}},
			&musterv1.RelayHeartbeatsRequest{Senders: []*musterv1.RelayHeartbeatsRequest_Sender{{Id: 1, Ended: true}}}),
		at(relayListener, "/muster.v1.AttachService/Attach", "Node",
			attach(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Hello_{Hello: &musterv1.AttachRequest_Hello{Statement: r.statement, InstanceId: "replayed"}}}),
			attach(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Beat_{Beat: &musterv1.AttachRequest_Beat{Time: timestamppb.Now()}}}),
			attach(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Records{Records: &musterv1.JobRecords{Records: forgery(r.job, "n1")}}})),
		at(aggregatorListener, "/muster.v1.ChangeService/FollowChanges", "Status", &musterv1.FollowChangesRequest{Cursor: proto.Int64(3)}),
		at(relayListener, "/muster.v1.JobService/WatchJob", "Operator", &musterv1.WatchJobRequest{Job: r.job, Nodes: []string{"n1"}}),
	}
}

// upload is the stream of a result of a new pair. Afterwards the pair has exactly this result, or none.
func (r *recorder) upload(random *rand.Rand) *recording {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	key, err := r.nextPair(ctx)
	var opened *musterv1.OpenUploadResponse
	if err == nil {
		opened, err = r.sender.OpenUpload(ctx, &musterv1.OpenUploadRequest{Description: &musterv1.ResultDescription{Key: key, Attempt: 1}})
	}
	if err != nil {
		return &recording{check: func(bool) string { return fmt.Sprintf("no upload for %v: %v", key, err) }}
	}
	content := make([]byte, 1+random.IntN(100_000))
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	messages := []proto.Message{&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Start_{
		Start: &musterv1.UploadRequest_Start{UploadId: opened.UploadId, Epoch: opened.Epoch}}}}
	for at := 0; at < len(content); {
		part := content[at:min(len(content), at+1+random.IntN(40_000))]
		messages = append(messages, &musterv1.UploadRequest{Message: &musterv1.UploadRequest_Chunk_{Chunk: &musterv1.UploadRequest_Chunk{
			Offset: int64(at), RawSize: int64(len(part)), Crc32C: crc32.Checksum(part, castagnoli), Data: part}}})
		at += len(part)
	}
	digest := sha256.Sum256(content)
	messages = append(messages, &musterv1.UploadRequest{Message: &musterv1.UploadRequest_Finish_{Finish: &musterv1.UploadRequest_Finish{
		Size: int64(len(content)), Crc32C: crc32.Checksum(content, castagnoli), Sha256: digest[:]}}})
	return &recording{cell{aggregatorListener, "/muster.v1.ResultService/Upload", "Node", "", true}, messages,
		func(wanted bool) string { return r.result(key, content, wanted) }}
}

// result is what is wrong with the result of a pair: it is this content, or, unless it is wanted, missing.
func (r *recorder) result(key *musterv1.ResultKey, content []byte, wanted bool) string {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	result, err := r.results.GetResult(ctx, &musterv1.GetResultRequest{Key: key})
	if err != nil {
		return fmt.Sprintf("the result of %v: %v", key, err)
	}
	if result.Outcome == musterv1.Outcome_OUTCOME_PENDING {
		if wanted {
			return "the whole upload was neither committed nor refused"
		}
		return ""
	}
	r.committed.Add(1)
	digest := sha256.Sum256(content)
	if result.Outcome != musterv1.Outcome_OUTCOME_GENUINE || !bytes.Equal(result.Sha256, digest[:]) {
		return fmt.Sprintf("committed %v, not the digest %x", result, digest)
	}
	stream, err := r.results.ReadResult(ctx, &musterv1.ReadResultRequest{Key: key})
	var stored []byte
	for err == nil {
		var chunk *musterv1.FileChunk
		if chunk, err = stream.Recv(); err == nil {
			stored = append(stored, chunk.Data...)
		}
	}
	if !bytes.Equal(stored, content) {
		return fmt.Sprintf("the stored result of %v differs from its digest: %v", key, err)
	}
	return ""
}

// damage changes a recording: messages that are lost, repeated, exchanged, damaged, or of another stream.
func damage(random *rand.Rand, messages [][]byte, foreign []byte) [][]byte {
	messages = slices.Clone(messages)
	for range random.IntN(3) + random.IntN(2) { // sometimes none
		if len(messages) == 0 {
			break
		}
		at, other := random.IntN(len(messages)), random.IntN(len(messages))
		switch random.IntN(6) {
		case 0:
			messages = slices.Delete(messages, at, at+1)
		case 1:
			messages = slices.Insert(messages, other, messages[at])
		case 2:
			messages[at], messages[other] = messages[other], messages[at]
		case 3:
			messages = messages[:at]
		case 4:
			messages[at] = mutate(random, messages[at])
		default:
			messages = slices.Insert(messages, at, foreign)
		}
	}
	return messages
}

// finishesNothing tells whether a message ends an upload of an empty result. Directly after the start it is what a
// sender of an empty result sends, so that result is committed.
func finishesNothing(message []byte) bool {
	var request musterv1.UploadRequest
	err := proto.Unmarshal(message, &request)
	return err == nil && request.GetFinish() != nil && request.GetFinish().Size == 0
}

// wantsResult reports whether an upload must have committed its result: it was sent without damage, and not refused.
func wantsResult(recorded, sent [][]byte, refusal error) bool {
	return refusal == nil && slices.EqualFunc(recorded, sent, bytes.Equal)
}

// replay sends a damaged recording of the seed, and returns what is wrong.
func (r *recorder) replay(seed uint64, recordings []func(*rand.Rand) *recording) string {
	random := rand.New(rand.NewPCG(seed, 14))
	recorded := recordings[random.IntN(len(recordings))](random)
	if recorded.messages == nil {
		return recorded.check(false)
	}
	var messages [][]byte
	for _, message := range recorded.messages {
		encoded, _ := proto.Marshal(message)
		messages = append(messages, encoded)
	}
	foreign := newGenerator(random, r.known).wire(r.methods[recorded.method].Input())
	if recorded.check != nil && finishesNothing(foreign) {
		foreign = nil
	}
	whole := messages
	messages = damage(random, messages, foreign)
	patience := replayPatience
	if recorded.check != nil && wantsResult(whole, messages, nil) {
		patience = answerTime
	}
	connection := r.open[recorded.listener+recorded.role]
	responses, err := talk(context.Background(), connection, recorded.method, patience, messages...)
	r.calls.Add(1)
	fault := r.judge(recorded.cell, messages, responses, err, true)
	if fault == "" && recorded.check != nil {
		fault = recorded.check(wantsResult(whole, messages, err))
	}
	if fault == "" {
		return ""
	}
	fault = fmt.Sprintf("seed %d: %v: %s", seed, recorded.cell, fault)
	for _, message := range messages {
		fault += "\n  " + base64.StdEncoding.EncodeToString(message[:min(len(message), 300)])
	}
	return fault
}

// newRecorder creates a recorder with an attach statement of n1.
func newRecorder(t *testing.T, z *fuzzed) *recorder {
	t.Helper()
	r := &recorder{fuzzed: z}
	r.statement = z.callers.attachStatement(t)
	operator := z.typed(t, aggregatorListener, "Operator")
	r.runs, r.results = musterv1.NewRunServiceClient(operator), musterv1.NewResultServiceClient(operator)
	r.sender = musterv1.NewResultServiceClient(z.typed(t, aggregatorListener, "Node"))
	until(t, "a command is accepted", func() bool {
		out, stderr, code := execOn(t, z.callers.fleet, "--node", "n1", "--detach", "--", "/bin/echo", "x")
		r.job = strings.TrimSpace(out)
		return code == 0 || !strings.Contains(stderr, "NO_COMMAND_AUTHORITY")
	})
	return r
}

// typed connects a role to a listener for clients of the API.
func (z *fuzzed) typed(t *testing.T, listener, role string) *grpc.ClientConn {
	t.Helper()
	chain, key := z.callers.issue(t, role)
	connection := must(z.callers.operator.Dial(z.callers.listeners[listener], chain, key))(t)
	t.Cleanup(func() { connection.Close() })
	return connection
}

// Recorded streams with lost, repeated, exchanged, damaged and foreign messages: each is answered as generated requests are,
// and every result that is committed is exactly the one that was sent.
func TestGeneratedDamageOfRecordedStreamsChangesNoResult(t *testing.T) {
	t.Parallel()
	f := up(t)
	z := newFuzzed(t, f)
	r := newRecorder(t, z)
	recordings := r.recordings()
	z.storm(fuzzLimit(t)/2, func(seed uint64) string { return r.replay(seed, recordings) })
	if r.committed.Load() == 0 {
		t.Error("no upload was committed")
	}
	t.Logf("%d results", r.committed.Load())
}
