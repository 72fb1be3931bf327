package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// keptCalls are calls that found defects, with their messages as the test prints them.
var keptCalls = []struct {
	cell
	messages []string // base64
}{
	{cell: cell{relayListener, "/muster.v1.ShareService/UploadShare", "Node", "", true}}, // ended without a reason
}

const (
	replayedPairs  = 1000             // of the run
	fuzzTime       = 40 * time.Second // MUSTER_FUZZ_TIME replaces it
	answerTime     = 20 * time.Second // of a call whose requests are complete, on a loaded machine
	streamPatience = 200 * time.Millisecond
	fuzzMemory     = 512 << 20 // of each service
)

// fuzzed is a fleet that gets generated calls.
type fuzzed struct {
	t       *testing.T
	callers *rpcCallers
	known   *fieldValues
	victims *fieldValues // for methods that end what the other calls need
	methods map[string]protoreflect.MethodDescriptor
	cells   []cell // what the table admits, many times, and the rest, once
	open    map[string]*grpc.ClientConn
	calls   atomic.Int64
	answers sync.Map // code and reason -> *atomic.Int64
}

// The calls of these methods name only victims.
var endsOthers = []string{"/muster.v1.EnrollmentService/RevokeNode", "/muster.v1.EnrollmentService/RemoveNode",
	"/muster.v1.IdentityService/RevokeOperator", "/muster.v1.RunService/DeleteRun", "/muster.v1.RunService/CancelRun"}

// The calls of these methods wait half a minute for the listener of a run. Those of generated runs have none.
var waitsForListener = []string{"/muster.v1.RunService/IssueCredential", "/muster.v1.RunService/IssueViewerCredential"}

func newFuzzed(t *testing.T, f *fleet.Fleet) *fuzzed {
	t.Helper()
	plugins := []string{sidecarPlugin("logs", "DaemonSet")}
	id, victim := run(t, f, plugins, "n1", "n2"), run(t, f, plugins, "n1", "n2")
	join(t, f, "n1", "", nil, nil)
	join(t, f, "n2", "", nil, nil)
	z := &fuzzed{t: t, callers: newCallers(t, f, id), methods: methodsOfMuster(), open: map[string]*grpc.ClientConn{}}
	chain, _ := z.callers.issue(t, "Node")
	z.known = &fieldValues{ints: map[protoreflect.Name][]int64{"attempt": {1}}, texts: map[protoreflect.Name][]string{
		"run": {id}, "plugin": {"logs"}, "node": {"n1", "n2"}, "nodes": {"n1"}, "plugins": plugins, "page_token": {""}, "relay": {"root"},
		"source": {"n1"}, "target": {"n2"}, "uri": {z.callers.uri("Node")}, "child": {z.callers.uri("Node")}, "certificate_chain_pem": {chain},
		"csr_pem": {csr(t)}}}
	z.victims = &fieldValues{ints: map[protoreflect.Name][]int64{}, texts: map[protoreflect.Name][]string{
		"run": {victim}, "node": {"n2"}, "name": {"nobody"}}}
	for method, row := range authorizationTable(t) {
		for listener := range servedAt {
			for _, c := range cellsOf(listener, method, row) {
				for range map[bool]int{true: 30, false: 1}[c.allowed && serves(listener, method)] {
					z.cells = append(z.cells, c)
				}
			}
		}
	}
	slices.SortFunc(z.cells, func(a, b cell) int { return strings.Compare(a.String(), b.String()) })
	for _, listener := range []string{aggregatorListener, statusListener, relayListener, jobsListener} {
		for role := range roleURIs {
			z.open[listener+role] = z.callers.connection(t, listener, role)
		}
	}
	z.open[joinListener] = z.callers.connection(t, joinListener, "")
	return z
}

// messages returns the generated requests of a call.
func (z *fuzzed) messages(random *rand.Rand, c cell) [][]byte {
	method := z.methods[c.method]
	if method == nil { // of gRPC itself
		return [][]byte{mutate(random, []byte{8, 1, 18, 3, 'a', 'b', 'c'})}
	}
	known := z.known
	if slices.Contains(endsOthers, c.method) {
		known = z.victims
	}
	g := newGenerator(random, known)
	count := 1
	switch {
	case method.IsStreamingClient():
		count = random.IntN(7)
	case g.chance(0.05):
		count = random.IntN(3) // none, and two
	}
	var all [][]byte
	for range count {
		all = append(all, g.wire(method.Input()))
	}
	if count > 0 && g.chance(0.1) {
		all = append(all, all[0]) // the first once more: a second start
	}
	return all
}

