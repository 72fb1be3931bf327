package rudder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster.example/gateway/command"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// streamed is the state of a node that runs over its stream.
type streamed struct {
	id    string
	begun bool
	since time.Time
	out   splitter
	errs  firstBytes
	to    sink
}

// runStreams runs a job on attached nodes, as their policies define for remote runs; `ids` are keyed by the names under
// which they are attached.
func (s *Server) runStreams(ctx context.Context, run *remoteRun, ids map[string]string, to sink) {
	names := slices.Sorted(maps.Keys(ids))
	var working sync.WaitGroup
	for part := range slices.Chunk(names, command.MaxNodes) {
		working.Go(func() {
			nodes := map[string]*streamed{}
			for _, name := range part {
				id := ids[name]
				nodes[name] = &streamed{id: id, since: time.Now(), to: to,
					out: splitter{emit: func(lines []byte) bool { return to.lines(id, lines) }}}
			}
			err := s.streams.Run(ctx, command.Job{Nodes: part, Classes: run.conditions,
				Discard: run.async && !run.keep, TimeLimit: s.config.RemoteRunTime},
				func(r *musterv1.JobRecord) bool { return handleRecord(nodes, r) })
			s.endStreams(ctx, nodes, err)
		})
	}
	working.Wait()
}

// endStreams ends all nodes without an end.
func (s *Server) endStreams(ctx context.Context, nodes map[string]*streamed, err error) {
	fault := "the relay reported no end"
	if err != nil {
		s.log.Warn("remote run: the records of attached nodes ended early", "nodes", len(nodes), "error", err)
		fault = err.Error()
	}
	if ctx.Err() != nil {
		fault = context.Cause(ctx).Error()
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		nodes[name].end(ending{fault: fault})
	}
}

// handleRecord forwards a record of a node; an ended node is removed.
func handleRecord(nodes map[string]*streamed, r *musterv1.JobRecord) bool {
	node := nodes[r.Node]
	if node == nil {
		return true // of a branch, or unknown
	}
	switch what := r.Record.(type) {
	case *musterv1.JobRecord_Started_:
		return node.start()
	case *musterv1.JobRecord_Output_:
		if what.Output.Stream == musterv1.JobStream_JOB_STREAM_STDERR {
			_, _ = node.errs.Write(what.Output.Data)
			return true
		}
		return node.start() && node.out.write(what.Output.Data)
	case *musterv1.JobRecord_Cut_:
		return node.start() && node.out.flush() && node.out.write(fmt.Appendf(nil, "[%d bytes omitted]\n", what.Cut.Bytes))
	case *musterv1.JobRecord_Final_:
		delete(nodes, r.Node)
		return node.end(endingOf(what.Final))
	}
	return true
}

func (n *streamed) start() bool {
	if n.begun {
		return true
	}
	n.begun = true
	return n.to.start(n.id)
}

func (n *streamed) end(e ending) bool {
	e.stderr = n.errs.bytes()
	if e.took == 0 {
		e.took = time.Since(n.since)
	}
	return n.start() && n.out.flush() && n.to.end(n.id, e)
}

// endingOf converts the final record of a job on a node.
func endingOf(final *musterv1.JobRecord_Final) ending {
	e := ending{took: final.Duration.AsDuration()}
	if final.Outcome == musterv1.JobOutcome_JOB_OUTCOME_EXITED && final.Signal == 0 {
		code := int(final.ExitCode)
		e.code = &code
		return e
	}
	if final.Outcome == musterv1.JobOutcome_JOB_OUTCOME_EXITED {
		e.fault = "ended by signal " + strconv.Itoa(int(final.Signal))
		return e
	}
	e.fault = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(final.Outcome.String(), "JOB_OUTCOME_"), "_", " "))
	for _, more := range []string{final.Reason, final.Detail} {
		if more != "" {
			e.fault += ": " + more
		}
	}
	return e
}
