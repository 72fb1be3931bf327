package e2e

import (
	"encoding/json"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"muster.example/gateway/limits"
	"muster.example/testing/fleet"
)

// Clients that download and do not read take little of the gateway's memory, and no client has more downloads than its
// share.
func TestSlowDownloadsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "p", "n1"))(t)
	large, random := filepath.Join(t.TempDir(), "large"), make([]byte, 64<<20)
	rand.New(rand.NewSource(1)).Read(random)
	check(t, os.WriteFile(large, random, 0o600))
	check(t, putFile(must(credential.HTTP())(t), credential.AggregatorURL+"/api/v1/results/by-node/n1/p", large))

	check(t, must(f.Process(fleet.Gateway))(t).ResetPeak())
	content := must(f.Operator())(t).Gateway[0] + "/api/v1/runs/" + id + "/results/p/n1/content"
	var last *http.Client
	for _, name := range []string{"ann", "bob", "eve"} {
		file := filepath.Join(t.TempDir(), name)
		must(f.Muster("operator", "add", name, "-o", file))(t)
		var operator fleet.Operator
		check(t, json.Unmarshal(must(os.ReadFile(file))(t), &operator))
		last = must(operator.HTTP())(t)
		for range limits.DownloadsOfIdentity {
			response := must(last.Get(content))(t)
			defer response.Body.Close() // at the end: nothing is read before
			if response.StatusCode != http.StatusOK {
				t.Fatalf("a download was answered %s", response.Status)
			}
		}
	}
	response := must(last.Get(content))(t)
	response.Body.Close()
	if response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one download too many of an identity was answered %s", response.Status)
	}
	if peak := peakMemory(must(f.Process(fleet.Gateway))(t)); peak > 192<<20 {
		t.Errorf("the gateway took %d MiB", peak>>20)
	}
}
