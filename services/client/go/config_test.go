package muster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/services/client/go"
	"muster.example/services/client/go/mustertest"
)

func TestConfigErrorsNameField(t *testing.T) {
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"unknown":      {func(m map[string]any) { m["grpc_target"] = "x" }, "grpc_target: no such field"},
		"a wrong type": {func(m map[string]any) { m["plugin"] = 5 }, "plugin: the value is not a string"},
		"null":         {func(m map[string]any) { m["plugin"] = nil }, "plugin: the value is not a string"},
		"a duration":   {func(m map[string]any) { m["done_file_delay"] = "fast" }, "done_file_delay: the value is not a duration"},
		"no plugin":    {func(m map[string]any) { delete(m, "plugin") }, "plugin (RESULT_TYPE) is missing"},
		"no target":    {func(m map[string]any) { delete(m, "grpc_targets") }, "grpc_targets or aggregator_url"},
		"no root":      {func(m map[string]any) { m["fleet_ca_cert"] = "x" }, "fleet_ca_cert: no certificate found"},
		"no key":       {func(m map[string]any) { delete(m, "client_key") }, "client_cert and client_key"},
		"plain HTTP": {func(m map[string]any) {
			delete(m, "grpc_targets")
			m["aggregator_url"], m["ca_cert"] = "http://x", m["fleet_ca_cert"]
		}, "does not begin with https://"},
		"an open key": {func(m map[string]any) {
			path := filepath.Join(t.TempDir(), "key")
			_ = os.WriteFile(path, []byte(m["client_key"].(string)), 0o644)
			delete(m, "client_key")
			m["client_key_file"] = path
		}, "is readable by others"},
	} {
		w := start(t)
		c.change(w.config)
		if _, err := w.load(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnvironmentOverridesFile(t *testing.T) {
	w := start(t)
	for name, value := range map[string]string{
		"MUSTER_GRPC_TARGETS": "a:1,b:2", "RESULT_TYPE": "q", "NODE_NAME": "n7", "SONOBUOY_RESULTS_DIR": "/r",
		"SONOBUOY_DONE_FILE_DELAY": "7s", "MUSTER_DEADLINE": "2030-01-02T03:04:05Z", "MASTER_URL": "https://old",
	} {
		t.Setenv(name, value)
	}
	config, err := w.load()
	if err != nil {
		t.Fatal(err)
	}
	if len(config.GRPCTargets) != 2 || config.Plugin != "q" || config.Node != "n7" || config.ResultsDir != "/r" ||
		config.DoneFileDelay.String() != "7s" || config.Deadline.Year() != 2030 || config.AggregatorURL != "https://old" || config.Run != run {
		t.Errorf("%+v", config)
	}
	t.Setenv("SONOBUOY_DONE_FILE_DELAY", "soon")
	if _, err := w.load(); err == nil || !strings.Contains(err.Error(), "SONOBUOY_DONE_FILE_DELAY") {
		t.Error(err)
	}
}

func TestRunAndNodeComeFromCertificate(t *testing.T) {
	w := start(t)
	config, err := w.load()
	if err != nil || config.Run != run || config.Node != "n1" {
		t.Errorf("%v %+v", err, config)
	}
	// A Job's sidecar has the machine's name in its environment.
	w.config["client_cert"], w.config["client_key"] = mustertest.PEM(w.run.Signed.Leaf(w.run.URI("plugin/p/node/global")))
	t.Setenv("NODE_NAME", "machine7")
	if config, err := w.load(); err != nil || config.Node != muster.Global {
		t.Errorf("%v %+v", err, config)
	}
}