// one makes the call of a seed, and returns what is wrong with its answer.
func (z *fuzzed) one(seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 13))
	c := z.cells[random.IntN(len(z.cells))]
	key, ctx := c.listener+c.role, context.Background()
	if c.via != "" {
		key, ctx = c.listener+c.via, z.callers.forwarded(ctx, c.role)
	}
	if strings.HasPrefix(c.method, "/muster.v1.JoinService/") && random.IntN(3) > 0 {
		key = joinListener
	}
	messages := z.messages(random, c)
	responses, err, ended := z.call(ctx, z.open[key], c.method, messages, random)
	z.calls.Add(1)
	fault := z.judge(c, messages, responses, err, ended)
	if fault == "" {
		return ""
	}
	fault = fmt.Sprintf("seed %d: %v (over %s): %s", seed, c, key, fault)
	for _, message := range messages {
		fault += "\n  " + base64.StdEncoding.EncodeToString(message[:min(len(message), 2000)])
	}
	return fault
}

// call sends the messages in a manner of the seed: with an early half-close, or none, or a cancel.
func (z *fuzzed) call(ctx context.Context, connection *grpc.ClientConn, method string, messages [][]byte, random *rand.Rand) (responses [][]byte, err error, ended bool) {
	patience, manner := answerTime, random.IntN(8)
	descriptor := z.methods[method]
	streaming := descriptor == nil || descriptor.IsStreamingClient() || descriptor.IsStreamingServer()
	if streaming || manner == 0 || len(messages) != 1 || slices.Contains(waitsForListener, method) {
		patience = streamPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The first call of a connection waits for it, and for another if the server is busy with handshakes.
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.WaitForReady(true))
	// gRPC compares the deadline with the clock: this may come a moment before the context ends.
	if patience == streamPatience && status.Code(err) == codes.DeadlineExceeded {
		return nil, nil, true
	}
	if err != nil {
		return nil, err, false
	}
	for _, message := range messages {
		if stream.SendMsg(&message) != nil {
			break
		}
	}
	switch manner {
	case 0: // never closed
	case 1:
		if streaming {
			cancel()
		}
		fallthrough
	default:
		_ = stream.CloseSend()
	}
	for {
		var response []byte
		if err := stream.RecvMsg(&response); ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded && reason(err) == "" {
			return responses, nil, patience == streamPatience
		} else if err != nil {
			return responses, err, true
		}
		if responses = append(responses, response); len(responses) > 100 {
			return responses, nil, true
		}
	}
}

func (z *fuzzed) judge(c cell, sent, responses [][]byte, err error, ended bool) string {
	if !ended {
		return fmt.Sprintf("no answer: %v", err)
	}
	code := status.Code(err)
	if err == io.EOF {
		code = codes.OK
	}
	if !strings.HasPrefix(c.method, "/muster.") {
		return "" // gRPC's own
	}
	why := reasonOf(err)
	if why == "" && code == codes.Unimplemented && (!serves(c.listener, c.method) || z.isMalformed(c.method, sent)) {
		why = "gRPC"
	}
	counter, _ := z.answers.LoadOrStore(code.String()+" "+why, &atomic.Int64{})
	counter.(*atomic.Int64).Add(1)
	if why == "" || isServiceFault(code, why) {
		return fmt.Sprintf("answered %v", err)
	}
	for _, response := range responses {
		if err := z.known.learn(z.methods[c.method].Output(), response); err != nil {
			return fmt.Sprintf("the response is no %s: %v", z.methods[c.method].Output().FullName(), err)
		}
	}
	return ""
}

// damagedBySender are reasons of DATA_LOSS that the sender causes.
var damagedBySender = []string{"CRC_MISMATCH", "DIGEST_MISMATCH", "SIZE_MISMATCH"}

// isServiceFault reports whether an answer says that the service itself failed: no request may cause that.
func isServiceFault(code codes.Code, why string) bool {
	switch code {
	case codes.Unknown, codes.Internal:
		return true
	case codes.DataLoss:
		return !slices.Contains(damagedBySender, why)
	}
	return false
}

// isMalformed reports whether a call without a stream of requests has not exactly one, or one that is no protobuf message. gRPC
// answers UNIMPLEMENTED.
func (z *fuzzed) isMalformed(method string, sent [][]byte) bool {
	d := z.methods[method]
	return !d.IsStreamingClient() && (len(sent) != 1 || proto.Unmarshal(sent[0], dynamicpb.NewMessage(d.Input())) != nil)
}

// refusedByGRPC are refusals of gRPC itself, before a method is called.
var refusedByGRPC = map[codes.Code]string{codes.ResourceExhausted: "Received message larger than max"}

var gateReason = regexp.MustCompile(`^([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+): `)

// reasonOf is the reason of an error: in its detail, or, of a gate, in its text; "gRPC" if gRPC itself refused the call.
func reasonOf(err error) string {
	text := status.Convert(err).Message()
	switch why, code := reason(err), status.Code(err); {
	case err == nil || err == io.EOF:
		return "-"
	case why != "":
		return why
	case gateReason.MatchString(text):
		return gateReason.FindStringSubmatch(text)[1]
	case refusedByGRPC[code] != "" && strings.HasPrefix(text, refusedByGRPC[code]):
		return "gRPC"
	}
	return ""
}

