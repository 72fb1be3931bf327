package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// restFollower follows a job through the gateway, and resumes when the gateway restarts.
type restFollower struct {
	printed  strings.Builder // by n1
	sequence int64
	position int64
	problem  error
	done     chan struct{}
}

// followByREST ends when the job does.
func followByREST(t *testing.T, f *fleet.Fleet, job string) *restFollower {
	t.Helper()
	operator := must(f.Operator())(t)
	client := must(operator.HTTP())(t)
	r := &restFollower{done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), 2*crashSoon)
	t.Cleanup(cancel)
	go func() {
		defer close(r.done)
		// While the gateway is unreachable, the client retries periodically.
		for ended := false; !ended && r.problem == nil; time.Sleep(100 * time.Millisecond) {
			url := fmt.Sprintf("%s/api/v1/jobs/%s:watch?position=%d", operator.Gateway[0], job, r.position)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err == nil {
				ended, err = r.read(client, request)
			}
			if ctx.Err() != nil {
				r.problem = fmt.Errorf("%w; %w", ctx.Err(), err)
			}
		}
	}()
	return r
}

// read reads one answer to its end; true if the job has ended, too.
func (r *restFollower) read(client *http.Client, request *http.Request) (ended bool, err error) {
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the gateway answers %s", response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var line struct{ Result json.RawMessage }
		message := &musterv1.WatchJobResponse{}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Result == nil {
			return false, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if err := protojson.Unmarshal(line.Result, message); err != nil {
			return false, err
		}
		for _, record := range message.Records {
			r.add(record)
		}
		r.position = message.Position
		ended = message.Job.GetState() == musterv1.JobState_JOB_STATE_ENDED
	}
	return ended, lines.Err()
}

func (r *restFollower) add(record *musterv1.JobRecord) {
	if record.Node != "n1" || record.Sequence == 0 {
		return
	}
	if r.sequence++; record.Sequence != r.sequence {
		r.problem = fmt.Errorf("got record %d instead of %d", record.Sequence, r.sequence)
	}
	r.printed.Write(record.GetOutput().GetData())
}

// Every program on the route is killed, one after the other, while a job prints, a result is delivered and a file is
// sent to another node; a slow link keeps these transfers active.
func TestTransfersSurviveKillOfEachProgram(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	const rate = 1 << 20
	b := newBranch(t, func(_ *fleet.Fleet, l *fleet.Link) { l.Slow(0, rate) })
	p := b.print(t, "n1", "n2")
	byREST := followByREST(t, b.Fleet, p.id)
	byCommand := p.follow(t)
	c := b.collect(t, 16<<20)
	c.release(t)
	s := b.share(t, "report", 4<<20)

	supervised := func(name string, arguments ...string) func() {
		return func() { killUntilRestart(t, b.Fleet, name, arguments...) }
	}
	for _, victim := range []struct {
		name string
		kill func()
	}{
		{"the aggregator", supervised(fleet.Aggregator)},
		{"the status service", supervised(fleet.Status)},
		{"the gateway", supervised(fleet.Gateway)},
		{"the root relay", supervised(fleet.Relay, "--config", filepath.Join(b.Home, "config", "relay.yaml"))},
		{"r1", func() { b.r1.killAndStart(t) }},
		{"r2", func() { b.r2.killAndStart(t) }},
	} {
		t.Logf("%s is killed after %d bytes", victim.name, b.link.Passed(fleet.Up))
		victim.kill()
		b.awaitParent(t, "n1", "r2")
		p.awaitMore(t, "n1", "n2")
	}
	p.wantComplete(t, "n1", "n2")
	wantNumbered(t, <-byCommand, "n1", true)

	// The agent is killed with its commands, and reports that; the collection continues.
	lost := b.print(t, "n1", "n2")
	t.Logf("the agent is killed after %d bytes", b.link.Passed(fleet.Up))
	b.n1.agent.Kill()
	b.n1.attach(t)
	if final := awaitFinal(t, b.Fleet, lost.id, "n1"); final["outcome"] != "lost" || final["reason"] != "AGENT_DIED" {
		t.Errorf("the job of an agent that was killed ended as %v", final)
	}
	lost.wantComplete(t, "n2")
	wantNumbered(t, lost.logs(t, "n1"), "n1", false)

	c.wantComplete(t)
	s.wantDelivered(t)
	select {
	case <-byREST.done:
	case <-time.After(soon):
		t.Fatal("the end of the job was not received through the gateway")
	}
	if byREST.problem != nil {
		t.Errorf("through the gateway: %v", byREST.problem)
	}
	printed := "n1: " + strings.ReplaceAll(strings.TrimSuffix(byREST.printed.String(), "\n"), "\n", "\nn1: ") + "\n"
	wantNumbered(t, printed, "n1", true)
	wantNoBugs(t, b)
}

// A relay attaches to the root relay while the aggregator is unreachable: once the root relay has its connection, results
// pass again.
func TestRelayThatAttachesWithoutAggregatorDeliversLater(t *testing.T) {
	t.Parallel()
	f := up(t)
	_, address := localRelay(t, f, "r1", "")
	n1 := joinAt(t, f, "n1", address)
	check(t, os.WriteFile(filepath.Join(n1.folder(), "policy.yaml"), []byte(collectPolicy), 0o600))
	n1.agent.End()
	n1.attach(t)
	// A small result would be one call, which is always forwarded; this one is spooled without a connection.
	id := run(t, f, []string{execPlugin("work", "DaemonSet", `until [ -e "`+f.Home+`/go-n1" ]; do sleep 0.1; done
		head -c 3000000 /dev/urandom > "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`)}, "n1")
	awaitPair(t, f, id, "n1", "the plugin is running", func(pair fleet.ShownPair) bool { return pair.Reason == "running" })

	aggregator := must(f.Process(fleet.Aggregator))(t)
	check(t, aggregator.Stop())
	t.Cleanup(func() { _ = aggregator.Continue() })
	root := []string{"--config", filepath.Join(f.Home, "config", "relay.yaml")}
	must(f.Process(fleet.Relay, root...))(t).Kill()
	check(t, fleet.Until(withinAMinute, "r1 is attached to the new root relay", func() bool {
		text, err := metrics(f, "relay")
		return err == nil && strings.Contains(text, "\nmuster_relay_children 1\n")
	}))
	if text := must(metrics(f, "relay"))(t); !strings.Contains(text, "\nmuster_relay_upstream_connected 0\n") {
		t.Error("the root relay is connected to a suspended aggregator")
	}
	check(t, aggregator.Continue())
	release(t, f, "n1")
	wantAllComplete(t, f, id, 1)
}

// wantNoBugs fails if a log has a sign of a defect.
func wantNoBugs(t *testing.T, b *branch) {
	t.Helper()
	stderr := map[string]string{}
	for name, program := range map[string]*fleet.RunningProgram{
		"r1": b.r1.program, "r2": b.r2.program, "n1": b.n1.agent, "n2": b.n2.agent,
	} {
		program.End()
		stderr[name] = program.Output.String()
	}
	files, _ := filepath.Glob(filepath.Join(b.Home, "log", "*"))
	for _, file := range files {
		stderr[filepath.Base(file)] = string(must(os.ReadFile(file))(t))
	}
	for name, text := range stderr {
		for _, line := range strings.Split(text, "\n") {
			for _, sign := range []string{"panic", "terminate called", "Check failed", "assertion", "runtime error", " ERROR "} {
				if strings.Contains(line, sign) {
					t.Errorf("log of %s: %s", name, line)
				}
			}
		}
	}
}
