package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// report returns a progress report of a plugin; `message` distinguishes reports.
func report(message string) string {
	return `{"msg":"` + message + `","total":10,"completed":5,"failures":["a"]}`
}

// wantProgress waits until such a report is shown by /status, by `muster status` and by WatchStatus. The node of a
// plugin that runs once is "global", except in the answer of GET /status.
func wantProgress(t *testing.T, f *fleet.Fleet, run, plugin, node, message string) {
	t.Helper()
	inStatus := strings.TrimPrefix(node, "global")
	var last fleet.ShownPair
	if err := fleet.Until(soon, "/status shows it", func() bool {
		last = shown(t, f, run).Pair(plugin, inStatus)
		return last.Progress != nil && last.Message == message
	}); err != nil {
		t.Fatalf("%s on %s: %v: want %q, got %+v", plugin, node, err, message, last)
	}
	if got := last.Progress; got.Total != 10 || got.Completed != 5 || len(got.Failures) != 1 || last.Reason != "running" ||
		last.LastHeartbeat == nil {
		t.Errorf("/status shows %+v of %+v, want 5 of 10, one failure, running, and a last heartbeat", got, last)
	}
	if text, _ := f.Muster("status", run); !lineContains(text, plugin, message) || !lineContains(text, node, "5/10") {
		t.Errorf("muster status does not show it:\n%s", text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	watch := must(statusService(t, f).WatchStatus(ctx, &musterv1.WatchStatusRequest{Run: run}))(t)
	for {
		answer, err := watch.Recv()
		if err != nil {
			t.Fatalf("WatchStatus has no progress of %s on %s: %v", plugin, node, err)
		}
		for _, pair := range answer.Pairs {
			if pair.Plugin == plugin && pair.Node == node && pair.Progress.GetMessage() == message && pair.Progress.Completed == 5 {
				return
			}
		}
	}
}

// Posted to the run's listener directly, and by an old sidecar.
func TestProgressOfOldSidecarsIsShownEverywhere(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("e2e", "Job"), sidecarPlugin("logs", "DaemonSet")}, "n1")
	for plugin, node := range map[string]string{"e2e": "global", "logs": "n1"} {
		credential := must(f.Export(run, plugin, node))(t)
		path := credential.AggregatorURL + "/api/v1/progress/by-node/n1/logs"
		if node == "global" {
			path = credential.AggregatorURL + "/api/v1/progress/global/e2e"
		}
		until(t, "the progress is accepted", func() bool { // by a status service that knows the run
			code, _ := curl(t, credential, "--no-alpn", "-X", "POST", "--data", report("by curl "+plugin), path)
			return code == "200"
		})
		wantProgress(t, f, run, plugin, node, "by curl "+plugin)
		s := startSidecar(t, credential, node)
		if code, text := s.report(t, report("by sidecar "+plugin)); code != http.StatusOK {
			t.Errorf("%s: progress was answered %d %s", plugin, code, text)
		}
		wantProgress(t, f, run, plugin, node, "by sidecar "+plugin)
	}
}

