package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	randv1 "math/rand"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	recordedSize    = 1_200_000 // bytes: two chunks, and within the window of each of six uploads
	damagedReplays  = 40        // of each upload that is not complete
	recordedSenders = 4         // at the aggregator
)

// recordedFleet is a fleet whose programs are recorded: senders at the aggregator, an agent at a relay, and this relay at
// the root relay. The servers have the first chunks of their uploads.
type recordedFleet struct {
	*fuzzed
	run       string
	sent      map[string]*sent // by node
	taps      []*streamTap     // before the aggregator, the relay and the root relay
	ended     chan error       // of the senders
	committed atomic.Int64     // answers to replays
}

// newRecordedFleet starts the programs and waits until all their uploads are held.
func newRecordedFleet(t *testing.T, random *randv1.Rand) *recordedFleet {
	t.Helper()
	f := up(t)
	operator := must(f.Operator())(t)
	all, only := func(string) bool { return true }, func(caller string) bool { return strings.HasSuffix(caller, "/node/a2") }
	atAggregator := newStreamTap(t, aggregatorListener, identityIn(t, filepath.Join(f.Home, "aggregator")), all)
	atRoot := newStreamTap(t, relayListener, identityIn(t, filepath.Join(f.Home, "relay")), only)
	r1, address := recordedRelay(t, f, atRoot)
	atRelay := newStreamTap(t, relayListener, identityIn(t, r1.home), all)
	r := &recordedFleet{sent: map[string]*sent{}, taps: []*streamTap{atAggregator, atRelay, atRoot}, ended: make(chan error, recordedSenders)}

	a1, a2 := join(t, f, "a1", collectPolicy, nil, nil), join(t, f, "a2", collectPolicy, nil, nil)
	atRelay.admit(t, operator, address, "Node", identityIn(t, a1.folder()))
	a1.attachAt(t, atRelay.address)
	a2.attachAt(t, address)
	nodes := []string{"a1", "a2"}
	for i := range recordedSenders {
		nodes = append(nodes, fmt.Sprintf("n%d", i+1))
	}
	folder := t.TempDir()
	r.run = run(t, f, []string{execPlugin("logs", "DaemonSet", fmt.Sprintf(`until [ -e "%[1]s/go" ]; do sleep 0.1; done; `+
		`cp "%[1]s/$NODE_NAME" "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`, folder))}, nodes...)
	for _, node := range nodes {
		s := newSent(t, f, random, r.run, node, recordedSize)
		check(t, os.Link(s.file, filepath.Join(folder, node)))
		r.sent[node] = s
		if strings.HasPrefix(node, "n") {
			r.submit(t, f, operator, atAggregator, s)
		}
	}
	check(t, os.WriteFile(filepath.Join(folder, "go"), nil, 0o600))
	z := &fuzzed{t: t, callers: newCallers(t, f, r.run), methods: methodsOfMuster(), known: &fieldValues{
		texts: map[protoreflect.Name][]string{}, ints: map[protoreflect.Name][]int64{}}, open: map[string]*grpc.ClientConn{}}
	r.fuzzed = z
	check(t, fleet.Until(withinAMinute, "every upload is held", func() bool {
		for node := range r.sent {
			tap := map[string]*streamTap{"a1": atRelay, "a2": atRoot}[node]
			if tap == nil {
				tap = atAggregator
			}
			if !tap.holdsUploadOf("/node/" + node) {
				return false
			}
		}
		return true
	}))
	return r
}

// recordedRelay starts a relay whose only parent is the root relay behind a tap.
func recordedRelay(t *testing.T, f *fleet.Fleet, tap *streamTap) (r *relay, address string) {
	t.Helper()
	r, address = joinLocalRelay(t, f, "r1", tap.address)
	operator := must(f.Operator())(t)
	tap.admit(t, operator, operator.Relay[0], "Relay", identityIn(t, r.home))
	r.start(t)
	return r, address
}

// submit starts a sender whose aggregator is behind the tap.
func (r *recordedFleet) submit(t *testing.T, f *fleet.Fleet, operator *fleet.Operator, tap *streamTap, s *sent) {
	t.Helper()
	credential := must(f.Export(r.run, "logs", s.node))(t)
	tap.admit(t, operator, credential.GRPCTargets[0], "RunNode", identity{credential.Certificate, credential.Key})
	credential.GRPCTargets = []string{tap.address}
	file := must(f.WriteCredential("credential-"+s.node, credential))(t)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		_, err := f.Run(ctx, "submit", s.file, "--config", file)
		r.ended <- err
	}()
}

// recordedCalls returns what all programs have sent so far.
func (r *recordedFleet) recordedCalls() (calls []*tappedCall) {
	for _, tap := range r.taps {
		calls = append(calls, tap.recorded()...)
	}
	return calls
}

// send replays a call with these messages, and returns what is wrong with the answer, and the error in it.
func (r *recordedFleet) send(call *tappedCall, messages [][]byte) (fault string, answered error) {
	whole := slices.EqualFunc(call.messages, messages, bytes.Equal)
	patience := replayPatience
	if whole && call.method == uploadMethod || !r.methods[call.method].IsStreamingClient() && !r.methods[call.method].IsStreamingServer() {
		patience = answerTime
	}
	responses, err := call.talk(patience, messages)
	r.calls.Add(1)
	if call.method == uploadMethod && err == nil {
		r.committed.Add(1)
	}
	fault = r.judge(call.cell, messages, responses, err, true)
	if fault == "" {
		return "", err
	}
	fault = fmt.Sprintf("%v: %s", call, fault)
	for _, message := range messages {
		fault += "\n  " + base64.StdEncoding.EncodeToString(message[:min(len(message), 300)])
	}
	return fault, err
}

