package mustertest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
)

// Relay is an in-memory root relay, as far as the gateway uses it: nodes are functions of the test. It keeps
// its address when it is restarted.
type Relay struct {
	musterv1.UnimplementedJobServiceServer
	musterv1.UnimplementedAttachServiceServer
	musterv1.UnimplementedShareServiceServer

	fleet   *Fleet
	t       testing.TB
	addr    string
	stop    func()
	mu      sync.Mutex
	changed *sync.Cond
	nodes   map[string]Node
	jobs    map[string]*relayJob
	shares  []*musterv1.Share
	callers []string
	breaks  int // of watches, before the next record
}

// Node runs a command; emit sets job, node and sequence of a record. It returns the outcome.
type Node func(ctx context.Context, command *musterv1.Command, emit func(*musterv1.JobRecord)) *musterv1.JobRecord_Final

// relayJob is a job with its records.
type relayJob struct {
	signed  *musterv1.SignedCommand
	command *musterv1.Command
	nodes   []string
	records []*musterv1.JobRecord
	waiting int
	cancel  context.CancelFunc
	state   musterv1.JobState
}

// NewRelay creates a relay that is not started.
func NewRelay(t testing.TB, fleet *Fleet) *Relay {
	r := &Relay{fleet: fleet, t: t, addr: ReserveAddress(t), nodes: map[string]Node{}, jobs: map[string]*relayJob{}}
	r.changed = sync.NewCond(&r.mu)
	t.Cleanup(r.Stop)
	return r
}

// Start starts the server, and returns the address.
func (r *Relay) Start() string {
	listener, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{r.fleet.Service("relay", "root")},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: r.fleet.Root.Pool(),
	})))
	musterv1.RegisterJobServiceServer(server, r)
	musterv1.RegisterAttachServiceServer(server, r)
	musterv1.RegisterShareServiceServer(server, r)
	served := make(chan struct{})
	go func() {
		_ = server.Serve(listener)
		close(served)
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = func() {
		server.Stop()
		<-served
	}
	return listener.Addr().String()
}

// Stop ends everything immediately; jobs continue.
func (r *Relay) Stop() {
	r.mu.Lock()
	stop := r.stop
	r.stop = nil
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// AddNode attaches a node; nil detaches it.
func (r *Relay) AddNode(name string, node Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nodes, name)
	if node != nil {
		r.nodes[name] = node
	}
}

// BreakWatch ends the next watch of a job before its next record.
func (r *Relay) BreakWatch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.breaks++
}

// Callers returns the forwarded identities of all calls; "[]" is a call without one.
func (r *Relay) Callers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.callers)
}

// Signed returns the submitted commands.
func (r *Relay) Signed() (all []*musterv1.SignedCommand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, job := range r.jobs {
		all = append(all, job.signed)
	}
	return all
}

// recordCall records the caller. The lock is held.
func (r *Relay) recordCall(ctx context.Context) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	r.callers = append(r.callers, fmt.Sprint(incoming.Get("muster-forwarded-identity")))
}

// ListAttached implements the API, with pages of two.
func (r *Relay) ListAttached(ctx context.Context, request *musterv1.ListAttachedRequest) (*musterv1.ListAttachedResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordCall(ctx)
	var names []string
	for name := range r.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	answer := &musterv1.ListAttachedResponse{}
	for _, name := range names {
		if name <= request.PageToken {
			continue
		}
		if len(answer.Children) == 2 {
			answer.NextPageToken = answer.Children[1].Name
			break
		}
		answer.Children = append(answer.Children, &musterv1.ListAttachedResponse_Child{Name: name, Relay: "root", Attached: true})
	}
	return answer, nil
}

// SubmitJob implements the API; the test checks the signature.
func (r *Relay) SubmitJob(ctx context.Context, request *musterv1.SubmitJobRequest) (*musterv1.Job, error) {
	command := &musterv1.Command{}
	if err := proto.Unmarshal(request.Command.GetCommand(), command); err != nil || len(command.Job) != 32 {
		return nil, fault(codes.InvalidArgument, reasons.InvalidCommand, "no command").Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordCall(ctx)
	if r.jobs[command.Job] != nil {
		return r.describe(r.jobs[command.Job]), nil
	}
	running, cancel := context.WithTimeout(context.Background(), command.TimeLimit.AsDuration())
	job := &relayJob{signed: request.Command, command: command, nodes: request.Nodes, waiting: len(request.Nodes),
		cancel: cancel, state: musterv1.JobState_JOB_STATE_RUNNING}
	r.jobs[command.Job] = job
	for _, name := range request.Nodes {
		node := r.nodes[name]
		if node == nil {
			node = func(context.Context, *musterv1.Command, func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
				return &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_UNREACHABLE, Detail: "the node is disconnected"}
			}
		}
		go r.run(running, job, name, node)
	}
	return r.describe(job), nil
}

