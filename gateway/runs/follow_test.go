package runs

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

// stream is what a feed sends over one connection, and how it ends; nil: it stays open.
type stream struct {
	events []*musterv1.FollowChangesResponse
	end    error
}

// feed serves one stream after another, and records the requested cursors (-1: none).
type feed struct {
	musterv1.UnimplementedChangeServiceServer
	mu      sync.Mutex
	streams []stream
	cursors []int64
}

func (f *feed) FollowChanges(r *musterv1.FollowChangesRequest, out grpc.ServerStreamingServer[musterv1.FollowChangesResponse]) error {
	f.mu.Lock()
	cursor := int64(-1)
	if r.Cursor != nil {
		cursor = *r.Cursor
	}
	f.cursors = append(f.cursors, cursor)
	next := f.streams[0]
	f.streams = f.streams[1:]
	f.mu.Unlock()
	for _, event := range next.events {
		if err := out.Send(event); err != nil {
			return err
		}
	}
	if next.end == nil {
		<-out.Context().Done()
		return nil
	}
	if next.end == io.EOF {
		return nil
	}
	return next.end
}

// notes is a follower that records its calls.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, text)
}

func (n *notes) Snapshot(runs []*musterv1.Run, revoked []string) {
	var ids []string
	for _, run := range runs {
		ids = append(ids, run.Id)
	}
	n.add("snapshot " + strings.Join(append(ids, revoked...), " "))
}
func (n *notes) Changed(run *musterv1.Run) { n.add("changed " + run.Id) }
func (n *notes) Deleted(run string)        { n.add("deleted " + run) }
func (n *notes) Revoked(subject string)    { n.add("revoked " + subject) }
func (n *notes) Connected(ok bool, fault string) {
	if ok {
		n.add("connected")
	} else {
		n.add("away: " + fault)
	}
}

// follow checks what a follower receives from these streams, in order, up to the last of `want`; it returns the
// cursors.
func follow(t *testing.T, want []string, streams ...stream) []int64 {
	t.Helper()
	f, recorded := &feed{streams: streams}, &notes{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	musterv1.RegisterChangeServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Follow(ctx, musterv1.NewChangeServiceClient(conn), recorded, slog.New(slog.DiscardHandler))
	}()
	mustertest.AwaitFor(20*time.Second, func() bool { // the comparison below reports what is missing
		recorded.mu.Lock()
		defer recorded.mu.Unlock()
		return len(recorded.all) >= len(want)
	})
	cancel()
	<-ended // Follow returns when its context ends
	recorded.mu.Lock()
	defer recorded.mu.Unlock()
	if !slices.Equal(recorded.all, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(recorded.all, "\n"), strings.Join(want, "\n"))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursors
}

func run(id string, cursor ...int64) *musterv1.FollowChangesResponse {
	event := &musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Run{Run: &musterv1.Run{Id: id}}}
	if len(cursor) > 0 {
		event.Cursor = &cursor[0]
	}
	return event
}

func begin() *musterv1.FollowChangesResponse {
	return &musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_SnapshotBegin_{}}
}

func end(cursor int64) *musterv1.FollowChangesResponse {
	return &musterv1.FollowChangesResponse{Cursor: &cursor, Event: &musterv1.FollowChangesResponse_SnapshotEnd_{}}
}

func heartbeat() *musterv1.FollowChangesResponse {
	return &musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Heartbeat_{}}
}

func revoked(subject string, cursor ...int64) *musterv1.FollowChangesResponse {
	event := &musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Revoked_{
		Revoked: &musterv1.FollowChangesResponse_Revoked{Subject: subject}}}
	if len(cursor) > 0 {
		event.Cursor = &cursor[0]
	}
	return event
}

func deleted(id string, cursor int64) *musterv1.FollowChangesResponse {
	return &musterv1.FollowChangesResponse{Cursor: &cursor, Event: &musterv1.FollowChangesResponse_RunDeleted_{
		RunDeleted: &musterv1.FollowChangesResponse_RunDeleted{Run: id}}}
}

var cut = status.Error(codes.Unavailable, "cut")

const away = "away: rpc error: code = Unavailable desc = cut"

// Runs that an incomplete snapshot did not contain are not deleted.
func TestIncompleteSnapshotIsIgnored(t *testing.T) {
	cursors := follow(t, []string{away, "snapshot b c x", "connected"},
		stream{[]*musterv1.FollowChangesResponse{heartbeat(), begin(), run("a")}, cut},
		stream{[]*musterv1.FollowChangesResponse{heartbeat(), begin(), run("b"), run("c"), revoked("x"), end(5)}, nil})
	if !slices.Equal(cursors, []int64{-1, -1}) {
		t.Errorf("asked from %v", cursors)
	}
}

func TestBrokenFeedIsResumed(t *testing.T) {
	cursors := follow(t, []string{"snapshot a", "connected", "changed b", "deleted a", "revoked x", away,
		"connected", "changed c", "away: the aggregator ended the feed", "connected"},
		stream{[]*musterv1.FollowChangesResponse{begin(), run("a"), end(5), run("b", 6), deleted("a", 7), revoked("x", 8)}, cut},
		stream{[]*musterv1.FollowChangesResponse{heartbeat(), run("c", 9)}, io.EOF},
		stream{[]*musterv1.FollowChangesResponse{heartbeat()}, nil})
	if !slices.Equal(cursors, []int64{-1, 8, 9}) {
		t.Errorf("asked from %v", cursors)
	}
}

// The aggregator's state was replaced: its feed does not know this cursor.
func TestForeignCursorIsDropped(t *testing.T) {
	unknown := status.Error(codes.OutOfRange, "unknown")
	cursors := follow(t, []string{"snapshot a", "connected", away, "away: rpc error: code = OutOfRange desc = unknown",
		"snapshot b", "connected"},
		stream{[]*musterv1.FollowChangesResponse{begin(), run("a"), end(5)}, cut},
		stream{nil, unknown},
		stream{[]*musterv1.FollowChangesResponse{begin(), run("b"), end(1)}, nil})
	if !slices.Equal(cursors, []int64{-1, 5, -1}) {
		t.Errorf("asked from %v", cursors)
	}
}

// A feed sends a snapshot in spite of a cursor if the cursor is older than its history.
func TestLaterSnapshotReplacesEverything(t *testing.T) {
	follow(t, []string{"snapshot a", "connected", away, "connected", "snapshot b", "connected", "changed c"},
		stream{[]*musterv1.FollowChangesResponse{begin(), run("a"), end(5)}, cut},
		stream{[]*musterv1.FollowChangesResponse{begin(), run("b"), end(90), run("c", 91)}, nil})
}
