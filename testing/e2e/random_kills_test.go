package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	killsOfATest   = 100 // times faults()
	longestPause   = 400 * time.Millisecond
	linkRate       = 256 << 10 // bytes per second, so that uploads last as long as the kills
	smallestResult = 1 << 10
	largestResult  = 4 << 20 // times faults()
)

// faults returns $MUSTER_FAULTS, which multiplies the number of faults of a test; 1 by default. testing/nightly sets it.
func faults(t *testing.T) int {
	t.Helper()
	text := os.Getenv("MUSTER_FAULTS")
	if text == "" {
		return 1
	}
	return must(strconv.Atoi(text))(t)
}

// thorough reports whether a test makes more faults than in an ordinary run.
func thorough(t *testing.T) bool { return faults(t) > 1 }

// seeded returns random numbers by a logged seed; $MUSTER_SEED repeats an earlier one.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := time.Now().UnixNano()
	if text := os.Getenv("MUSTER_SEED"); text != "" {
		seed = must(strconv.ParseInt(text, 10, 64))(t)
	}
	t.Logf("to repeat this test: MUSTER_SEED=%d", seed)
	return rand.New(rand.NewSource(seed))
}

// sent is a result of random bytes.
type sent struct {
	run, node, file string
	size            int64
	sum             [32]byte
	crc             uint32
}

// newSent writes the content of a result to a file.
func newSent(t *testing.T, f *fleet.Fleet, random *rand.Rand, run, node string, size int64) *sent {
	t.Helper()
	content := make([]byte, size)
	_, _ = random.Read(content)
	file := must(f.WriteFile("content-"+run+"-"+node, string(content)))(t)
	return &sent{run, node, file, size, sha256.Sum256(content), crc32.Checksum(content, castagnoli)}
}

// wantCommittedOnce waits until a run is complete, and compares results, counters, status and archive with what was sent.
func wantCommittedOnce(t *testing.T, f *fleet.Fleet, run string, all []*sent) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			text, err := f.Muster("status", run)
			t.Logf("--- status of run %s: %v\n%s", run, err, text)
		}
	})
	wantAllComplete(t, f, run, len(all))
	a := operator(t, f)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if list := must(a.results.ListResults(ctx, &musterv1.ListResultsRequest{Run: run}))(t); len(list.Results) != len(all) {
		t.Errorf("run %s has %d results, want %d", run, len(list.Results), len(all))
	}
	files := archive(t, f, run)
	for _, want := range all {
		got := a.result(t, run, "logs", want.node)
		if got.Outcome != musterv1.Outcome_OUTCOME_GENUINE || got.Generation != 1 || got.Size != want.size ||
			got.Crc32C != want.crc || len(got.Sha256) > 0 && [32]byte(got.Sha256) != want.sum {
			t.Errorf("%s: %v; want generation 1 with %d bytes, CRC %08x, SHA-256 %x", want.node, got, want.size, want.crc, want.sum)
		}
		archived, found := 0, false
		for name, text := range files {
			if strings.HasPrefix(name, "plugins/logs/results/"+want.node+"/") {
				archived++
				found = found || sha256.Sum256([]byte(text)) == want.sum
			}
		}
		if archived != 1 || !found {
			t.Errorf("%s: %d files in the archive, with its content: %t; want it once", want.node, archived, found)
		}
	}
}

// persistent is a program that is started again after each kill, until it succeeds or fails.
type persistent struct {
	name  string
	start func() (*fleet.RunningProgram, error)
	ended chan error

	mutex   sync.Mutex
	current *fleet.RunningProgram
	stopped bool
}

func newPersistent(t *testing.T, name string, start func() (*fleet.RunningProgram, error)) *persistent {
	t.Helper()
	p := &persistent{name: name, start: start, ended: make(chan error, 1)}
	p.current = must(start())(t)
	go func() { p.ended <- p.watch(p.current) }()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("--- %s\n%s", name, p.current.Output)
		}
	})
	return p
}

func (p *persistent) watch(program *fleet.RunningProgram) error {
	for {
		err := program.Wait()
		if err != nil && !fleet.WasKilled(err) {
			return fmt.Errorf("%s: %w: %s", p.name, err, program.Output)
		}
		p.mutex.Lock()
		if err == nil || p.stopped {
			p.mutex.Unlock()
			return nil
		}
		if program, err = p.start(); err == nil {
			p.current = program
		}
		p.mutex.Unlock()
		if err != nil {
			return err
		}
	}
}

// kill kills the program, and reports whether it was running.
func (p *persistent) kill() bool {
	p.mutex.Lock()
	program := p.current
	p.mutex.Unlock()
	return program.End()
}

func (p *persistent) stop() {
	p.mutex.Lock()
	p.stopped = true
	p.mutex.Unlock()
	p.kill()
}

func (p *persistent) hasEnded() bool { return len(p.ended) > 0 }