// damaged returns the messages of a stream as a seed changes them, with messages of another one. A request of a unary
// method stays as it is: it would be another request.
func (r *recordedFleet) damaged(random *rand.Rand, call *tappedCall, others []*tappedCall) [][]byte {
	if !r.methods[call.method].IsStreamingClient() {
		return call.messages
	}
	same := slices.DeleteFunc(slices.Clone(others), func(other *tappedCall) bool { return other.method != call.method })
	other := same[random.IntN(len(same))]
	return damage(random, call.messages, other.messages[random.IntN(len(other.messages))])
}

// isWithin reports whether the messages of a stream are all sent, in their order, with others between them.
func isWithin(stream, sent [][]byte) bool {
	next := 0
	for _, message := range sent {
		if next < len(stream) && bytes.Equal(message, stream[next]) {
			next++
		}
	}
	return next == len(stream)
}

// anyOf returns a call; each method is equally frequent, because some programs repeat theirs often.
func anyOf(random *rand.Rand, calls []*tappedCall) *tappedCall {
	byMethod := map[string][]*tappedCall{}
	for _, call := range calls {
		byMethod[call.method] = append(byMethod[call.method], call)
	}
	methods := slices.Sorted(maps.Keys(byMethod))
	same := byMethod[methods[random.IntN(len(methods))]]
	return same[random.IntN(len(same))]
}

// uploadOf returns the recorded upload of a node at the place where it is held: the last one, which has the current epoch.
func uploadOf(t *testing.T, calls []*tappedCall, node string) *tappedCall {
	t.Helper()
	for _, call := range slices.Backward(calls) {
		if strings.HasSuffix(call.caller, "/node/"+node) && call.isWholeUpload() {
			return call
		}
	}
	t.Fatalf("no upload of %s was recorded", node)
	return nil
}

// Streams of real programs are replayed with messages that are lost, repeated, exchanged, damaged, or of another stream:
// while the upload is open, twice at the same time, and after its end. Each is answered with a reason, the programs
// complete their deliveries, and each result is stored once.
func TestReplayedStreamsOfRealProgramsStoreNothingTwice(t *testing.T) {
	t.Parallel()
	seeds := seeded(t)
	r := newRecordedFleet(t, seeds)
	random := rand.New(rand.NewPCG(uint64(seeds.Int63()), 15))
	calls := r.recordedCalls()
	for node := range r.sent {
		call := uploadOf(t, calls, node)
		if node != "n1" { // whose upload is not damaged before it is completed twice
			for range damagedReplays {
				messages := r.damaged(random, call, calls)
				if isWithin(call.messages, messages) {
					continue // it would complete the upload
				}
				if fault, _ := r.send(call, messages); fault != "" {
					t.Error(fault)
				}
			}
		}
		r.completeTwiceAtOnce(t, call, node == "n1")
		r.wantSoundOrPending(t, node)
	}
	t.Logf("%d uploads were completed by replays", r.committed.Load())
	for _, call := range calls {
		if call.isWholeUpload() && len(call.messages) < 4 {
			t.Errorf("%v: too few for an upload of several chunks", call)
		}
	}

	for _, tap := range r.taps {
		tap.release()
	}
	r.storm(fuzzLimit(t)/5, func(seed uint64) string {
		random, calls := rand.New(rand.NewPCG(seed, 16)), r.recordedCalls()
		call := anyOf(random, calls)
		fault, _ := r.send(call, r.damaged(random, call, calls))
		if fault != "" {
			return fmt.Sprintf("seed %d: %s", seed, fault)
		}
		return ""
	})
	for range recordedSenders {
		check(t, <-r.ended)
	}
	var all []*sent
	for _, s := range r.sent {
		all = append(all, s)
	}
	wantCommittedOnce(t, r.callers.fleet, r.run, all)
	wantSoundStore(t, r.callers.fleet, int64(len(all))+1+2) // the archives of both runs, and the result of the second one
	for _, node := range []string{"a1", "a2"} {
		check(t, fleet.Until(2*time.Minute, node+" runs commands", func() bool {
			out, _, code := execOn(t, r.callers.fleet, "--node", node, "--", "/bin/echo", "well")
			return code == 0 && out == node+": well\n"
		}))
	}
}

// completeTwiceAtOnce sends a whole upload over two streams of one epoch at the same time. One of them commits it, if
// it `commits`.
func (r *recordedFleet) completeTwiceAtOnce(t *testing.T, call *tappedCall, commits bool) {
	t.Helper()
	var both sync.WaitGroup
	var accepted atomic.Int64
	for range 2 {
		both.Go(func() {
			fault, err := r.send(call, call.messages)
			if fault != "" {
				t.Error(fault)
			}
			if err == nil {
				accepted.Add(1)
			}
		})
	}
	both.Wait()
	if commits && accepted.Load() == 0 {
		t.Errorf("%v: no stream of the upload was accepted", call)
	}
}

// wantSoundOrPending fails if a node has another result than its own.
func (r *recordedFleet) wantSoundOrPending(t *testing.T, node string) {
	t.Helper()
	got := operator(t, r.callers.fleet).result(t, r.run, "logs", node)
	if got.Outcome == musterv1.Outcome_OUTCOME_PENDING {
		return
	}
	if want := r.sent[node]; got.Generation != 1 || got.Size != want.size || got.Crc32C != want.crc {
		t.Errorf("the result of %s is %v", node, got)
	}
}
