package rudder

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/gateway/command"
	"muster.example/gateway/fleet"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/channel"
	"muster.example/services/client/go/mustertest"
	"muster.example/services/client/go/peer"
)

// attachedNodes is the in-memory services to which nodes of a test are attached.
type attachedNodes struct {
	aggregator *mustertest.Aggregator
	relay      *mustertest.Relay
	runner     *command.Runner
}

func startAttachedNodes(t *testing.T) *attachedNodes {
	t.Helper()
	f := mustertest.NewFleet()
	keys, err := fleet.Open(f.Folder(t, f.Service("gateway", "g1")))
	if err != nil {
		t.Fatal(err)
	}
	g := &attachedNodes{aggregator: mustertest.NewAggregator(t, f), relay: mustertest.NewRelay(t, f)}
	dial := func(role, target string) *grpc.ClientConn {
		connection, err := channel.Dial(peer.Server{Role: role}, []string{target}, keys.Roots, keys.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	g.runner = command.NewRunner(mustertest.Domain, dial("aggregator", g.aggregator.Start()), dial("relay", g.relay.Start()),
		slog.New(slog.DiscardHandler))
	return g
}

// withStreams makes a relay use the streams.
func (g *attachedNodes) withStreams(s *testRelay) { s.streams = g.runner }

// printing returns a node that prints pieces; those that begin with "!" go to stderr, "..." is a cut.
func printing(final *musterv1.JobRecord_Final, pieces ...string) mustertest.Node {
	return func(_ context.Context, _ *musterv1.Command, emit func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
		for _, piece := range pieces {
			if piece == "..." {
				emit(&musterv1.JobRecord{Record: &musterv1.JobRecord_Cut_{Cut: &musterv1.JobRecord_Cut{Bytes: 77}}})
				continue
			}
			out := &musterv1.JobRecord_Output{Stream: musterv1.JobStream_JOB_STREAM_STDOUT, Data: []byte(piece)}
			if text, isError := strings.CutPrefix(piece, "!"); isError {
				out = &musterv1.JobRecord_Output{Stream: musterv1.JobStream_JOB_STREAM_STDERR, Data: []byte(text)}
			}
			emit(&musterv1.JobRecord{Record: &musterv1.JobRecord_Output_{Output: out}})
		}
		return final
	}
}

func exited(code int32) *musterv1.JobRecord_Final {
	return &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_EXITED, ExitCode: code, Duration: durationpb.New(1e9)}
}

func TestAttachedNodesAreReachedOverStreams(t *testing.T) {
	g := startAttachedNodes(t)
	g.relay.AddNode("n-a", printing(exited(4), "one\ntw", "o\nhal", "...", "without end", "!bad\xff"))
	g.relay.AddNode("d.example", printing(exited(0), "of n-d\n")) // attached by its host name, whatever Rudder relay is its policy server
	f := startExtendedTree(t, g.withStreams)
	f.root.server.streams = g.runner
	got := f.root.run("nodes?nodes=n-a,n-b,n-d,n-c&classes=info,debug")
	got.ended(t, "n-a", 4, "")
	if want := []string{"one", "two", "hal", "[77 bytes omitted]", "without end"}; !slices.Equal(got.lines["n-a"], want) || got.ends["n-a"].Stderr != "bad\uFFFD" {
		t.Error(got)
	}
	got.ended(t, "n-d", 0, "")
	got.ended(t, "n-b", 0, "")
	got.ended(t, "n-c", 0, "")
	if f.root.calls() != "remote run -D info,debug -- b.example\n" || f.r1.calls() != "remote run -D info,debug -- c.example\n" || f.r2.calls() != "" {
		t.Error(f.root.calls(), f.r1.calls(), f.r2.calls())
	}
	signed := g.relay.Signed()
	if len(signed) != 1 {
		t.Fatal(len(signed))
	}
	sent, _, err := g.aggregator.Commands.Check(signed[0])
	if err != nil || len(sent.Argv) != 0 || strings.Join(sent.Classes, ",") != "info,debug" ||
		sent.Action != "rudder" || sent.DiscardOutput || string(sent.Targets.NodesSha256) != string(command.Targets([]string{"n-a", "d.example"}).NodesSha256) {
		t.Error(sent, err)
	}
}

func TestAllExcludesAttachedNodesFromBranch(t *testing.T) {
	g := startAttachedNodes(t)
	g.relay.AddNode("n-c", printing(exited(0), "by stream\n"))
	f := startExtendedTree(t)
	f.root.server.streams = g.runner
	got := f.root.run("all")
	for _, id := range []string{"root", "n-a", "n-b", "r1", "n-c", "r2", "n-d", "r3", "n-e"} {
		got.ended(t, id, 0, "")
	}
	if !slices.Equal(got.lines["n-c"], []string{"by stream"}) || f.r1.calls() != "remote run -- 127.0.0.3\n" {
		t.Error(got.lines, f.r1.calls())
	}
}

func TestStrictDialectUsesStreams(t *testing.T) {
	g := startAttachedNodes(t)
	g.relay.AddNode("n-c", printing(exited(3), "by ", "stream", "!bad"))
	f := startTree(t)
	f.root.server.streams = g.runner
	f.root.want(f.root.post("remote-run/nodes", "keep_output=true", "nodes=n-a,n-c"), 200, "ran a.example\nby stream\n")
	f.root.want(f.root.post("remote-run/nodes/n-c"), 200, "")
	f.root.want(f.root.post("remote-run/all", "asynchronous=false"), 200, "")
	if calls := f.r1.calls(); calls != "remote run -- 127.0.0.3\n" || len(g.relay.Signed()) != 3 {
		t.Error(calls, len(g.relay.Signed()))
	}
}

func TestOutcomeOfAttachedNodeIsReported(t *testing.T) {
	g := startAttachedNodes(t)
	g.relay.AddNode("n-a", printing(&musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_REFUSED, Reason: "POLICY_REFUSED", Detail: "no rule admits it"}))
	g.relay.AddNode("n-b", printing(&musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_TIMED_OUT}, "begun\n"))
	g.relay.AddNode("root", printing(&musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_EXITED, Signal: 9}))
	s := startExtended(t, g.withStreams)
	got := s.run("nodes?nodes=n-a,n-b,root")
	got.ended(t, "n-a", 0, "refused: POLICY_REFUSED: no rule admits it")
	got.ended(t, "n-b", 0, "timed out")
	got.ended(t, "root", 0, "signal 9")
	g.relay.Stop() // the last known list is used
	got = s.run("nodes?nodes=n-a,n-b")
	got.ended(t, "n-a", 0, "the relay did not accept the job")
	got.ended(t, "n-b", 0, "the relay did not accept the job")
	if s.calls() != "" {
		t.Error(s.calls())
	}
}