// run runs the command on a node.
func (r *Relay) run(ctx context.Context, job *relayJob, name string, node Node) {
	sequence := int64(0)
	add := func(record *musterv1.JobRecord) {
		sequence++
		record.Job, record.Node, record.Sequence = job.command.Job, name, sequence
		r.mu.Lock()
		defer r.mu.Unlock()
		job.records = append(job.records, record)
		r.changed.Broadcast()
	}
	add(&musterv1.JobRecord{Record: &musterv1.JobRecord_Started_{Started: &musterv1.JobRecord_Started{}}})
	started := time.Now()
	final := node(ctx, job.command, add)
	final.Duration = durationpb.New(time.Since(started))
	add(&musterv1.JobRecord{Record: &musterv1.JobRecord_Final_{Final: final}})
	r.mu.Lock()
	defer r.mu.Unlock()
	if job.waiting--; job.waiting == 0 && job.state == musterv1.JobState_JOB_STATE_RUNNING {
		job.state = musterv1.JobState_JOB_STATE_ENDED
	}
	r.changed.Broadcast()
}

// describe returns a job. The lock is held.
func (r *Relay) describe(job *relayJob) *musterv1.Job {
	return &musterv1.Job{Job: job.command.Job, State: job.state, Action: job.command.Action, Argv: job.command.Argv,
		Classes: job.command.Classes, Targets: int64(len(job.nodes))}
}

func (r *Relay) find(id string) (*relayJob, error) {
	if job := r.jobs[id]; job != nil {
		return job, nil
	}
	return nil, fault(codes.NotFound, reasons.JobNotFound, "no job "+id).Err()
}

// GetJob implements the API.
func (r *Relay) GetJob(ctx context.Context, request *musterv1.GetJobRequest) (*musterv1.Job, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordCall(ctx)
	job, err := r.find(request.Job)
	if err != nil {
		return nil, err
	}
	return r.describe(job), nil
}

// ListJobs implements the API.
func (r *Relay) ListJobs(ctx context.Context, _ *musterv1.ListJobsRequest) (*musterv1.ListJobsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordCall(ctx)
	answer := &musterv1.ListJobsResponse{}
	for _, job := range r.jobs {
		answer.Jobs = append(answer.Jobs, r.describe(job))
	}
	slices.SortFunc(answer.Jobs, func(a, b *musterv1.Job) int { return strings.Compare(a.Job, b.Job) })
	return answer, nil
}

// CancelJob implements the API.
func (r *Relay) CancelJob(ctx context.Context, request *musterv1.CancelJobRequest) (*musterv1.Job, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordCall(ctx)
	job, err := r.find(request.Job)
	if err != nil {
		return nil, err
	}
	if job.waiting > 0 {
		job.state = musterv1.JobState_JOB_STATE_CANCELLED
	}
	job.cancel()
	return r.describe(job), nil
}

// WatchJob implements the API, one record at a time.
func (r *Relay) WatchJob(request *musterv1.WatchJobRequest, stream grpc.ServerStreamingServer[musterv1.WatchJobResponse]) error {
	stop := context.AfterFunc(stream.Context(), func() {
		r.mu.Lock() // not between the check of the context and the wait
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	job, err := r.find(request.Job)
	if err != nil {
		return err
	}
	for next := request.Position; stream.Context().Err() == nil; {
		if next == int64(len(job.records)) {
			if job.waiting == 0 {
				return nil
			}
			r.changed.Wait()
			continue
		}
		if r.breaks > 0 {
			r.breaks--
			return fault(codes.Unavailable, "RESTARTED", "the relay is restarting").Err()
		}
		answer := &musterv1.WatchJobResponse{Records: job.records[next : next+1], Position: next + 1, Job: r.describe(job)}
		next++
		r.mu.Unlock()
		err := stream.Send(answer)
		r.mu.Lock()
		if err != nil {
			return err
		}
	}
	return stream.Context().Err()
}

// Job returns the state of a job.
func (r *Relay) Job(id string) (state musterv1.JobState, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	job := r.jobs[id]
	if job == nil {
		return 0, false
	}
	return job.state, true
}
