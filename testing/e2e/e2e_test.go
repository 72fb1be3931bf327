// Package e2e tests Muster's real programs in a separate home, on free ports. Set MUSTER_BIN to the folder of the
// programs (testing/programs builds them); see docs/testing.md.
package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const soon = 30 * time.Second // bounds waits for a condition

// up starts a fleet for the test. If the test fails, the services' logs are printed.
func up(t *testing.T, arguments ...string) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New("")
	check(t, err)
	closeAtEnd(t, f)
	check(t, f.Up(arguments...))
	return f
}

func closeAtEnd(t *testing.T, f *fleet.Fleet) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.Logs())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// peakMemory returns the peak memory of a service. Go's race detector, with which `testing/nightly gorace` builds the
// gateway, takes up to ten times the memory (https://go.dev/doc/articles/race_detector).
func peakMemory(p fleet.Process) int64 {
	if p.Name == fleet.Gateway && os.Getenv("MUSTER_RACE") != "" {
		return p.PeakMemory() / 10
	}
	return p.PeakMemory()
}

// must fails the test on an error, otherwise returns the value.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantExit fails unless a command ended with this code and printed all of these texts.
func wantExit(t *testing.T, err error, code int, says ...string) {
	t.Helper()
	var exit *fleet.CommandError
	if code == 0 && err == nil {
		return
	}
	if !errors.As(err, &exit) || exit.ExitCode != code {
		t.Errorf("got %v, want exit code %d", err, code)
		return
	}
	for _, text := range says {
		if !strings.Contains(exit.Stderr, text) {
			t.Errorf("%s does not print %q: %s", exit.Command, text, exit.Stderr)
		}
	}
}

// until waits for a condition.
func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	check(t, fleet.Until(soon, what, ready))
}

// execPlugin returns a definition without an image: an agent runs the shell text, with the folder for results in
// RESULTS_DIR.
func execPlugin(name, driver, shell string) string {
	quoted, _ := json.Marshal(shell) // JSON is YAML
	return fmt.Sprintf("sonobuoy-config:\n  driver: %s\n  plugin-name: %s\n  result-format: raw\n"+
		"spec:\n  name: plugin\n  command: [\"/bin/sh\", \"-c\"]\n  args: [%s]\n", driver, name, quoted)
}

// sidecarPlugin returns a definition with an image: a sidecar delivers for it.
func sidecarPlugin(name, driver string) string {
	return fmt.Sprintf("sonobuoy-config:\n  driver: %s\n  plugin-name: %s\n  result-format: raw\n"+
		"spec:\n  name: plugin\n  image: example/plugin:v1\n", driver, name)
}

// run creates a run of these definitions on these nodes.
func run(t *testing.T, f *fleet.Fleet, definitions []string, nodes ...string) string {
	t.Helper()
	var arguments []string
	for _, definition := range definitions {
		file := must(os.CreateTemp(f.Home, "plugin-*.yaml"))(t)
		_, err := file.WriteString(definition)
		check(t, errors.Join(err, file.Close()))
		arguments = append(arguments, "-f", file.Name())
	}
	for _, node := range nodes {
		arguments = append(arguments, "--node", node)
	}
	return must(f.CreateRun(arguments...))(t)
}

// api is the aggregator's API as the operator of this home.
type api struct {
	runs     musterv1.RunServiceClient
	results  musterv1.ResultServiceClient
	archives musterv1.ArchiveServiceClient
}

func operator(t *testing.T, f *fleet.Fleet) api {
	t.Helper()
	o := must(f.Operator())(t)
	connection := must(o.GRPC(tls.VersionTLS13))(t)
	t.Cleanup(func() { connection.Close() })
	return api{musterv1.NewRunServiceClient(connection), musterv1.NewResultServiceClient(connection),
		musterv1.NewArchiveServiceClient(connection)}
}

// result requests the outcome of a pair.
func (a api) result(t *testing.T, run, plugin, node string) *musterv1.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	return must(a.results.GetResult(ctx, &musterv1.GetResultRequest{
		Key: &musterv1.ResultKey{Run: run, Plugin: plugin, Node: node}}))(t)
}

// awaitState waits for a run's state.
func (a api) awaitState(t *testing.T, run string, want musterv1.RunState) {
	t.Helper()
	var last *musterv1.Run
	err := fleet.Until(soon, "the run is "+want.String(), func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		answer, err := a.runs.GetRun(ctx, &musterv1.GetRunRequest{Run: run})
		if err == nil {
			last = answer
		}
		return err == nil && answer.State == want
	})
	if err != nil {
		t.Fatalf("%v; it was %v", err, last)
	}
}

// archive retrieves a complete run's archive with the CLI and returns its files.
func archive(t *testing.T, f *fleet.Fleet, run string) map[string]string {
	t.Helper()
	file := filepath.Join(f.Home, run+".tar.gz")
	must(f.Muster("retrieve", run, "-o", file))(t)
	packed := must(os.Open(file))(t)
	defer packed.Close()
	reader := tar.NewReader(must(gzip.NewReader(packed))(t))
	files := map[string]string{}
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return files
		}
		check(t, err)
		text := must(io.ReadAll(reader))(t)
		if header.Typeflag == tar.TypeReg {
			files[path.Clean(header.Name)] = string(text)
		}
	}
}

// wantFile fails unless the archive has this file with this content.
func wantFile(t *testing.T, files map[string]string, name, content string) {
	t.Helper()
	if got, found := files[name]; !found {
		t.Errorf("no %s in the archive, but %s", name, strings.Join(names(files), ", "))
	} else if got != content {
		t.Errorf("%s holds %.200q, want %.200q", name, got, content)
	}
}

func names(files map[string]string) []string {
	var all []string
	for name := range files {
		all = append(all, name)
	}
	return all
}
