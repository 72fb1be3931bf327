package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// widePairs returns a run with the texts of many pairs.
func widePairs(run string, count int) *musterv1.RunStatus {
	status := &musterv1.RunStatus{Run: run, State: musterv1.RunState_RUN_STATE_RUNNING}
	for i := range count {
		status.Pairs = append(status.Pairs, &musterv1.PairStatus{Plugin: "logs", Node: fmt.Sprintf("n%d", i),
			Outcome: musterv1.Outcome_OUTCOME_PENDING, Detail: strings.Repeat("x", 1500)})
	}
	return status
}

// The messages of watches that are not read count with the other answers of the status that are not read.
func TestBytesOfWatchesThatAreNotReadAreBounded(t *testing.T) {
	w, _ := startWithStatus(t)
	w.aggregator.SetStatus(widePairs(runA, 6000))
	leaf := viewer(w.runA)
	codes := map[int]int{}
	var last string
	for range 60 {
		conn, err := w.connect(w.gateway.Addresses.Status, &leaf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request("GET", "/api/v1/runs/"+runA+"/status:watch", "", "")); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if codes[answer.StatusCode]++; answer.StatusCode == http.StatusOK {
			defer conn.Close()
			continue
		}
		if content, _ := io.ReadAll(answer.Body); answer.StatusCode != 429 || decode(t, string(content))["reason"] != "TOO_MANY_STATUS_BYTES" ||
			answer.Header.Get("Retry-After") != "1" {
			last = fmt.Sprint(answer.StatusCode, " ", string(content))
		}
		conn.Close()
	}
	if codes[200] == 0 || codes[429] == 0 || last != "" {
		t.Errorf("answers by code: %v; %s", codes, last)
	}
	if bytes := w.metric("snapshot_bytes", ""); bytes < 1<<20 || bytes > float64(limits.SnapshotsOfIdentity) {
		t.Errorf("%.0f bytes are held", bytes)
	}
	if refused := w.metric("limit_refusals_total", `reason="snapshots"`); refused < float64(codes[429]) {
		t.Errorf("%.0f refusals are counted", refused)
	}
	if a := call(t, w.statusClient(leaf), "GET", w.page("/status?run="+runA), nil); a.code != 429 {
		t.Errorf("/status of the same client: %d", a.code)
	}
	if a := call(t, w.operator(alice), "GET", w.page("/status?run="+runB), nil); a.code != 200 {
		t.Errorf("another client: %d %s", a.code, a.body)
	}
	if lines, code := w.watch(w.operator(alice), w.url("/api/v1/runs/"+runA+"/status:watch")); code != 200 {
		t.Errorf("a watch of another client: %d %v", code, lines)
	}
}

// The bytes are released when a reader goes away.
func TestBytesOfBrokenWatchAreReleased(t *testing.T) {
	w, _ := startWithStatus(t)
	w.aggregator.SetStatus(widePairs(runA, 20_000))
	leaf := viewer(w.runA)
	conn, err := w.connect(w.gateway.Addresses.Status, &leaf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request("GET", "/api/v1/runs/"+runA+"/status:watch", "", "")); err != nil {
		t.Fatal(err)
	}
	mustertest.Await(t, "bytes are held", func() bool { return w.metric("snapshot_bytes", "") > 0 })
	conn.Close()
	mustertest.Await(t, "none are held", func() bool { return w.metric("snapshot_bytes", "") == 0 && w.metric("watches", "") == 0 })
}

// The snapshots of the watches of one client are prepared a few at a time, and do not delay other clients.
func TestWatchesOfOneClientDoNotDelayOthers(t *testing.T) {
	const opened = 20
	w, _ := startWithStatus(t)
	w.aggregator.SetStatus(widePairs(runA, 5000))
	leaf := viewer(w.runA)
	var mu sync.Mutex
	simultaneous, most := 0, 0
	proceed := make(chan struct{})
	w.aggregator.OnWatch(func(caller string) {
		if !strings.HasSuffix(caller, "/viewer") {
			return
		}
		mu.Lock()
		simultaneous++
		most = max(most, simultaneous)
		mu.Unlock()
		<-proceed
		mu.Lock()
		simultaneous--
		mu.Unlock()
	})
	client := w.statusClient(leaf)
	var watches sync.WaitGroup
	for range opened {
		watches.Go(func() {
			response, err := client.Get(w.page("/api/v1/runs/" + runA + "/status:watch"))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			lines, pairs := bufio.NewReader(response.Body), 0
			for pairs < 5000 {
				line, err := lines.ReadString('\n')
				if err != nil || response.StatusCode != 200 {
					t.Errorf("%d %v %.300s", response.StatusCode, err, line)
					return
				}
				result := decode(t, line)["result"].(map[string]any)
				pairs += len(result["pairs"].([]any))
			}
		})
	}
	mustertest.Await(t, "all watches were requested", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return w.metric("watches", "") == opened && most >= limits.FetchesOfIdentity
	})
	if a := call(t, w.operator(alice), "GET", w.page("/status?run="+runB), nil); a.code != 200 {
		t.Errorf("/status of another client: %d %s", a.code, a.body)
	}
	if _, code := w.watch(w.operator(alice), w.url("/api/v1/runs/"+runA+"/status:watch")); code != 200 {
		t.Errorf("a watch of another client: %d", code)
	}
	close(proceed)
	watches.Wait()
	if most != limits.FetchesOfIdentity {
		t.Errorf("%d snapshots were prepared at a time", most)
	}
}
