package command

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/gateway/fleet"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/channel"
	"muster.example/services/client/go/mustertest"
	"muster.example/services/client/go/peer"
)

// fixture is a runner with an in-memory aggregator and relay.
type fixture struct {
	aggregator *mustertest.Aggregator
	relay      *mustertest.Relay
	connection grpc.ClientConnInterface // to the relay
	runner     *Runner
}

func open(t *testing.T, lose ...func(context.Context) error) *fixture {
	t.Helper()
	f := mustertest.NewFleet()
	keys, err := fleet.Open(f.Folder(t, f.Service("gateway", "g1")))
	if err != nil {
		t.Fatal(err)
	}
	p := &fixture{aggregator: mustertest.NewAggregator(t, f), relay: mustertest.NewRelay(t, f)}
	dial := func(role, target string) *grpc.ClientConn {
		connection, err := channel.Dial(peer.Server{Role: role}, []string{target}, keys.Roots, keys.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	var relay grpc.ClientConnInterface = dial("relay", p.relay.Start())
	for _, l := range lose {
		relay = &lossyRelay{relay, l}
	}
	p.connection = relay
	p.runner = NewRunner(mustertest.Domain, dial("aggregator", p.aggregator.Start()), relay, slog.New(slog.DiscardHandler))
	return p
}

// answers prints, and exits with a code.
func answers(text string, code int32) mustertest.Node {
	return func(_ context.Context, _ *musterv1.Command, emit func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
		emit(&musterv1.JobRecord{Record: &musterv1.JobRecord_Output_{
			Output: &musterv1.JobRecord_Output{Stream: musterv1.JobStream_JOB_STREAM_STDOUT, Data: []byte(text)}}})
		return &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_EXITED, ExitCode: code}
	}
}

func (p *fixture) run(t *testing.T, nodes ...string) (records []*musterv1.JobRecord, err error) {
	t.Helper()
	err = p.runner.Run(t.Context(), Job{Nodes: nodes, Classes: []string{"info"}, TimeLimit: time.Minute},
		func(record *musterv1.JobRecord) bool {
			records = append(records, record)
			return true
		})
	return records, err
}

func TestCommandIsSignedForItsNodesOnly(t *testing.T) {
	p := open(t)
	p.relay.AddNode("n1", answers("one\n", 0))
	p.relay.AddNode("n2", answers("two\n", 7))
	if records, err := p.run(t, "n2", "n1", "n2"); err != nil || len(records) != 6 {
		t.Fatal(records, err)
	}
	if _, err := p.run(t, "n1"); err != nil {
		t.Fatal(err)
	}
	all := p.relay.Signed()
	if len(all) != 2 || p.aggregator.CommandCertificates() != 1 {
		t.Fatal(len(all), p.aggregator.CommandCertificates())
	}
	seen := map[string]bool{}
	for _, signed := range all {
		got, uri, err := p.aggregator.Commands.Check(signed)
		if err != nil {
			t.Fatal(err)
		}
		if uri != "spiffe://"+mustertest.Domain+"/service/gateway/g1" || got.Action != "rudder" || got.Fleet != mustertest.Domain ||
			len(got.Argv) != 0 || strings.Join(got.Classes, ",") != "info" || len(got.Nonce) != 16 || len(got.Job) != 32 ||
			got.TimeLimit.AsDuration() != time.Minute || got.Targets.All || got.Targets.Count != int64(len(p.nodesOf(got))) {
			t.Error(uri, got)
		}
		if life := got.NotAfter.AsTime().Sub(got.NotBefore.AsTime()); life <= 0 || life > 5*time.Minute || time.Since(got.NotBefore.AsTime()) > time.Minute {
			t.Error(life, got.NotBefore)
		}
		if seen[got.Job] || seen[string(got.Nonce)] {
			t.Error("used twice")
		}
		seen[got.Job], seen[string(got.Nonce)] = true, true
		if want := Targets(p.nodesOf(got)).NodesSha256; string(want) != string(got.Targets.NodesSha256) {
			t.Error("another target set")
		}
	}
	for _, caller := range p.relay.Callers() {
		if caller != "[]" {
			t.Error("the gateway called for", caller)
		}
	}
}

// nodesOf returns the nodes of a command's target set.
func (p *fixture) nodesOf(c *musterv1.Command) []string {
	if c.Targets.Count == 1 {
		return []string{"n1"}
	}
	return []string{"n1", "n2"}
}

func TestSigningCertificateIsRenewedAtHalfOfValidity(t *testing.T) {
	p := open(t)
	p.aggregator.Commands.Life = time.Second // it was issued a second ago: half of its validity has passed
	p.relay.AddNode("n1", answers("", 0))
	for range 3 {
		if _, err := p.run(t, "n1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.aggregator.CommandCertificates(); got < 2 {
		t.Error(got)
	}
	p.aggregator.Commands.Life = 24 * time.Hour
	if _, err := p.run(t, "n1"); err != nil {
		t.Fatal(err)
	}
	issued := p.aggregator.CommandCertificates()
	p.aggregator.Stop()
	if _, err := p.run(t, "n1"); err != nil || p.aggregator.CommandCertificates() != issued {
		t.Error("a good certificate was not enough", err)
	}
}

func TestSubmitWithoutCertificateFails(t *testing.T) {
	p := open(t)
	p.aggregator.Stop()
	if _, err := p.run(t, "n1"); err == nil || !strings.Contains(err.Error(), "no certificate to sign") || len(p.relay.Signed()) != 0 {
		t.Error(err)
	}
}

func TestBrokenWatchIsResumed(t *testing.T) {
	p := open(t)
	let := make(chan struct{})
	p.relay.AddNode("n1", func(context.Context, *musterv1.Command, func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
		<-let
		return &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_EXITED}
	})
	p.relay.BreakWatch() // before the first record
	sequences := ""
	err := p.runner.Run(t.Context(), Job{Nodes: []string{"n1"}, TimeLimit: time.Minute},
		func(record *musterv1.JobRecord) bool {
			if sequences == "" {
				p.relay.BreakWatch() // and before the second, which does not exist yet
				close(let)
			}
			sequences += string(rune('0' + record.Sequence))
			return true
		})
	if err != nil || sequences != "12" {
		t.Error(sequences, err)
	}
}

func TestJobWithoutFollowerIsCancelled(t *testing.T) {
	p := open(t)
	p.relay.AddNode("n1", waitForCancel)
	ctx, cancel := context.WithCancel(t.Context())
	var id string
	err := p.runner.Run(ctx, Job{Nodes: []string{"n1"}, TimeLimit: time.Hour}, func(record *musterv1.JobRecord) bool {
		id = record.Job
		cancel()
		return true
	})
	if state, _ := p.relay.Job(id); err == nil || state != musterv1.JobState_JOB_STATE_CANCELLED {
		t.Error(state, err)
	}
}

// lossyRelay loses answers to submissions.
type lossyRelay struct {
	grpc.ClientConnInterface
	lose func(ctx context.Context) error // called when the relay has accepted a job; its error replaces the answer
}

func (l *lossyRelay) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	err := l.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
	if err == nil && method == musterv1.JobService_SubmitJob_FullMethodName {
		err = l.lose(ctx)
	}
	return err
}

