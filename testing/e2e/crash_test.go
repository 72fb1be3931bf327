package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	points    = 20       // where a process is killed, spread over the upload
	homes     = 4        // fleets that share the points: a supervisor waits longer after each crash
	largeSize = 48 << 20 // bytes of a result that takes long enough to be interrupted
	// A client waits up to 30 s between attempts, and the supervisor waits longer after each crash.
	crashSoon = 5 * time.Minute
)

// castagnoli checks a result's whole content.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// large creates a file that does not compress.
func large(t *testing.T, f *fleet.Fleet, seed int64) (path string, sum [32]byte, crc uint32) {
	t.Helper()
	content := make([]byte, largeSize)
	rand.New(rand.NewSource(seed)).Read(content)
	path = filepath.Join(f.Home, fmt.Sprintf("large-%d", seed))
	check(t, os.WriteFile(path, content, 0o600))
	return path, sha256.Sum256(content), crc32.Checksum(content, castagnoli)
}

// wantWhole fails unless exactly this content is committed, once.
func wantWhole(t *testing.T, a api, id, plugin, node string, sum [32]byte, crc uint32) {
	t.Helper()
	got := a.result(t, id, plugin, node)
	if got.Outcome != musterv1.Outcome_OUTCOME_GENUINE || got.Generation != 1 || got.Size != largeSize || got.Crc32C != crc {
		t.Fatalf("%s on %s: %v; want %d bytes with CRC %08x, generation 1", plugin, node, got, largeSize, crc)
	}
	if len(got.Sha256) > 0 && [32]byte(got.Sha256) != sum {
		t.Errorf("%s on %s: SHA-256 %x, want %x", plugin, node, got.Sha256, sum)
	}
}

// stored returns the bytes of uploads in the aggregator's folder: the progress of a test.
func stored(f *fleet.Fleet) (sum int64) {
	_ = filepath.Walk(filepath.Join(f.Home, "aggregator", "blobs"), func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// awaitStored returns when this much more is stored than before, or the delivery has ended.
func awaitStored(f *fleet.Fleet, from, more int64, ended <-chan error) {
	for end := time.Now().Add(crashSoon); time.Now().Before(end); time.Sleep(time.Millisecond) {
		select {
		case <-ended:
			return
		default:
		}
		if stored(f) >= from+more {
			return
		}
	}
}

// delivery starts one delivery and reports how it ended.
type delivery func(id, node, file string) <-chan error

// killAtEveryPoint delivers `points` large results one after the other and kills `victim` at a different point of each.
func killAtEveryPoint(t *testing.T, victim []string, by func(*testing.T, *fleet.Fleet) delivery) {
	for home := range homes {
		t.Run(fmt.Sprint(home), func(t *testing.T) {
			t.Parallel()
			f := up(t)
			killAtSomePoints(t, f, victim, by(t, f), home)
		})
	}
}

// killAtSomePoints tests the points first, first+homes, first+2*homes, ...
func killAtSomePoints(t *testing.T, f *fleet.Fleet, victim []string, deliver delivery, first int) {
	t.Helper()
	nodes := []string{"never"} // keeps the run open
	for i := range points {
		nodes = append(nodes, fmt.Sprintf("n%d", i))
	}
	file, sum, crc := large(t, f, 1)
	// A separate sender delivers the file directly; an agent gathers it first, and records that.
	id := run(t, f, []string{execPlugin("logs", "DaemonSet",
		`cp "`+file+`" "$RESULTS_DIR/r"; echo gathered >> "`+file+`-$NODE_NAME"; echo "$RESULTS_DIR/r" > "$RESULTS_DIR/done"`)}, nodes...)
	a := operator(t, f)
	for i := first; i < points; i += homes {
		node := fmt.Sprintf("n%d", i)
		before := stored(f)
		ended := deliver(id, node, file)
		outcome := make(chan error, 1)
		watch := make(chan error)
		go func() { err := <-ended; close(watch); outcome <- err }()
		awaitStored(f, before, int64(largeSize)*int64(i)/points, watch)
		if process, err := f.Process(victim[0], victim[1:]...); err == nil {
			process.Kill()
		} else if len(victim) == 1 { // a service is always running; the agent may have ended already
			t.Fatal(err)
		}
		select {
		case err := <-outcome:
			if err != nil {
				t.Fatalf("point %d: %v", i, err)
			}
		case <-time.After(crashSoon):
			t.Fatalf("point %d: the delivery did not end", i)
		}
		check(t, fleet.Until(soon, "the aggregator responds", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := a.runs.GetRun(ctx, &musterv1.GetRunRequest{Run: id})
			return err == nil
		}))
		wantWhole(t, a, id, "logs", node, sum, crc)
	}
}

// byAgent delivers with `muster submit`.
func byAgent(t *testing.T, f *fleet.Fleet) delivery {
	return func(id, node, file string) <-chan error {
		credential := must(f.Export(id, "logs", node))(t)
		ended := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), crashSoon)
			defer cancel()
			_, err := f.Run(ctx, "submit", file, "--config", credential.File)
			ended <- err
		}()
		return ended
	}
}

func TestKilledAggregatorDuringUploadLosesNothing(t *testing.T) {
	t.Parallel()
	killAtEveryPoint(t, []string{fleet.Aggregator}, byAgent)
}

