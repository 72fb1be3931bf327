package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const hostPattern = "{run}.collect.example.org"

// curlByName calls the listener of `to` by its run's host name, without DNS, with a credential.
func curlByName(t *testing.T, to, credential *fleet.Credential, file string) (code, body string) {
	t.Helper()
	base := must(url.Parse(to.AggregatorURL))(t)
	shown := *credential
	shown.CA = to.CA
	return curl(t, &shown, "--resolve", base.Host+":127.0.0.1", "-T", file,
		to.AggregatorURL+"/api/v1/results/by-node/"+to.Node+"/logs")
}

func TestRunsShareOnePortByHostName(t *testing.T) {
	t.Parallel()
	f := up(t, "--legacy-host", hostPattern)
	var ids [2]string
	var credentials [2]*fleet.Credential
	for i := range ids {
		ids[i] = run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
		credentials[i] = must(f.Export(ids[i], "logs", "n1"))(t)
	}
	port := must(url.Parse(credentials[0].AggregatorURL))(t).Port()
	for i, id := range ids {
		if want := fmt.Sprintf("https://%s.collect.example.org:%s", id, port); credentials[i].AggregatorURL != want {
			t.Fatalf("the credential has %s, want %s", credentials[i].AggregatorURL, want)
		}
		file := must(f.WriteFile("of-"+id, "of "+id))(t)
		if code, body := curlByName(t, credentials[i], credentials[i], file); code != "200" {
			t.Errorf("run %d: answered %s %q", i, code, body)
		}
	}

	file := must(f.WriteFile("stray", "stray"))(t)
	before := refusals(t, f)
	if code, body := curlByName(t, credentials[1], credentials[0], file); code != "" {
		t.Errorf("one run's leaf under the other's name: answered %s %q", code, body)
	}
	for _, host := range []string{"https://127.0.0.1:" + port, "https://localhost:" + port} {
		code, body := curl(t, credentials[0], "--insecure", "-T", file, host+"/api/v1/results/by-node/n1/logs")
		if code != "" || !strings.Contains(body, "unrecognized name") {
			t.Errorf("%s: answered %s %q", host, code, body)
		}
	}
	until(t, "three handshakes are counted", func() bool { return refusals(t, f) == before+3 })

	must(f.Muster("down"))(t)
	check(t, f.Up())
	for i, id := range ids {
		n2 := must(f.Export(id, "logs", "n2"))(t)
		if n2.AggregatorURL != credentials[i].AggregatorURL {
			t.Errorf("after a restart it is %s, not %s", n2.AggregatorURL, credentials[i].AggregatorURL)
		}
		if code, body := curlByName(t, n2, n2, file); code != "200" {
			t.Errorf("run %d after a restart: answered %s %q", i, code, body)
		}
		operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
		wantFile(t, archive(t, f, id), "plugins/logs/results/n1/result", "of "+id)
	}
}

// A change of the configured host names does not affect existing runs.
func TestRunKeepsListenerAfterConfigurationChange(t *testing.T) {
	t.Parallel()
	f := up(t)
	file := must(f.WriteFile("r", "x"))(t)
	again := func(pattern string) {
		must(f.Muster("down"))(t)
		check(t, f.Up("--legacy-host", pattern))
	}
	older := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	again(hostPattern)
	named := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	again("")
	newer := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	for id, host := range map[string]string{older: "127.0.0.1", named: named + ".collect.example.org", newer: "127.0.0.1"} {
		credential := must(f.Export(id, "logs", "n1"))(t)
		if got := must(url.Parse(credential.AggregatorURL))(t).Hostname(); got != host {
			t.Errorf("run %s is at %s, want %s", id, got, host)
		}
		if code, body := curlByName(t, credential, credential, file); code != "200" {
			t.Errorf("run %s: answered %s %q", id, code, body)
		}
	}
}

func TestInvalidHostPatternIsReported(t *testing.T) {
	t.Parallel()
	f := must(fleet.New(""))(t)
	t.Cleanup(func() { check(t, f.Close()) })
	if err := f.Up("--legacy-host", "collect.example.org"); err == nil || !strings.Contains(err.Error(), "{run} in it once") {
		t.Errorf("`muster up` printed: %v", err)
	}
	check(t, f.Up())
	must(f.Muster("down"))(t)
	path := filepath.Join(f.Home, "config", "aggregator.yaml")
	text := must(os.ReadFile(path))(t)
	check(t, os.WriteFile(path, []byte(strings.Replace(string(text), "legacy_host: \"\"", "legacy_host: \"{run}.Example\"", 1)), 0o600))
	if err := f.Up(); err == nil || !strings.Contains(f.Logs(), "aggregator.yaml:") || !strings.Contains(f.Logs(), "legacy_host: \"{run}.Example\" is not valid") {
		t.Errorf("`muster up` printed: %v\n%s", err, f.Logs())
	}
}