// waitForCancel is a node that ends only with its job.
func waitForCancel(ctx context.Context, _ *musterv1.Command, _ func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
	<-ctx.Done()
	return &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_CANCELLED}
}

// wantCancelled checks that the only job was cancelled.
func (p *fixture) wantCancelled(t *testing.T) {
	t.Helper()
	all := p.relay.Signed()
	if len(all) != 1 {
		t.Fatal(len(all))
	}
	command, _, err := p.aggregator.Commands.Check(all[0])
	if err != nil {
		t.Fatal(err)
	}
	if state, _ := p.relay.Job(command.Job); state != musterv1.JobState_JOB_STATE_CANCELLED {
		t.Error(state)
	}
}

func TestJobWhoseCallerLeavesDuringSubmissionIsCancelled(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	p := open(t, func(ctx context.Context) error {
		leave()
		return ctx.Err()
	})
	p.relay.AddNode("n1", waitForCancel)
	err := p.runner.Run(ctx, Job{Nodes: []string{"n1"}, TimeLimit: time.Hour}, func(*musterv1.JobRecord) bool { return true })
	if err == nil {
		t.Error("the job seems complete")
	}
	p.wantCancelled(t)
}

func TestJobWhoseSubmissionHasNoAnswerIsCancelled(t *testing.T) {
	p := open(t, func(context.Context) error { return status.Error(codes.Unavailable, "the connection broke") })
	p.relay.AddNode("n1", waitForCancel)
	if _, err := p.run(t, "n1"); err == nil || !strings.Contains(err.Error(), "the connection broke") {
		t.Error(err)
	}
	p.wantCancelled(t)
}