// The agent is killed and started again: it resumes with what it had gathered.
func TestKilledAgentDuringUploadLosesNothing(t *testing.T) {
	t.Parallel()
	killAtEveryPoint(t, []string{fleet.Muster, "agent"}, func(t *testing.T, f *fleet.Fleet) delivery {
		return func(id, node, file string) <-chan error {
			credential, ended := must(f.Export(id, "logs", node))(t), make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), crashSoon)
				defer cancel()
				err := f.Agent(ctx, credential)
				gathered, _ := os.ReadFile(file + "-" + node)
				if err != nil {
					err = f.Agent(ctx, credential)
				}
				if again, _ := os.ReadFile(file + "-" + node); err == nil && node != "n0" && !bytes.Equal(again, gathered) {
					err = fmt.Errorf("the result was gathered again")
				}
				ended <- err
			}()
			return ended
		}
	})
}

// Old sidecars wait for an answer without limit, but give up two seconds after a refusal: while the aggregator is
// unreachable the gateway holds their requests.
func TestKilledAggregatorDuringLegacyPutLosesNothing(t *testing.T) {
	t.Parallel()
	killAtEveryPoint(t, []string{fleet.Aggregator}, byPut(1))
}

// A killed gateway closes its connections; the listening socket remains, so that the next attempt of an old sidecar
// waits for the new gateway and is not refused.
func TestKilledGatewayDuringLegacyPutLosesNothing(t *testing.T) {
	t.Parallel()
	killAtEveryPoint(t, []string{fleet.Gateway}, byPut(3))
}

// byPut delivers by HTTPS PUT, chunked, with as many attempts as an old sidecar makes.
func byPut(tries int) func(*testing.T, *fleet.Fleet) delivery {
	return func(t *testing.T, f *fleet.Fleet) delivery {
		return func(id, node, file string) <-chan error {
			credential := must(f.Export(id, "logs", node))(t)
			client := must(credential.HTTP())(t)
			ended := make(chan error, 1)
			go func() {
				for try := 1; ; try++ {
					err := putFile(client, credential.AggregatorURL+"/api/v1/results/by-node/"+node+"/logs", file)
					if err == nil || try == tries {
						ended <- err
						return
					}
					time.Sleep(time.Second) // the pause of the tested client between its attempts
				}
			}()
			return ended
		}
	}
}

func putFile(client *http.Client, url, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	request, err := http.NewRequest(http.MethodPut, url, io.NopCloser(file))
	if err != nil {
		return err
	}
	request.ContentLength = -1
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return nil
}

// All processes are killed, including the supervisor; `muster up` continues with the accepted results.
func TestUpAfterKillOfAllServicesLosesNothing(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	n1, n2 := must(f.Export(id, "logs", "n1"))(t), must(f.Export(id, "logs", "n2"))(t)
	if code, err := put(t, n1, "n1", "before"); err != nil || code != http.StatusOK {
		t.Fatal(code, err)
	}
	for _, process := range f.Processes() {
		process.Kill()
	}
	check(t, f.Up())
	// The address and the run CA are the same: the old credential works.
	if code, err := put(t, n2, "n2", "after"); err != nil || code != http.StatusOK {
		t.Fatal(code, err)
	}
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	files := archive(t, f, id)
	wantFile(t, files, "plugins/logs/results/n1/result", "before")
	wantFile(t, files, "plugins/logs/results/n2/result", "after")
}

// The services that a killed supervisor left running keep their ports, also if the next start may choose any.
func TestUpAfterKillOfTheSupervisorKeepsTheAddresses(t *testing.T) {
	t.Parallel()
	f := up(t)
	credential := must(f.Export(run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1"), "logs", "n1"))(t)
	addresses := func() (addresses map[string]string) {
		check(t, json.Unmarshal(must(os.ReadFile(filepath.Join(f.Home, "run", "addresses.json")))(t), &addresses))
		return addresses
	}
	before := addresses()
	must(f.Process(fleet.Muster, "supervise"))(t).Kill()
	check(t, f.Up())
	must(f.Muster("runs"))(t)
	if after := addresses(); after["aggregator"] != before["aggregator"] || after["gateway"] != before["gateway"] {
		t.Errorf("the addresses were %v and are %v", before, after)
	}
	check(t, submit(t, credential, credential.Run, "logs", "n1", "after"))
}

// An `up` that gives up leaves no services behind, not even a supervisor that is just starting.
func TestUpThatTimesOutStopsWhatItStarted(t *testing.T) {
	t.Parallel()
	f := must(fleet.New(""))(t)
	closeAtEnd(t, f)
	_, err := f.Muster("up", "--port", "0", "--timeout", "1ms")
	wantExit(t, err, 1, "SERVICE_FAILED")
	if left := f.Processes(); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	check(t, f.Up())
}

// killUntilRestart kills a supervised process, and returns when another one has taken its place.
func killUntilRestart(t *testing.T, f *fleet.Fleet, name string, arguments ...string) {
	t.Helper()
	before := must(f.Process(name, arguments...))(t)
	before.Kill()
	until(t, name+" is running again", func() bool {
		now, err := f.Process(name, arguments...)
		return err == nil && now.PID != before.PID
	})
}

// A killed service is restarted automatically, and ready within seconds.
func TestSupervisorRestartsKilledServices(t *testing.T) {
	t.Parallel()
	f := up(t)
	for _, name := range []string{fleet.Aggregator, fleet.Status, fleet.Gateway} {
		killUntilRestart(t, f, name)
	}
	until(t, "commands work again", func() bool {
		_, err := f.Muster("runs")
		return err == nil
	})
}
