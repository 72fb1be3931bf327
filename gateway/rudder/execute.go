package rudder

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster.example/gateway/limits"
)

// Reasons for which a remote run is ended.
var (
	errTooLong = errors.New("it took longer than the limit of remote runs (rudder.remote_run_time)")
	errLeft    = errors.New("the client disconnected")
	errStops   = errors.New("the gateway is stopping")
)

// remoteRun is one request.
type remoteRun struct {
	all, async, keep bool
	extended         bool
	nodes            []string
	conditions       []string
	came             http.Header
}

// detached reports whether the run continues without its client.
func (r *remoteRun) detached() bool { return r.extended && r.async }

// sink returns a sink that writes the run's output to a function, in its dialect.
func (r *remoteRun) sink(emit func([]byte) bool) sink {
	if r.extended {
		return &labelled{r.keep, emit}
	}
	return plain(emit)
}

// start waits for its turn and runs; the status is 200 whatever the outcome.
func (s *Server) start(w http.ResponseWriter, r *http.Request, run *remoteRun) {
	ctx, cancel := context.WithTimeout(r.Context(), limits.RunWait)
	defer cancel()
	select {
	case s.runs <- struct{}{}:
	case <-ctx.Done():
		answer(w, http.StatusServiceUnavailable, "too many simultaneous remote runs (rudder.remote_runs): try again later")
		return
	case <-s.living.Done():
	}
	if s.living.Err() != nil {
		answer(w, http.StatusServiceUnavailable, "the gateway is stopping: try again later")
		return
	}
	timed, stop := context.WithTimeoutCause(s.living, s.config.RemoteRunTime, errTooLong)
	work, end := context.WithCancelCause(timed)
	s.working.Add(1)
	done := func() {
		end(nil)
		stop()
		<-s.runs
		s.working.Done()
	}
	nowhere := run.sink(func([]byte) bool { return true })
	w.Header()["Content-Type"] = nil
	if run.async && !run.keep {
		w.WriteHeader(http.StatusOK)
		go func() {
			defer done()
			s.execute(work, run, nowhere, nowhere, func() {})
		}()
		return
	}
	defer done()
	leave := func() { end(errLeft) }
	if !run.detached() {
		defer context.AfterFunc(r.Context(), leave)() // a client that disconnects ends its run
	}
	if !run.keep && !run.extended {
		s.execute(work, run, nowhere, nowhere, func() {})
		w.WriteHeader(http.StatusOK)
		return
	}
	s.stream(w, work, leave, run)
}

// stream sends the output as it arrives, from all sources concurrently. Only a synchronous run of the strict dialect
// sends the output of the local command before that of other relays.
func (s *Server) stream(w http.ResponseWriter, work context.Context, leave func(), run *remoteRun) {
	first, rest := make(chan []byte, limits.LinesAhead), make(chan []byte, limits.LinesAhead)
	into := func(queue chan []byte) sink {
		return run.sink(func(lines []byte) bool {
			queue <- lines // it is drained to the end, even without a reader
			return work.Err() == nil
		})
	}
	queues := []chan []byte{first, rest}
	here, elsewhere := into(first), into(rest)
	if run.async || run.extended {
		queues, here = queues[1:], elsewhere
	}
	complete := make(chan bool, 1)
	go func() {
		defer close(rest)
		complete <- s.execute(work, run, here, elsewhere, func() { close(first) })
	}()
	out := &flushing{w: w, client: http.NewResponseController(w), silence: s.config.ClientSilence}
	w.WriteHeader(http.StatusOK)
	_ = out.client.Flush()
	for _, queue := range queues {
		for lines := range queue {
			if !out.write(lines) && !run.detached() {
				leave()
			}
		}
	}
	if !<-complete {
		panic(http.ErrAbortHandler) // an aborted answer does not look complete
	}
}

// flushing writes to a client immediately, until the first failure.
type flushing struct {
	w       http.ResponseWriter
	client  *http.ResponseController
	silence time.Duration // after which a client that reads nothing is disconnected
	broken  bool
}

func (f *flushing) write(lines []byte) bool {
	if f.broken {
		return false
	}
	_ = f.client.SetWriteDeadline(time.Now().Add(f.silence))
	_, err := f.w.Write(lines)
	f.broken = err != nil || f.client.Flush() != nil
	return !f.broken
}

// plan says how each node of a run is reached.
type plan struct {
	here     []string          // by the command
	attached map[string]string // over their streams: ids by the names under which they are attached
	branches map[string]branch // by child relays
	lost     []string          // unreachable
}

// branch is the part of a run for a child relay.
type branch struct {
	all bool     // all nodes of the branch
	ids []string // or only these
}