// Invalid progress of an old sidecar is refused without effect; unusual progress is shown safely.
func TestInvalidProgressIsRefusedOrShownSafely(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("e2e", "Job")})
	credential := must(f.Export(run, "e2e", "global"))(t)
	post := func(body string) string {
		file := must(f.WriteFile("progress", body))(t)
		code, _ := curl(t, credential, "--no-alpn", "-X", "POST", "--data-binary", "@"+file, credential.AggregatorURL+"/api/v1/progress/global/e2e")
		return code
	}
	until(t, "progress is accepted", func() bool { return post(report("sound")) == "200" })
	for name, c := range map[string]struct{ body, code string }{
		"a negative number":        {`{"msg":"bad","total":10,"completed":-1}`, "400"},
		"a huge number":            {`{"msg":"bad","total":4611686018427387904,"completed":1}`, "400"},
		"more than a number holds": {`{"msg":"bad","total":1e300}`, "400"},
		"half of it":               {`{"msg":"bad","total":`, "400"},
		"a MiB of message":         {`{"msg":"` + strings.Repeat("x", 1<<20) + `"}`, "413"},
	} {
		if code := post(c.body); code != c.code {
			t.Errorf("%s was answered %s, want %s", name, code, c.code)
		}
	}
	wantProgress(t, f, run, "e2e", "global", "sound")
	for name, c := range map[string]struct{ body, shown string }{
		"no numbers":         {`{"msg":"words alone"}`, "words alone"},
		"broken UTF-8":       {"{\"msg\":\"\xff\xfe broken\"}", "\ufffd\ufffd broken"},
		"a control sequence": {`{"msg":"\u001b[2Jcleared"}`, "\x1b[2Jcleared"},
		"a long message":     {`{"msg":"` + strings.Repeat("x", 32<<10) + `"}`, strings.Repeat("x", 4096)},
	} {
		if code := post(c.body); code != "200" {
			t.Errorf("%s was answered %s, want 200", name, code)
		}
		var last string
		if err := fleet.Until(soon, "the message is shown", func() bool {
			last = shown(t, f, run).Pair("e2e", "").Message
			return last == c.shown
		}); err != nil {
			t.Errorf("%s: %v: got %.200q (%d bytes)", name, err, last, len(last))
		}
		if text, _ := f.Muster("status", run); strings.Contains(text, "\x1b") || !utf8.ValidString(text) || !lineContains(text, "e2e", "running") {
			t.Errorf("%s: muster status shows %q", name, text)
		}
	}
}

// Posted to the agent's local endpoint, as plugins written for Sonobuoy do.
func TestProgressByAgentEndpointIsShownEverywhere(t *testing.T) {
	t.Parallel()
	f := up(t)
	shortHeartbeats(t, f)
	run := run(t, f, []string{untilReleased(f, "work"), execPlugin("once", "Job", "sleep 600")}, "n1")
	for plugin, node := range map[string]string{"once": "global", "work": "n1"} {
		port := freePort(t)
		startAgent(t, f, nil, run, plugin, node, "SONOBUOY_PROGRESS_PORT="+port)
		until(t, "the agent accepts progress", func() bool {
			response, err := http.Post("http://127.0.0.1:"+port+"/progress", "application/json",
				strings.NewReader(report("by agent "+plugin)))
			if err != nil {
				return false
			}
			defer response.Body.Close()
			return response.StatusCode == http.StatusOK
		})
		wantProgress(t, f, run, plugin, node, "by agent "+plugin)
	}
}

// The heartbeat of the original design: a periodic GET to the run's listener.
func TestOriginalHeartbeatIsAccepted(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("e2e", "Job"), sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	for _, pair := range []struct{ plugin, node, inStatus, path string }{
		{"e2e", "global", "", "global/e2e"}, {"logs", "n1", "n1", "by-node/n1/logs"},
	} {
		credential := must(f.Export(run, pair.plugin, pair.node))(t)
		health := credential.AggregatorURL + "/api/v1/health/"
		var body string
		until(t, "a heartbeat is accepted", func() bool {
			var code string
			code, body = curl(t, credential, health+pair.path)
			return code == "200"
		})
		if strings.TrimSpace(body) != `{"interval_seconds":10}` {
			t.Errorf("%s: answered %q, want the usual interval", pair.path, body)
		}
		until(t, "/status shows it", func() bool {
			got := shown(t, f, run).Pair(pair.plugin, pair.inStatus)
			return got.LastHeartbeat != nil && *got.LastHeartbeat < int(time.Minute.Seconds()) && got.Reason == "running"
		})
		for path, want := range map[string]string{
			"by-node/n2/logs": "403", "by-node/n9/logs": "403", "global/nothing": "403", "by-node/n1": "404", "nothing": "404",
		} {
			if code, answer := curl(t, credential, health+path); code != want {
				t.Errorf("%s asks for %s: answered %s %q, want %s", pair.plugin, path, code, answer, want)
			}
		}
	}
	if got := shown(t, f, run).Pair("logs", "n2"); got.LastHeartbeat != nil || got.Reason != "not-started" {
		t.Errorf("n2, which has no sidecar, is %+v", got)
	}
}
