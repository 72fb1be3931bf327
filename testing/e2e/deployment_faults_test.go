package e2e

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

const (
	faultyDeployments = 8  // in a round
	faultyKills       = 10 // in a round
	linesOfASecond    = 20 // of greetScript
	listedEvery       = 50 * time.Millisecond
)

// startedContainers remembers the ids of the containers of each job.
type startedContainers struct {
	mutex sync.Mutex
	byJob map[string]map[string]bool
}

// watch lists the containers until the context ends. Docker does not answer while its daemon is killed.
func (s *startedContainers) watch(ctx context.Context, docker *fleet.Docker) {
	for ; ctx.Err() == nil; <-time.After(listedEvery) {
		out, err := docker.Run("ps", "--all", "--no-trunc", "--format", `{{.Label "muster.job"}} {{.ID}}`)
		if err != nil {
			continue
		}
		s.mutex.Lock()
		for line := range strings.Lines(out) {
			job, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			if s.byJob[job] == nil {
				s.byJob[job] = map[string]bool{}
			}
			s.byJob[job][id] = true
		}
		s.mutex.Unlock()
	}
}

// faultyDeployment is a deployment that prints the lines of some seconds.
type faultyDeployment struct {
	id      string
	seconds int
	started time.Time
	took    time.Duration
}

// faultyFleet kills the programs between an operator and the containers of a node at random times.
type faultyFleet struct {
	*deploying
	random *rand.Rand
	kills  map[string]int

	attempts int
	// Bytes of logs: missing or doubled, lost by Docker as the outcome says, and lost by it while the agent was killed, too.
	lost, reported, unnoticed int
	uncertain                 int // deployments of which Docker forgot the start or the exit code
}

func (f *faultyFleet) kill(t *testing.T) {
	t.Helper()
	what := []string{"agent", "dockerd", fleet.Jobs, fleet.Relay, fleet.Aggregator}[f.random.Intn(5)]
	f.kills[what]++
	switch what {
	case "agent":
		f.node.agent.End()
		f.node.start(t)
	case "dockerd":
		check(t, f.docker.KillDaemon())
		check(t, f.docker.StartDaemon())
	default:
		killUntilRestart(t, f.Fleet, what)
	}
}

// create starts a deployment, and tries again while a service restarts.
func (f *faultyFleet) create(t *testing.T, seconds int) *faultyDeployment {
	t.Helper()
	one := &faultyDeployment{seconds: seconds, started: time.Now()}
	until(t, "a deployment is created", func() bool {
		out, err := f.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--set", fmt.Sprintf("seconds=%d", seconds), "--deadline", "5m")
		one.id = strings.TrimSpace(out)
		return err == nil
	})
	return one
}

// isLostByDocker reports whether Docker chose the exit code, because it has lost the process or killed it at its own start.
func isLostByDocker(code *int) bool { return code != nil && (*code == 255 || *code == 137) }

// settle waits for the end of a deployment, and counts what is missing. One that a fault prevented from starting is tried
// again.
func (f *faultyFleet) settle(t *testing.T, one *faultyDeployment) {
	t.Helper()
	want := "n1: deploy for Ada\n"
	for i := range one.seconds * linesOfASecond {
		want += fmt.Sprintf("n1: line %d\n", i+1)
	}
	for {
		f.attempts++
		var shown shownDeployment
		check(t, fleet.Until(5*time.Minute, "deployment "+one.id+" ends", func() bool {
			err := f.JSON(&shown, "deployment", "show", one.id)
			return err == nil && (shown.State == "succeeded" || shown.State == "failed")
		}))
		out, err := f.Muster("deployment", "logs", one.id)
		final := shown.Nodes[0].Final
		one.took = time.Since(one.started)
		if shown.State == "succeeded" {
			check(t, err)
			if shown.Nodes[0].Outputs["text"] != "hello Ada" {
				t.Errorf("deployment %s has the outputs %v", one.id, shown.Nodes[0].Outputs)
			}
			switch {
			case out == want:
			case final.Reason == "CONTAINER_OUTPUT_LOST" && strings.HasPrefix(want, out):
				f.reported += len(want) - len(out)
			case f.kills["agent"] > 0 && f.kills["dockerd"] > 0 && strings.HasPrefix(want, out):
				f.unnoticed += len(want) - len(out)
			default:
				f.lost += max(len(want)-len(out), len(out)-len(want), 1)
				t.Errorf("deployment %s printed %d bytes, want %d: %s", one.id, len(out), len(want), out)
			}
			return
		}
		if final != nil && (final.Reason == "CONTAINER_STATE_LOST" || isLostByDocker(final.ExitCode)) {
			f.uncertain++
			return
		}
		if strings.Contains(out, "n1: deploy for Ada") || final == nil || final.Reason == "" {
			all, _ := f.Muster("deployment", "show", one.id)
			t.Fatalf("deployment %s of %d s ended after the start of its container: %s\n%s", one.id, one.seconds, all, out)
		}
		t.Logf("deployment %s was not started: %s, %s", one.id, final.Reason, final.Detail)
		retried, err := f.Muster("deployment", "retry", one.id)
		check(t, err)
		one.id = strings.TrimSpace(retried)
	}
}

// Deployments run once each, and their whole output arrives, although agent, Docker, jobs service, root relay and aggregator
// are killed at random times. $MUSTER_FAULTS multiplies the rounds.
func TestDeploymentsUnderFaultsRunOnce(t *testing.T) {
	t.Parallel()
	f := &faultyFleet{deploying: newDeploying(t), random: seeded(t), kills: map[string]int{}}
	started := &startedContainers{byJob: map[string]map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { started.watch(ctx, f.docker) })
	t.Cleanup(watching.Wait)
	t.Cleanup(cancel)
	var all []*faultyDeployment
	for range faults(t) {
		var round []*faultyDeployment
		for len(round) < faultyDeployments {
			round = append(round, f.create(t, 1+f.random.Intn(6)))
			if f.random.Intn(3) == 0 {
				f.kill(t)
			}
		}
		for range faultyKills {
			<-time.After(time.Duration(f.random.Intn(800)) * time.Millisecond)
			f.kill(t)
		}
		for _, one := range round {
			f.settle(t, one)
		}
		all = append(all, round...)
	}
	if f.kills["dockerd"] == 0 { // the agent removes them within ten minutes
		noContainers(t, f.docker)
	}
	cancel()
	watching.Wait()
	twice := 0
	for job, ids := range started.byJob {
		if len(ids) > 1 {
			twice++
			t.Errorf("job %s had %d containers", job, len(ids))
		}
	}
	slices.SortFunc(all, func(a, b *faultyDeployment) int { return int(a.took - b.took) })
	t.Logf("%d deployments in %d attempts under the kills %v: %d started twice, %d bytes of logs lost, %d lost by Docker and reported, %d lost by Docker and not noticed, %d deployments that Docker forgot; created to ended p50 %.1f s, p99 %.1f s",
		len(all), f.attempts, f.kills, twice, f.lost, f.reported, f.unnoticed, f.uncertain, all[len(all)/2].took.Seconds(), all[len(all)*99/100].took.Seconds())
}