// killedFleet is a fleet with a child relay, and results in transit by every way.
type killedFleet struct {
	*fleet.Fleet
	random  *rand.Rand
	links   []*fleet.Link
	senders []*persistent
	r1      *persistent
	r1Home  string
	pending []func()     // start or release one delivery each
	puts    []chan error // how each legacy delivery ended
	sent    map[string][]*sent
}

func newKilledFleet(t *testing.T, random *rand.Rand) *killedFleet {
	t.Helper()
	k := &killedFleet{Fleet: up(t), random: random, sent: map[string][]*sent{}}
	check(t, k.Configure("supervisor", map[string]string{"longest_pause": "1s"}))
	r1, address := localRelay(t, k.Fleet, "r1", "")
	nodes := []string{"submit0", "submit1", "submit2", "put0", "put1", "put2", "done0", "done1"}
	for _, name := range []string{"relay0", "relay1"} {
		n := joinAt(t, k.Fleet, name, k.behind(t, address))
		n.agent.End()
		k.senders = append(k.senders, newPersistent(t, "the agent of "+name, func() (*fleet.RunningProgram, error) {
			return k.Start(nil, []string{"MUSTER_HOME=" + n.home}, fleet.Muster, "agent", "attach")
		}))
		check(t, os.WriteFile(filepath.Join(n.folder(), "policy.yaml"), []byte(collectPolicy), 0o600))
		nodes = append(nodes, name)
	}
	r1.program.End()
	k.r1Home = r1.home
	k.r1 = newPersistent(t, "r1", func() (*fleet.RunningProgram, error) {
		return k.Start(nil, nil, fleet.Relay, "--config", r1.config())
	})
	aggregator := k.behind(t, must(k.Operator())(t).Aggregator[0])
	for number := range 5 {
		definition := execPlugin("logs", "DaemonSet", fmt.Sprintf(`until [ -e "%[1]s/go-%[2]d-$NODE_NAME" ]; do sleep 0.1; done; `+
			`cp "%[1]s/content-$(cat "%[1]s/run-%[2]d")-$NODE_NAME" "$RESULTS_DIR/r"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`, k.Home, number))
		file := must(k.WriteFile(fmt.Sprintf("plugin-%d.yaml", number), definition))(t)
		run := must(k.CreateRun("-f", file, "--node", strings.Join(nodes, ","), "--start-grace", "1h", "--lost-after", "1h"))(t)
		must(k.WriteFile(fmt.Sprintf("run-%d", number), run))(t)
		var legacy string
		for _, node := range nodes {
			// Sizes of all magnitudes are equally frequent.
			size := smallestResult * math.Pow(float64(largestResult*faults(t)/smallestResult), random.Float64())
			s := newSent(t, k.Fleet, random, run, node, int64(size))
			k.sent[run] = append(k.sent[run], s)
			switch {
			case strings.HasPrefix(node, "relay"):
				k.pending = append(k.pending, func() { must(k.WriteFile(fmt.Sprintf("go-%d-%s", number, node), ""))(t) })
				continue
			case legacy == "" && strings.HasPrefix(node, "put"):
				port := must(url.Parse(must(k.Export(run, "logs", node))(t).AggregatorURL))(t)
				legacy = "https://" + k.behind(t, port.Host)
			}
			k.deliver(t, s, aggregator, legacy)
		}
	}
	random.Shuffle(len(k.pending), func(i, j int) { k.pending[i], k.pending[j] = k.pending[j], k.pending[i] })
	return k
}

// behind returns the address of a slow link to an address.
func (k *killedFleet) behind(t *testing.T, address string) string {
	t.Helper()
	l := linkOn(t, nil, "127.0.0.1:0", address)
	l.Slow(0, linkRate)
	k.links = append(k.links, l)
	return l.Address
}

// deliver prepares a delivery with a credential of the run.
func (k *killedFleet) deliver(t *testing.T, s *sent, aggregator, legacy string) {
	t.Helper()
	credential := must(k.Export(s.run, "logs", s.node))(t)
	credential.GRPCTargets = []string{aggregator}
	credential.File = must(k.WriteCredential("credential-"+s.run+"-"+s.node, credential))(t)
	switch {
	case strings.HasPrefix(s.node, "submit"):
		k.pending = append(k.pending, func() {
			k.senders = append(k.senders, newPersistent(t, s.node, func() (*fleet.RunningProgram, error) {
				return k.Start(nil, nil, fleet.Muster, "submit", s.file, "--config", credential.File)
			}))
		})
	case strings.HasPrefix(s.node, "put"):
		ended := make(chan error, 1)
		k.puts = append(k.puts, ended)
		k.pending = append(k.pending, func() {
			client := must(credential.HTTP())(t)
			go func() { ended <- putUntilAccepted(client, legacy, s) }()
		})
	default: // an agent that waits for a done file
		folder := filepath.Join(k.Home, "results-"+s.run+"-"+s.node)
		check(t, os.Mkdir(folder, 0o700))
		k.senders = append(k.senders, newPersistent(t, s.node, func() (*fleet.RunningProgram, error) {
			return k.StartAgent(credential, nil, "MUSTER_MODE=wait", "RESULTS_DIR="+folder, "SONOBUOY_DONE_FILE_DELAY=0s")
		}))
		k.pending = append(k.pending, func() {
			inside := filepath.Join(folder, "r")
			check(t, os.Rename(s.file, inside))
			check(t, os.WriteFile(filepath.Join(folder, "part"), []byte(inside), 0o600))
			check(t, os.Rename(filepath.Join(folder, "part"), filepath.Join(folder, "done")))
		})
	}
}