func TestAttachedNodeBeyondTimeLimitHasReason(t *testing.T) {
	g := startAttachedNodes(t)
	g.relay.AddNode("n-a", func(ctx context.Context, _ *musterv1.Command, _ func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
		<-t.Context().Done() // it ignores even the cancellation
		return &musterv1.JobRecord_Final{}
	})
	s := startExtended(t, g.withStreams, func(s *testRelay) { s.config.RemoteRunTime = 300 * time.Millisecond })
	s.run("node/n-a").ended(t, "n-a", 0, "took longer")
}

func TestCommandReachesEveryNodeWithoutRelay(t *testing.T) {
	g := startAttachedNodes(t)
	g.relay.Stop()
	s := startExtended(t, g.withStreams)
	s.run("node/n-a").ended(t, "n-a", 0, "")
	if s.calls() != "remote run -- a.example\n" {
		t.Error(s.calls())
	}
}

func TestJobIsCancelledWithClient(t *testing.T) {
	g := startAttachedNodes(t)
	ended := make(chan struct{})
	g.relay.AddNode("n-a", func(ctx context.Context, _ *musterv1.Command, emit func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
		<-ctx.Done()
		close(ended)
		return &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_CANCELLED}
	})
	s := startExtended(t, g.withStreams)
	response, err := s.client.Get(s.base + basePath + "remote-run/node/n-a")
	if err != nil {
		t.Fatal(err)
	}
	mustertest.Await(t, "the job was submitted", func() bool { return len(g.relay.Signed()) == 1 })
	response.Body.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the job was not cancelled")
	}
	mustertest.Await(t, "the run has ended", func() bool { return len(s.server.runs) == 0 })
}
