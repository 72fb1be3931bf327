package e2e

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// dialOn keeps a stale sidecar dialling an address until the test ends, and counts its attempts.
func dialOn(t *testing.T, stale *fleet.Credential) (tries, answers *atomic.Int64) {
	t.Helper()
	tries, answers = new(atomic.Int64), new(atomic.Int64)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			code, err := put(t, stale, stale.Node, "stale")
			tries.Add(1)
			if err == nil && code == http.StatusOK {
				answers.Add(1)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return tries, answers
}

// There is one port for listeners of runs; after the end of the old run, the new run gets it.
func TestStaleSidecarCannotReachNewRunOnItsPort(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"cancelled", "deleted", "crashed"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var only []string
			if way != "cancelled" { // a cancelled run keeps its listener for an hour, to report that
				port := freePort(t)
				only = []string{"--legacy-ports", port + "-" + port}
			}
			f := up(t, only...)
			old := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
			stale := must(f.Export(old, "logs", "n1"))(t)
			switch way {
			case "cancelled":
				must(f.Muster("cancel", old))(t)
			case "deleted":
				must(f.Muster("cancel", old))(t)
				must(f.Muster("delete", old))(t)
			case "crashed":
				for _, process := range f.Processes() {
					process.Kill()
				}
				check(t, f.Up(only...))
				must(f.Muster("cancel", old))(t)
				must(f.Muster("delete", old))(t)
			}
			fresh := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
			credential := must(f.Export(fresh, "logs", "n1"))(t)
			if way != "cancelled" && stale.AggregatorURL != credential.AggregatorURL {
				t.Fatalf("the new run has %s, not the old run's %s", credential.AggregatorURL, stale.AggregatorURL)
			}
			stale.AggregatorURL = credential.AggregatorURL
			tries, answers := dialOn(t, stale)
			refusedBefore := refusals(t, f)
			until(t, "the stale sidecar has dialled several times", func() bool { return tries.Load() >= 20 })
			if code, err := put(t, credential, "n1", "genuine"); err != nil || code != http.StatusOK {
				t.Errorf("the new run's own sidecar: %d %v", code, err)
			}
			if answers.Load() != 0 {
				t.Errorf("the stale sidecar got %d answers", answers.Load())
			}
			if got := operator(t, f).result(t, fresh, "logs", "n1"); got.Size != int64(len("genuine")) {
				t.Errorf("the new run's result: %v", got)
			}
			until(t, "the refusals are counted", func() bool { return refusals(t, f) > refusedBefore })
		})
	}
}

// freePort returns a port that is free now.
func freePort(t *testing.T) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	check(t, err)
	return port
}

// refusals returns the gateway's counter of refused handshakes.
func refusals(t *testing.T, f *fleet.Fleet) int64 {
	t.Helper()
	text := must(metrics(f, "gateway"))(t)
	var sum int64
	for _, match := range regexp.MustCompile(`(?m)^muster_\w*handshake\w*(?:\{[^}]*\})? (\d+)`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseInt(match[1], 10, 64)
		sum += n
	}
	return sum
}

// counted returns the value of a service's metric with these labels, or 0.
func counted(t *testing.T, f *fleet.Fleet, service, series string) float64 {
	t.Helper()
	for _, line := range strings.Split(must(metrics(f, service))(t), "\n") {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return must(strconv.ParseFloat(value, 64))(t)
		}
	}
	return 0
}

// metrics reads the metrics of a service; its address is in its file in run/.
func metrics(f *fleet.Fleet, service string) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.Home, "run", service+".addresses.json"))
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile(`"inspection":\s*"([^"]+)"`).FindSubmatch(text)
	if match == nil {
		return "", errors.New("no inspection address in " + string(text))
	}
	response, err := http.Get("http://" + string(match[1]) + "/metrics")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestConcurrentRunsHaveSeparateResults(t *testing.T) {
	t.Parallel()
	f := up(t)
	const runs = 2
	var ids [runs]string
	for i := range ids {
		ids[i] = run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	}
	for i, id := range ids {
		for _, node := range []string{"n1", "n2"} {
			code, err := put(t, must(f.Export(id, "logs", node))(t), node, strconv.Itoa(i)+node)
			if err != nil || code != http.StatusOK {
				t.Fatal(code, err)
			}
		}
	}
	for i, id := range ids {
		operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
		files := archive(t, f, id)
		for _, node := range []string{"n1", "n2"} {
			wantFile(t, files, "plugins/logs/results/"+node+"/result", strconv.Itoa(i)+node)
		}
	}
}