func (s *Server) plan(ctx context.Context, known *state, run *remoteRun) *plan {
	ids := run.nodes
	if run.all {
		ids = known.ids()
	}
	p := &plan{branches: map[string]branch{}}
	here, branches, lost := known.split(ids)
	p.lost = lost
	var attached map[string]bool
	if s.streams != nil && len(here)+len(branches) > 0 {
		attached = s.streams.Attached(ctx)
	}
	p.attached = map[string]string{}
	p.here = p.splitAttached(known, here, attached)
	for relay, ids := range branches {
		if left := p.splitAttached(known, ids, attached); len(left) > 0 {
			p.branches[relay] = branch{run.all && len(left) == len(ids), left}
		}
	}
	return p
}

// splitAttached records which nodes are attached, by id or host name, and returns the others.
func (p *plan) splitAttached(known *state, ids []string, attached map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		for _, name := range []string{id, known.nodes[id].Hostname} {
			if _, taken := p.attached[name]; attached[name] && !taken {
				p.attached[name] = id
				return true
			}
		}
		return false
	})
}

// execute runs on all nodes concurrently, and waits for all; it calls `over` when the local command has ended. It
// returns false only if that cannot be started in the strict dialect, which cannot report it otherwise.
func (s *Server) execute(ctx context.Context, run *remoteRun, here, elsewhere sink, over func()) bool {
	known := s.state.Load()
	p := s.plan(ctx, known, run)
	s.reportUnreachable(known, p.lost, run, here)
	var working sync.WaitGroup
	for relay, b := range p.branches {
		working.Go(func() {
			if run.extended {
				s.labelledBranch(ctx, known, relay, b, run, elsewhere)
			} else if err := s.plainBranch(ctx, known, relay, b, run, elsewhere); err != nil {
				s.log.Warn("remote run: the branch failed", "relay", relay, "error", err)
			}
		})
	}
	if len(p.attached) > 0 {
		working.Go(func() { s.runStreams(ctx, run, p.attached, elsewhere) })
	}
	whole := true
	if run.extended {
		s.eachNode(ctx, known, run, p.here, here)
	} else {
		err := trigger(ctx, s.config.RemoteRunCommand, run.conditions, known.hostnames(p.here), os.Stderr,
			func(lines []byte) bool { return here.lines("", lines) })
		if err != nil {
			s.log.Warn("remote run: the command failed", "error", err)
		}
		whole = !errors.Is(err, errSpawn)
	}
	over()
	working.Wait()
	return whole
}

// reportUnreachable reports which nodes are unreachable, and why.
func (s *Server) reportUnreachable(known *state, ids []string, run *remoteRun, to sink) {
	if len(ids) == 0 {
		return
	}
	s.log.Info("remote run: unreachable nodes are omitted", "nodes", strings.Join(ids[:min(len(ids), 20)], ","),
		"count", len(ids))
	for _, id := range ids {
		if !known.knows(id) {
			to.unknown(id)
			continue
		}
		to.start(id)
		to.end(id, ending{fault: "the nodes list has no route from this relay to the node: one of its policy servers is missing, or there is a loop"})
	}
}

// eachNode runs one command for each node, several concurrently, so that each has its own outcome.
func (s *Server) eachNode(ctx context.Context, known *state, run *remoteRun, ids []string, to sink) {
	queue := make(chan string)
	var working sync.WaitGroup
	for range min(len(ids), s.config.RemoteRunCommands) {
		working.Go(func() {
			for id := range queue {
				s.oneNode(ctx, known, run, id, to)
			}
		})
	}
	for _, id := range ids {
		queue <- id
	}
	close(queue)
	working.Wait()
}

func (s *Server) oneNode(ctx context.Context, known *state, run *remoteRun, id string, to sink) {
	to.start(id)
	begun, errs := time.Now(), &firstBytes{}
	err := context.Cause(ctx)
	if err == nil {
		err = trigger(ctx, s.config.RemoteRunCommand, run.conditions, known.hostnames([]string{id}), errs,
			func(lines []byte) bool { return to.lines(id, lines) })
	}
	e := ending{took: time.Since(begun), stderr: errs.bytes()}
	e.code, e.fault = exitOf(ctx, err)
	to.end(id, e)
}

// exitOf returns the exit code of a command, or why it has none.
func exitOf(ctx context.Context, err error) (code *int, fault string) {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return new(int), ""
	case ctx.Err() != nil:
		return nil, context.Cause(ctx).Error()
	case errors.As(err, &exit) && exit.Exited():
		ended := exit.ExitCode()
		return &ended, ""
	case errors.As(err, &exit):
		if status, isUnix := exit.Sys().(syscall.WaitStatus); isUnix {
			return nil, "ended by signal " + status.Signal().String()
		}
	}
	return nil, err.Error()
}