// putUntilAccepted delivers as a legacy client that never gives up.
func putUntilAccepted(client *http.Client, legacy string, s *sent) error {
	for end := time.Now().Add(time.Hour); ; time.Sleep(100 * time.Millisecond) {
		err := putFile(client, legacy+"/api/v1/results/by-node/"+s.node+"/logs", s.file)
		if err == nil || time.Now().After(end) || refusedForGood(err) {
			return err
		}
	}
}

// refusedForGood reports whether a PUT was answered with a status that a repetition does not change.
func refusedForGood(err error) bool {
	var code int
	_, scanErr := fmt.Sscanf(err.Error(), "status %d:", &code)
	return scanErr == nil && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// victims returns functions that kill one program each, and report whether it was running. They wait for a service that is
// being restarted.
func (k *killedFleet) victims(t *testing.T) map[string]func() bool {
	supervised := func(name string, arguments ...string) func() bool {
		return func() bool {
			var victim fleet.Process
			until(t, name+" is running", func() (running bool) {
				var err error
				victim, err = k.Process(name, arguments...)
				return err == nil
			})
			return victim.Kill()
		}
	}
	return map[string]func() bool{
		"aggregator": supervised(fleet.Aggregator),
		"gateway":    supervised(fleet.Gateway),
		"status":     supervised(fleet.Status),
		"root":       supervised(fleet.Relay, "--config", filepath.Join(k.Home, "config", "relay.yaml")),
		"r1":         k.r1.kill,
		"sender": func() bool {
			alive := k.alive()
			return len(alive) > 0 && alive[k.random.Intn(len(alive))].kill()
		},
	}
}

func (k *killedFleet) alive() (alive []*persistent) {
	for _, sender := range k.senders {
		if !sender.hasEnded() {
			alive = append(alive, sender)
		}
	}
	return alive
}

// Every program is killed again and again at random moments while 50 results are delivered: by gRPC, by legacy PUT,
// through a relay, and by agents that wait for a done file. $MUSTER_FAULTS multiplies the kills.
func TestRandomKillsLoseNothing(t *testing.T) {
	t.Parallel()
	k := newKilledFleet(t, seeded(t))
	victims := k.victims(t)
	order := []string{"aggregator", "gateway", "status", "root", "r1", "sender", "sender"}
	kills, uploads, counts := killsOfATest*faults(t), len(k.pending), map[string]int{}
	for kill := 0; kill < kills; {
		for uploads-len(k.pending) <= kill*uploads/kills {
			k.pending[0]()
			k.pending = k.pending[1:]
		}
		time.Sleep(time.Duration(k.random.Int63n(int64(longestPause)))) // the random moment
		name := order[k.random.Intn(len(order))]
		if victims[name]() { // a sender may have ended
			counts[name]++
			kill++
		}
	}
	t.Logf("%d deliveries, kills: %v", uploads, counts)
	for _, l := range k.links {
		l.Slow(0, 0)
	}
	// After many failures a wait may be a minute long: a restarted program begins with short ones.
	k.r1.kill()
	until(t, "r1 is attached", func() bool {
		list, err := listNodes(k.Fleet)
		return err == nil && list["r1"]["attached"] == true
	})
	for _, sender := range k.alive() {
		sender.kill()
	}
	for i, put := range k.puts {
		select {
		case err := <-put:
			check(t, err)
		case <-time.After(crashSoon):
			t.Fatalf("legacy delivery %d did not end", i)
		}
	}
	for _, p := range append(k.senders, k.r1) {
		if strings.HasPrefix(p.name, "submit") || strings.HasPrefix(p.name, "done") {
			check(t, fleet.Until(crashSoon, p.name+" ends", p.hasEnded))
		}
		if p.hasEnded() {
			check(t, <-p.ended)
		}
	}
	stored := int64(len(k.sent)) // the archives
	for run, all := range k.sent {
		wantCommittedOnce(t, k.Fleet, run, all)
		stored += int64(len(all))
	}
	// A part of a result that took another way remains in a spool until it expires (docs/reliability.md, known gaps).
	complete := filepath.Join("spool", "blobs", "blobs")
	wantSoundStore(t, k.Fleet, stored, filepath.Join(k.Home, "relay", complete), filepath.Join(k.r1Home, complete))
}
