package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
)

// MaxNodes bounds the nodes of one job.
var MaxNodes = limits.JobNodes

const (
	// action is the action that policies of nodes admit for gateways.
	action = "rudder"

	beginTime  = time.Minute      // for a node that has just disconnected to return
	listTime   = 20 * time.Second // for the list of attached nodes
	listTTL    = 5 * time.Second  // before it is requested again
	cancelTime = 10 * time.Second
	submitTime = 5 * time.Second // for a submission in progress, after its context has ended
	submitTry  = 4
	pause      = 250 * time.Millisecond // before a retry
)

// Job is a command for some nodes.
type Job struct {
	// Nodes are names: 1 to MaxNodes.
	Nodes []string
	// Classes are passed to the program that the node's policy names for this: the gateway names no program.
	Classes []string
	// Discard: the output is not stored anywhere.
	Discard bool
	// TimeLimit bounds the run time on each node.
	TimeLimit time.Duration
}

// Runner runs jobs on nodes that are attached to relays. Safe for concurrent use.
type Runner struct {
	fleet    string
	signer   *Signer
	jobs     musterv1.JobServiceClient
	attached musterv1.AttachServiceClient
	log      *slog.Logger

	mu          sync.Mutex
	list        map[string]bool
	asked       time.Time
	unreachable bool          // the last request failed
	asking      bool          // a request is in progress
	answered    chan struct{} // closed at the end of the last request
}

// NewRunner creates a runner. Calls over the connections are made with the identity of the gateway itself.
func NewRunner(fleet string, aggregator, relay grpc.ClientConnInterface, log *slog.Logger) *Runner {
	return &Runner{
		fleet: fleet, signer: NewSigner(musterv1.NewIdentityServiceClient(aggregator)), jobs: musterv1.NewJobServiceClient(relay),
		attached: musterv1.NewAttachServiceClient(relay), log: log,
	}
}

// Attached returns the names of the attached nodes, at most a few seconds old. If the relay is unreachable or the context
// ends, it returns the last known list, which may be empty.
func (r *Runner) Attached(ctx context.Context) map[string]bool {
	select {
	case <-r.current(ctx):
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list
}

// current returns a channel that is closed when the list is current. One request serves all callers, so it does not end
// with the context of the first.
func (r *Runner) current(ctx context.Context) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asking && time.Since(r.asked) >= listTTL {
		r.asking, r.answered = true, make(chan struct{})
		go r.refresh(context.WithoutCancel(ctx), r.answered)
	}
	return r.answered
}

// refresh requests the list, and then closes the channel.
func (r *Runner) refresh(ctx context.Context, answered chan struct{}) {
	fresh, err := r.ask(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && !r.unreachable {
		r.log.Warn("cannot list attached nodes", "error", muster.AsError(err), "known", len(r.list))
	}
	r.asking, r.asked, r.unreachable = false, time.Now(), err != nil
	if err == nil {
		r.list = fresh
	}
	close(answered)
}

// ask requests the current list.
func (r *Runner) ask(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	fresh := map[string]bool{}
	for request := (&musterv1.ListAttachedRequest{AttachedOnly: true}); ; {
		page, err := r.attached.ListAttached(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, child := range page.Children {
			if child.Attached && !child.IsRelay {
				fresh[child.Name] = true
			}
		}
		if request.PageToken = page.NextPageToken; request.PageToken == "" {
			return fresh, nil
		}
	}
}

// Run passes each record of a job in order to `handle`, up to the last; `handle` returns false to stop. The job is
// cancelled when the context ends or `handle` stops. The error states why records are missing.
func (r *Runner) Run(ctx context.Context, job Job, handle func(*musterv1.JobRecord) bool) error {
	id, err := r.submit(ctx, job)
	if err == nil {
		err = r.watch(ctx, id, handle)
	}
	if err == nil || id == "" {
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	_, fault := r.jobs.CancelJob(ending, &musterv1.CancelJobRequest{Job: id})
	if fault != nil && status.Code(fault) != codes.NotFound {
		r.log.Warn("cannot cancel a job", "job", id, "error", muster.AsError(fault))
	}
	return err
}

// submit signs and submits a job, and returns its id: also with an error if the relay may have accepted the job. A
// repeated submission of the same bytes runs once. A submission in progress does not end with the context: the relay
// could receive it after the cancellation of the job.
func (r *Runner) submit(ctx context.Context, job Job) (id string, err error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	now := time.Now()
	id = hex.EncodeToString(random[:16])
	signed, err := r.signer.Sign(ctx, &musterv1.Command{
		Fleet: r.fleet, Job: id, Targets: Targets(job.Nodes), Action: action, Classes: job.Classes,
		NotBefore: timestamppb.New(now), NotAfter: timestamppb.New(now.Add(beginTime)), TimeLimit: durationpb.New(job.TimeLimit),
		DiscardOutput: job.Discard, Nonce: random[16:],
	})
	if err != nil {
		return "", err
	}
	nodes := slices.Clone(job.Nodes)
	slices.Sort(nodes)
	request := &musterv1.SubmitJobRequest{Command: signed, Nodes: slices.Compact(nodes)}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	sending, cancel := outlive(ctx, submitTime)
	defer cancel()
	for try := 1; ; try++ {
		if _, err = r.jobs.SubmitJob(sending, request); err == nil {
			return id, nil
		}
		fault := muster.AsError(err)
		err = fmt.Errorf("the relay did not accept the job: %w", fault)
		if !fault.Retryable() && try == 1 {
			return "", err
		}
		if !fault.Retryable() || try == submitTry || !wait(ctx) {
			return id, err // the answer to an accepted submission may be lost: of this try or an earlier one
		}
	}
}

// outlive returns a context that ends some time after another one.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(by):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// errStopped ends a watch whose caller stopped.
var errStopped = errors.New("the caller stopped the watch")

// watch follows a job to its end, and reconnects as often as necessary.
func (r *Runner) watch(ctx context.Context, id string, handle func(*musterv1.JobRecord) bool) error {
	position := int64(0)
	for {
		err := r.follow(ctx, id, &position, handle)
		if err == nil || errors.Is(err, errStopped) {
			return err
		}
		fault := muster.AsError(err)
		if !fault.Retryable() && ctx.Err() == nil {
			return fmt.Errorf("the outcome of the job is unknown: %w", fault)
		}
		if !wait(ctx) {
			return context.Cause(ctx)
		}
	}
}

// follow watches over one stream from a position, and advances it.
func (r *Runner) follow(ctx context.Context, id string, position *int64, handle func(*musterv1.JobRecord) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.jobs.WatchJob(ctx, &musterv1.WatchJobRequest{Job: id, Position: *position})
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, record := range answer.Records {
			if !handle(record) {
				return errStopped
			}
		}
		*position = max(*position, answer.Position)
	}
}

// wait pauses; it returns false if the context has ended.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
