package mustertest

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
	"muster.example/services/client/go/reasons"
)

// shownRun is a run of the status service.
type shownRun struct {
	status  *musterv1.RunStatus // with all pairs
	version int64
}

// SetStatus sets the status of a run; `status` has all its pairs. The last one set is the newest run.
func (a *Aggregator) SetStatus(status *musterv1.RunStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.statuses[status.Run] = &shownRun{proto.CloneOf(status), a.version}
	a.newest = status.Run
	a.changed.Broadcast()
}

// Asked returns how often GetStatus was called.
func (a *Aggregator) Asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// Watchers returns the number of active watches.
func (a *Aggregator) Watchers() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watchers
}

// findStatus returns a run that the caller may see. The lock is held.
func (a *Aggregator) findStatus(ctx context.Context, run string) (*shownRun, error) {
	if run == "" {
		run = a.newest
	}
	incoming, _ := metadata.FromIncomingContext(ctx)
	for _, uri := range incoming.Get("muster-forwarded-identity") {
		id, err := peer.Parse(uri)
		if err != nil || id.Kind != peer.User && (id.Kind != peer.Viewer || id.Run != run) {
			return nil, fault(codes.PermissionDenied, reasons.NotYours, uri+" may not see run "+run).Err()
		}
	}
	shown := a.statuses[run]
	if shown == nil {
		return nil, fault(codes.NotFound, reasons.RunNotFound, "no run "+run).Err()
	}
	return shown, nil
}

// GetStatus implements the API.
func (a *Aggregator) GetStatus(ctx context.Context, r *musterv1.GetStatusRequest) (*musterv1.RunStatus, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	a.asked++
	shown, err := a.findStatus(ctx, r.Run)
	if err != nil {
		return nil, err
	}
	var fitting []*musterv1.PairStatus
	for _, pair := range shown.status.Pairs {
		if (r.Plugin == "" || pair.Plugin == r.Plugin) && (len(r.Reasons) == 0 || slices.Contains(r.Reasons, pair.Reason)) &&
			(r.Outcome == musterv1.Outcome_OUTCOME_UNSPECIFIED || pair.Outcome == r.Outcome) {
			fitting = append(fitting, pair)
		}
	}
	answer := proto.CloneOf(shown.status)
	from, _ := strconv.Atoi(r.PageToken)
	size := int(r.PageSize)
	if a.PageSize > 0 {
		size = min(size, a.PageSize)
	}
	to := min(from+size, len(fitting))
	answer.Pairs = fitting[from:to]
	if size > 0 && to < len(fitting) {
		answer.NextPageToken = strconv.Itoa(to)
	}
	return answer, nil
}

// OnWatch sets a function that is called with the caller before the first message of each watch.
func (a *Aggregator) OnWatch(call func(caller string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onWatch = call
}

// sendPairs sends all messages of a snapshot except the last. The lock is not held.
func sendPairs(pairs []*musterv1.PairStatus, stream grpc.ServerStreamingServer[musterv1.WatchStatusResponse]) error {
	const most = 2000 // of a message, as the service
	for first := 0; first < len(pairs); first += most {
		message := &musterv1.WatchStatusResponse{Reset_: first == 0, Pairs: pairs[first:min(first+most, len(pairs))]}
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	return nil
}

// WatchStatus implements the API: it reports each change, without pairs after the snapshot.
func (a *Aggregator) WatchStatus(r *musterv1.WatchStatusRequest, stream grpc.ServerStreamingServer[musterv1.WatchStatusResponse]) error {
	stop := context.AfterFunc(stream.Context(), a.changed.Broadcast)
	defer stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers++
	defer func() { a.watchers-- }()
	if begin := a.onWatch; begin != nil {
		incoming, _ := metadata.FromIncomingContext(stream.Context())
		a.mu.Unlock()
		begin(strings.Join(incoming.Get("muster-forwarded-identity"), " "))
		a.mu.Lock()
	}
	for sentVersion := int64(0); stream.Context().Err() == nil; {
		shown, err := a.findStatus(stream.Context(), r.Run)
		if err != nil {
			return err
		}
		if shown.version == sentVersion {
			a.changed.Wait()
			continue
		}
		cursor := strconv.FormatInt(shown.version, 10)
		message := &musterv1.WatchStatusResponse{Cursor: cursor, Reset_: sentVersion == 0, Status: &musterv1.RunStatus{State: shown.status.State}}
		pairs := shown.status.Pairs
		if r.OmitPairs || sentVersion > 0 {
			pairs = nil
		}
		message.Reset_ = message.Reset_ && len(pairs) == 0
		sentVersion = shown.version
		a.mu.Unlock()
		if err = sendPairs(pairs, stream); err == nil {
			err = stream.Send(message)
		}
		a.mu.Lock()
		if err != nil || message.Status.State >= musterv1.RunState_RUN_STATE_COMPLETE {
			return err
		}
	}
	return stream.Context().Err()
}

// SendHeartbeat implements the API.
func (a *Aggregator) SendHeartbeat(ctx context.Context, r *musterv1.SendHeartbeatRequest) (*musterv1.SendHeartbeatResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	if err := a.admit(keyOf(r.Key)); err != nil {
		return nil, err
	}
	return &musterv1.SendHeartbeatResponse{Interval: durationpb.New(a.Interval)}, nil
}

// statusListener is the given configuration of a run's status listener, and what the gateway reported.
type statusListener struct {
	given *musterv1.GetStatusListenerResponse
	port  int32
}

// AddStatusListener gives a run its own status listener, and adds a change to the feed.
func (a *Aggregator) AddStatusListener(run string, given *musterv1.GetStatusListenerResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.runs[run]
	state.status = &statusListener{given: given}
	state.proto = proto.CloneOf(state.proto)
	state.proto.StatusListener = &musterv1.StatusListener{}
	a.addEvent(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Run{Run: state.proto}})
}

// RemoveStatusListener removes a run's own status listener; the feed has no change.
func (a *Aggregator) RemoveStatusListener(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs[run].status = nil
}

// StatusPort returns the port of a run's own status listener; 0 before it is open.
func (a *Aggregator) StatusPort(run string) int32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runs[run].status.port
}

// StatusFaults returns the faults of status listeners that the gateway could not open.
func (a *Aggregator) StatusFaults() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.statusFaults)
}

// GetStatusListener implements the API.
func (a *Aggregator) GetStatusListener(_ context.Context, r *musterv1.GetStatusListenerRequest) (*musterv1.GetStatusListenerResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.runs[r.Run]
	if state == nil || state.status == nil {
		return nil, fault(codes.NotFound, reasons.NoStatusListener, "none").Err()
	}
	given := proto.CloneOf(state.status.given)
	given.Port = state.status.port
	return given, nil
}

// ReportStatusListener implements the API.
func (a *Aggregator) ReportStatusListener(_ context.Context, r *musterv1.ReportStatusListenerRequest) (*musterv1.Run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.runs[r.Run]
	if !r.Open {
		a.statusFaults = append(a.statusFaults, r.Fault)
		return state.proto, nil
	}
	if state.status.port != 0 && state.status.port != r.Port {
		return nil, fault(codes.FailedPrecondition, reasons.PortIsFixed, "another port").Err()
	}
	state.status.port = r.Port
	return state.proto, nil
}