func TestJobIsCancelledWhenALaterTryIsRejected(t *testing.T) {
	tries := 0
	p := open(t, func(context.Context) error {
		if tries++; tries == 1 {
			return status.Error(codes.Unavailable, "the connection broke")
		}
		return status.Error(codes.PermissionDenied, "the certificate is revoked")
	})
	p.relay.AddNode("n1", waitForCancel)
	if _, err := p.run(t, "n1"); err == nil || !strings.Contains(err.Error(), "the certificate is revoked") {
		t.Error(err)
	}
	p.wantCancelled(t)
}

func TestAttachedNodesAreCachedWhileRelayIsDown(t *testing.T) {
	p := open(t)
	if got := p.runner.Attached(t.Context()); len(got) != 0 {
		t.Error(got)
	}
	p = open(t)
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		p.relay.AddNode(name, answers("", 0))
	}
	if got := p.runner.Attached(t.Context()); len(got) != 5 || !got["n5"] {
		t.Error(got)
	}
	p.relay.Stop()
	if got := p.runner.Attached(t.Context()); len(got) != 5 {
		t.Error(got)
	}
}

// slowRelay lets lists of attached nodes wait.
type slowRelay struct {
	grpc.ClientConnInterface
	begun chan struct{} // gets a message for each list that is requested
	let   chan struct{} // is closed when the relay answers
}

func (s *slowRelay) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	if method == musterv1.AttachService_ListAttached_FullMethodName {
		s.begun <- struct{}{}
		select {
		case <-s.let:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	return s.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
}

func TestAttachedNodesAreListedAlthoughTheFirstCallerLeaves(t *testing.T) {
	slow := &slowRelay{begun: make(chan struct{}, 2), let: make(chan struct{})}
	p := open(t)
	p.relay.AddNode("n1", answers("", 0))
	slow.ClientConnInterface = p.connection
	p.runner.attached = musterv1.NewAttachServiceClient(slow)
	ctx, leave := context.WithCancel(t.Context())
	lists := make(chan map[string]bool)
	go func() { lists <- p.runner.Attached(ctx) }()
	<-slow.begun
	leave()
	if got := <-lists; len(got) != 0 {
		t.Error(got)
	}
	go func() { lists <- p.runner.Attached(t.Context()) }()
	close(slow.let)
	if got := <-lists; !got["n1"] {
		t.Error(got)
	}
	if got := p.runner.Attached(t.Context()); !got["n1"] || len(slow.begun) != 0 {
		t.Error("the list is requested again", got)
	}
}

// vectors reads the lines of a test vector that the C++ implementation shares.
func vectors(t *testing.T, name string) (lines [][]string) {
	t.Helper()
	content, err := os.ReadFile("../../services/common/identity/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.Fields(line))
		}
	}
	return lines
}

func TestTargetSetsMatchVectors(t *testing.T) {
	all := vectors(t, "target_sets.txt")
	if len(all) < 5 {
		t.Fatal(len(all))
	}
	for _, vector := range all {
		if got := hex.EncodeToString(Targets(vector[1:]).NodesSha256); got != vector[0] {
			t.Errorf("%q: %s, want %s", vector[1:], got, vector[0])
		}
	}
}

func TestSignatureMatchesVector(t *testing.T) {
	vector := vectors(t, "command_signature.txt")[0]
	var parts [3][]byte
	for i, text := range vector {
		var err error
		if parts[i], err = hex.DecodeString(text); err != nil {
			t.Fatal(err)
		}
	}
	if got := sign(ed25519.NewKeyFromSeed(parts[0]), parts[1]); !bytes.Equal(got, parts[2]) {
		t.Errorf("%x", got)
	}
}
