package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// grpcurl runs the version that bazel/tools/go.mod pins, as the operator, and returns its output.
func grpcurl(t *testing.T, o *fleet.Operator, before []string, after ...string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"ca": o.FleetCA, "cert": o.Certificate, "key": o.Key} {
		check(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	arguments := append([]string{"-C", "../../bazel/tools", "tool", "grpcurl", "-cacert", filepath.Join(folder, "ca"),
		"-cert", filepath.Join(folder, "cert"), "-key", filepath.Join(folder, "key")}, before...)
	out, err := exec.Command("go", append(arguments, after...)...).CombinedOutput()
	return string(out), err
}

func TestGrpcurlListsAndCalls(t *testing.T) {
	t.Parallel()
	f := up(t)
	o := must(f.Operator())(t)
	list := must(grpcurl(t, o, nil, o.Aggregator[0], "list"))(t)
	for _, service := range []string{"muster.v1.RunService", "muster.v1.ResultService", "muster.v1.ArchiveService",
		"muster.v1.ChangeService", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} {
		if !strings.Contains(list, service+"\n") {
			t.Errorf("%s is not in the list:\n%s", service, list)
		}
	}
	created := must(grpcurl(t, o, []string{"-d", `{"plugins": ["hostfacts"], "nodes": ["n1"], "title": "by hand"}`},
		o.Aggregator[0], "muster.v1.RunService/CreateRun"))(t)
	if !strings.Contains(created, "RUN_STATE_PLANNED") {
		t.Errorf("CreateRun gave %s", created)
	}
	if runs := must(f.Muster("runs"))(t); !strings.Contains(runs, "by hand") && !strings.Contains(created, strings.Fields(runs)[0]) {
		t.Logf("muster runs: %s", runs)
	}
	if out, err := grpcurl(t, o, []string{"-d", `{"run": "0000000000000000"}`}, o.Aggregator[0],
		"muster.v1.RunService/GetRun"); err == nil || !strings.Contains(out, "NotFound") || !strings.Contains(out, "RUN_NOT_FOUND") {
		t.Errorf("GetRun of an unknown run gave %v:\n%s", err, out)
	}
	if out, err := grpcurl(t, o, nil, o.Aggregator[0], "grpc.health.v1.Health/Check"); err != nil {
		t.Errorf("health: %v %s", err, out)
	}
}