// healthy calls each service as another operator until the end, and fails if one does not answer.
func (z *fuzzed) healthy(end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(200 * time.Millisecond):
		}
		for _, call := range []struct {
			listener, method string
			request          proto.Message
		}{
			{aggregatorListener, "/muster.v1.RunService/GetRun", &musterv1.GetRunRequest{Run: z.callers.run}},
			{statusListener, "/muster.v1.StatusService/GetStatus", &musterv1.GetStatusRequest{Run: z.callers.run}},
			{relayListener, "/muster.v1.JobService/ListJobs", &musterv1.ListJobsRequest{}},
		} {
			message, _ := proto.Marshal(call.request)
			if _, err := talk(context.Background(), z.open["healthy"+call.listener], call.method, answerTime, message); err != nil {
				z.t.Errorf("another client got %v from %s", err, call.method)
			}
		}
	}
}

// fuzzLimit is the time of the test: MUSTER_FUZZ_TIME, or a short one.
func fuzzLimit(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("MUSTER_FUZZ_TIME"); text != "" {
		return must(time.ParseDuration(text))(t)
	}
	return fuzzTime
}

// Generated requests of every method, at every listener, by every kind of caller: each is answered in time and not as a
// failure of the service, another client is not disturbed, and no service ends or grows. MUSTER_FUZZ_SEED repeats one call.
func TestGeneratedRequestsOfEveryMethodAreAnswered(t *testing.T) {
	t.Parallel()
	f := up(t)
	z := newFuzzed(t, f)
	if text := os.Getenv("MUSTER_FUZZ_SEED"); text != "" {
		t.Fatal("the seed: ", z.one(must(strconv.ParseUint(text, 10, 64))(t)))
	}
	for _, kept := range keptCalls {
		var messages [][]byte
		for _, text := range kept.messages {
			messages = append(messages, must(base64.StdEncoding.DecodeString(text))(t))
		}
		responses, err := talk(context.Background(), z.open[kept.listener+kept.role], kept.method, answerTime, messages...)
		if fault := z.judge(kept.cell, messages, responses, err, true); fault != "" {
			t.Errorf("%v: %s", kept.cell, fault)
		}
	}
	z.storm(fuzzLimit(t), z.one)
}

// storm makes calls of new seeds until the limit, while another client calls each service.
func (z *fuzzed) storm(limit time.Duration, one func(seed uint64) string) {
	z.t.Helper()
	before := services(z.t, z.callers.fleet)
	for _, listener := range []string{aggregatorListener, statusListener, relayListener, jobsListener} {
		z.open["healthy"+listener] = z.callers.dial(z.t, listener, "Operator")
	}
	ended, healthy := make(chan struct{}), sync.WaitGroup{}
	healthy.Go(func() { z.healthy(ended) })
	first, end := uint64(time.Now().UnixNano()), time.Now().Add(limit)
	var next, faults atomic.Uint64
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for time.Now().Before(end) && faults.Load() < 20 {
				if fault := one(first + next.Add(1)); fault != "" {
					faults.Add(1)
					z.t.Error(fault)
				}
			}
		})
	}
	workers.Wait()
	close(ended)
	healthy.Wait()
	z.wantUnharmed(before)
}

// wantUnharmed fails unless the services are the processes of before, small, and useful.
func (z *fuzzed) wantUnharmed(before map[string]fleet.Process) {
	z.t.Helper()
	t, f := z.t, z.callers.fleet
	for name, now := range services(t, f) {
		if now.PID != before[name].PID {
			t.Errorf("%s has ended: it is process %d, not %d", name, now.PID, before[name].PID)
		}
		if peak := peakMemory(now); peak > fuzzMemory {
			t.Errorf("%s took %d MiB", name, peak>>20)
		}
	}
	next := run(t, f, []string{execPlugin("p", "DaemonSet", `echo x > "$RESULTS_DIR/x"; echo "$RESULTS_DIR/x" > "$RESULTS_DIR/done"`)}, "n1")
	check(t, f.Agent(context.Background(), must(f.Export(next, "p", "n1"))(t)))
	must(f.Muster("wait", next))(t)
	t.Logf("%d calls", z.calls.Load())
	z.answers.Range(func(key, value any) bool {
		t.Logf("  %6d %s", value.(*atomic.Int64).Load(), key)
		return true
	})
}

// services returns the processes of a fleet by the names of their programs.
func services(t *testing.T, f *fleet.Fleet) map[string]fleet.Process {
	t.Helper()
	all := map[string]fleet.Process{}
	for _, name := range []string{fleet.Aggregator, fleet.Status, fleet.Relay, fleet.Jobs, fleet.Gateway} {
		// A test may have further relays.
		process := must(f.Process(name, "--config", filepath.Join(f.Home, "config", strings.TrimPrefix(name, "muster-")+".yaml")))(t)
		all[filepath.Base(name)] = process
	}
	return all
}
