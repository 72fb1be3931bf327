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
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
)

const (
	// action is what nodes' policies admit of gateways.
	action = "rudder"

	// MaxNodes is how many one job may have.
	MaxNodes = 50_000

	beginTime  = time.Minute      // for a node that goes away just now to come back
	listTime   = 20 * time.Second // for the list of attached nodes
	listKept   = 5 * time.Second  // before it is asked for again
	cancelTime = 10 * time.Second
	submitTry  = 4
	pause      = 250 * time.Millisecond // before something is tried again
)

// Job is what some nodes are to run.
type Job struct {
	// Nodes by name: 1 to MaxNodes.
	Nodes []string
	// Classes are handed to what the nodes' own policies have for this: the gateway names no program.
	Classes []string
	// Discard: what it prints is not kept anywhere.
	Discard bool
	// TimeLimit is how long each node may take.
	TimeLimit time.Duration
}

// Runner reaches nodes that are attached to relays. Safe for concurrent use.
type Runner struct {
	fleet    string
	signer   *Signer
	jobs     musterv1.JobServiceClient
	attached musterv1.AttachServiceClient
	log      *slog.Logger

	mu    sync.Mutex // held while the list is asked for, too: one asks for all
	list  map[string]bool
	asked time.Time
	away  bool // the last answer was an error
}

// NewRunner makes one. The connections name nobody but the gateway itself.
func NewRunner(fleet string, aggregator, relay grpc.ClientConnInterface, log *slog.Logger) *Runner {
	return &Runner{
		fleet: fleet, signer: NewSigner(musterv1.NewIdentityServiceClient(aggregator)), jobs: musterv1.NewJobServiceClient(relay),
		attached: musterv1.NewAttachServiceClient(relay), log: log,
	}
}

// Attached gives the names of the nodes that are attached, a few seconds old at most. If the relay cannot be asked
// it is the list as it was last, which may be none.
func (r *Runner) Attached(ctx context.Context) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) < listKept {
		return r.list
	}
	fresh, err := r.ask(ctx)
	if err != nil && !r.away {
		r.log.Warn("the relay does not say which nodes are attached", "error", muster.AsError(err), "known", len(r.list))
	}
	r.asked, r.away = time.Now(), err != nil
	if err == nil {
		r.list = fresh
	}
	return r.list
}

// ask gives the list as it is now.
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

// Run gives each record of a job, in order, to `take`, until the last; `take` says false to stop. When the context
// ends, or nobody takes more, the job is cancelled. The error says why the records are not all there.
func (r *Runner) Run(ctx context.Context, job Job, take func(*musterv1.JobRecord) bool) error {
	id, err := r.submit(ctx, job)
	if err != nil {
		return err
	}
	err = r.watch(ctx, id, take)
	if err == nil {
		return nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	if _, fault := r.jobs.CancelJob(ending, &musterv1.CancelJobRequest{Job: id}); fault != nil {
		r.log.Warn("a job that nobody waits for is not cancelled", "job", id, "error", muster.AsError(fault))
	}
	return err
}

// submit signs a job and hands it in. The same bytes may be handed in again: they run once.
func (r *Runner) submit(ctx context.Context, job Job) (string, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	now := time.Now()
	id := hex.EncodeToString(random[:16])
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
	for try := 1; ; try++ {
		_, err := r.jobs.SubmitJob(ctx, request)
		if err == nil {
			return id, nil
		}
		if fault := muster.AsError(err); try == submitTry || !fault.Retryable() || !wait(ctx) {
			return "", fmt.Errorf("the relay did not take the job: %w", fault)
		}
	}
}

// errStopped is the end of a watch that nobody follows.
var errStopped = errors.New("nobody takes more")

// watch follows a job to its end, over as many connections as it takes.
func (r *Runner) watch(ctx context.Context, id string, take func(*musterv1.JobRecord) bool) error {
	position := int64(0)
	for {
		err := r.follow(ctx, id, &position, take)
		if err == nil || errors.Is(err, errStopped) {
			return err
		}
		fault := muster.AsError(err)
		if !fault.Retryable() && ctx.Err() == nil {
			return fmt.Errorf("what came of the job is not known: %w", fault)
		}
		if !wait(ctx) {
			return context.Cause(ctx)
		}
	}
}

// follow watches by one stream, from a position on, which it moves.
func (r *Runner) follow(ctx context.Context, id string, position *int64, take func(*musterv1.JobRecord) bool) error {
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
			if !take(record) {
				return errStopped
			}
		}
		*position = max(*position, answer.Position)
	}
}

// wait pauses; false: the context is over.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
