package e2e

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	damagedExit = 10 // of `muster verify`
	blobSize    = 300_000
)

// verified is the output of `muster verify --json`.
type verified struct {
	Results      int64  `json:"results"`
	RemovedFiles int64  `json:"removed_files"`
	Database     string `json:"database_damage"`
	Damaged      []struct {
		Run, Plugin, Node, Damage string
		Archive                   bool
	} `json:"damaged"`
}

// wantSoundStore fails if the store has other objects (results and archives), or if the aggregator or one of these
// spools of relays has bytes that belong to none.
func wantSoundStore(t *testing.T, f *fleet.Fleet, objects int64, spools ...string) {
	t.Helper()
	for _, folder := range append([]string{filepath.Join(f.Home, "aggregator", "blobs", "staged")}, spools...) {
		var left []string
		if err := fleet.Until(soon, "nothing is staged", func() bool { left = filesBelow(folder); return len(left) == 0 }); err != nil {
			t.Errorf("%v: %v", err, left)
		}
	}
	var got verified
	check(t, f.JSON(&got, "verify"))
	if got.Results != objects || len(got.Damaged) != 0 || got.Database != "" || got.RemovedFiles != 0 {
		t.Errorf("muster verify reports %+v, want %d sound ones and no other files", got, objects)
	}
}

// filesBelow returns the files of a folder, except locks and databases.
func filesBelow(folder string) (files []string) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && entry.Name() != "lock" && !strings.Contains(entry.Name(), ".db") {
			files = append(files, path)
		}
		return nil
	})
	return files
}

func (a api) damagedOf(t *testing.T, run string) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	return must(a.runs.GetRun(ctx, &musterv1.GetRunRequest{Run: run}))(t).DamagedResults
}

// deliverBlob delivers a result that is too large for the database.
func deliverBlob(t *testing.T, f *fleet.Fleet, credential *fleet.Credential) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "blob")
	check(t, os.WriteFile(file, bytes.Repeat([]byte("blob"), blobSize/4), 0o600))
	credential.StateDir = t.TempDir()
	config := must(f.WriteCredential("blob-"+credential.Node+".json", credential))(t)
	must(f.Muster("submit", file, "--config", config))(t)
}

// blobOf returns the only stored file whose path contains `part`.
func blobOf(t *testing.T, f *fleet.Fleet, part string) string {
	t.Helper()
	return blobIn(t, f.Home, part)
}

// blobIn does the same in a home.
func blobIn(t *testing.T, home, part string) (found string) {
	t.Helper()
	check(t, filepath.WalkDir(filepath.Join(home, "aggregator", "blobs", "blobs"),
		func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && strings.Contains(path, part) {
				found = path
			}
			return err
		}))
	if found == "" {
		t.Fatalf("no stored file has %q in its path", part)
	}
	return found
}

// flip changes one byte of a file, as a bad disk does.
func flip(t *testing.T, path string) {
	t.Helper()
	file := must(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer file.Close()
	var one [1]byte
	must(file.ReadAt(one[:], 100_000))(t)
	one[0] ^= 1
	must(file.WriteAt(one[:], 100_000))(t)
}

func damagedResults(t *testing.T, f *fleet.Fleet, want string) bool {
	t.Helper()
	return strings.Contains(must(metrics(f, "aggregator"))(t), "\nmuster_damaged_results "+want+"\n")
}

// read reads a stored result and returns the error at its end.
func (a api) read(t *testing.T, run, plugin, node string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	stream := must(a.results.ReadResult(ctx, &musterv1.ReadResultRequest{
		Key: &musterv1.ResultKey{Run: run, Plugin: plugin, Node: node}}))(t)
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// A verification finds a damaged result while the services run; reads of it fail until it is delivered again.
func TestVerificationFindsDamageAndDeliveryMendsIt(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2", "never")
	small, large := must(f.Export(id, "logs", "n1"))(t), must(f.Export(id, "logs", "n2"))(t)
	check(t, submit(t, small, id, "logs", "n1", "small"))
	deliverBlob(t, f, large)
	a := operator(t, f)
	if out := must(f.Muster("verify"))(t); strings.TrimSpace(out) != "" {
		t.Errorf("a sound store: %q", out)
	}
	var report verified
	check(t, f.JSON(&report, "verify", id))
	if report.Results != 2 || len(report.Damaged) != 0 {
		t.Errorf("a sound run: %+v", report)
	}

	flip(t, blobOf(t, f, "/results/"))
	out, err := f.Muster("verify", id[:6])
	wantExit(t, err, damagedExit, "1 damaged")
	if !strings.Contains(out, "n2") || !strings.Contains(out, "the CRC32C differs") {
		t.Errorf("verify printed %q", out)
	}
	wantError(t, a.read(t, id, "logs", "n2"), codes.DataLoss, "RESULT_DAMAGED")
	if err := a.read(t, id, "logs", "n1"); err != io.EOF {
		t.Errorf("the sound result: %v", err)
	}
	if out := must(f.Muster("results", id))(t); !strings.Contains(out, "damaged: the CRC32C differs") {
		t.Errorf("results printed %q", out)
	}
	until(t, "status shows the damage", func() bool {
		out, _ := f.Muster("status", id) // its exit code is the state of the run
		return strings.Contains(out, "1 damaged stored result or archive")
	})
	if got := a.result(t, id, "logs", "n2"); got.Damage != "the CRC32C differs" || a.damagedOf(t, id) != 1 {
		t.Errorf("the damaged result: %v", got)
	}
	if !damagedResults(t, f, "1") {
		t.Error("the metric does not show the damage")
	}

	deliverBlob(t, f, large)
	check(t, f.JSON(&report, "verify"))
	// The damaged file: the aggregator removes it automatically, too.
	if report.RemovedFiles > 1 || report.Database != "" || len(report.Damaged) != 0 {
		t.Errorf("after the delivery: %+v", report)
	}
	if err := a.read(t, id, "logs", "n2"); err != io.EOF {
		t.Errorf("the mended result: %v", err)
	}
	if got := a.result(t, id, "logs", "n2"); got.Generation != 1 || got.Damage != "" || a.damagedOf(t, id) != 0 {
		t.Errorf("the mended result: %v", got)
	}
	if !damagedResults(t, f, "0") {
		t.Error("the metric still shows damage")
	}
}

// Damage of a sealed run, and of its archive, is shown and not served.
func TestDamageOfSealedRunIsNotServed(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	deliverBlob(t, f, must(f.Export(id, "logs", "n1"))(t))
	a := operator(t, f)
	a.awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	check(t, os.Remove(blobOf(t, f, "/results/")))
	out, err := f.Muster("verify", id)
	wantExit(t, err, damagedExit, "1 damaged")
	if !strings.Contains(out, "the stored file is missing") {
		t.Errorf("verify printed %q", out)
	}
	var retrieved struct {
		Damaged int64 `json:"damaged_results"`
	}
	check(t, f.JSON(&retrieved, "retrieve", id, "--output", t.TempDir()))
	if retrieved.Damaged != 1 {
		t.Errorf("retrieve reported %+v", retrieved)
	}

	archive := blobOf(t, f, "/archive/")
	content := must(os.ReadFile(archive))(t)
	content[len(content)/2] ^= 1
	check(t, os.WriteFile(archive, content, 0o600))
	out, err = f.Muster("verify", id)
	wantExit(t, err, damagedExit, "2 damaged")
	if !strings.Contains(out, "(archive)") || !strings.Contains(out, "the SHA-256 differs") {
		t.Errorf("verify printed %q", out)
	}
	refused := filepath.Join(t.TempDir(), "x.tar.gz")
	_, err = f.Muster("retrieve", id, "--output", refused)
	wantExit(t, err, 64+int(codes.DataLoss), "the stored archive of run", "is damaged", "muster results "+id+" -p PLUGIN -n NODE -o FILE")
	if left := must(filepath.Glob(refused + "*"))(t); len(left) != 0 {
		t.Errorf("the refused download left %v", left)
	}
	wantError(t, a.read(t, id, "logs", "n1"), codes.DataLoss, "RESULT_DAMAGED")
	until(t, "status shows the damage", func() bool {
		out, _ := f.Muster("status", id) // its exit code is the state of the run
		return strings.Contains(out, "2 damaged stored results or archives") &&
			strings.Contains(out, "n1    the stored file is missing") && strings.Contains(out, "(archive)")
	})
	if out := must(f.Muster("runs"))(t); !strings.Contains(out, "2 damaged") {
		t.Errorf("runs printed %s", out)
	}
	var status struct {
		Plugins []struct{ Node, Damage string }
		Damaged []struct{ Node string }
	}
	check(t, f.JSON(&status, "status", id))
	if len(status.Damaged) != 2 || status.Plugins[0].Damage != "the stored file is missing" {
		t.Errorf("the JSON of status has %+v", status)
	}
}

// The stored results of a run whose archive is damaged are listed and saved, one by one.
func TestResultsOfADamagedArchiveAreRead(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	check(t, submit(t, must(f.Export(id, "logs", "n2"))(t), id, "logs", "n2", "small"))
	deliverBlob(t, f, must(f.Export(id, "logs", "n1"))(t))
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	check(t, os.Remove(blobOf(t, f, "/archive/")))
	must(f.Muster("results", id, "-p", "logs", "-n", "n2", "-o", filepath.Join(t.TempDir(), "before")))(t)
	_, err := f.Muster("verify", id)
	wantExit(t, err, damagedExit, "1 damaged")

	out, err := f.Muster("results", id)
	wantExit(t, err, damagedExit, "the stored archive of run", "(ARCHIVE_DAMAGED)", "-p PLUGIN -n NODE -o FILE")
	if !strings.Contains(out, "n1") || !strings.Contains(out, "n2") {
		t.Errorf("results printed %q", out)
	}
	_, err = f.Muster("results", id, "--mode", "dump")
	wantExit(t, err, 64+int(codes.DataLoss), "ARCHIVE_DAMAGED")
	folder := t.TempDir()
	file := filepath.Join(folder, "n1")
	if out := must(f.Muster("results", id[:6], "-p", "logs", "-n", "n1", "-o", file))(t); out != file+"\n" {
		t.Errorf("results printed %q", out)
	}
	if got := must(os.ReadFile(file))(t); !bytes.Equal(got, bytes.Repeat([]byte("blob"), blobSize/4)) {
		t.Errorf("the saved result has %d bytes", len(got))
	}
	_, err = f.Muster("results", id, "-p", "logs", "-n", "n2", "-o", file)
	wantExit(t, err, 1, "FILE_EXISTS")
	_, err = f.Muster("results", id, "-p", "logs", "-n", "n3", "-o", file+"3")
	wantExit(t, err, 64+int(codes.PermissionDenied), "PAIR_NOT_PLANNED", "muster status RUN --json")
	_, err = f.Muster("results", id, "-p", "logs", "-o", file+"3")
	wantExit(t, err, 2, "--node is required")
	_, err = f.Muster("results", id, "-p", "nope", "-o", file+"3")
	wantExit(t, err, 1, "PLUGIN_NOT_FOUND")
	_, err = f.Muster("results", id, "-o", file)
	wantExit(t, err, 2, "--output needs --plugin")
}

// Damage of a complete run is named beside the report of its archive.
func TestResultsOfACompleteRunNameTheDamage(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	deliverBlob(t, f, must(f.Export(id, "logs", "n1"))(t))
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	flip(t, blobOf(t, f, "/results/"))
	_, err := f.Muster("verify", id)
	wantExit(t, err, damagedExit, "1 damaged")
	_, stderr, code := machine{fleet: f, home: f.Home}.muster(t, nil, "results", id)
	if code != 0 || !strings.Contains(stderr, "1 damaged stored result or archive") || !strings.Contains(stderr, "logs    n1    the CRC32C differs") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	_, err = f.Muster("results", id, "-p", "logs", "-n", "n1", "-o", filepath.Join(t.TempDir(), "n1"))
	wantExit(t, err, 64+int(codes.DataLoss), "RESULT_DAMAGED")
}

// Without a command, the aggregator reads its store again and again, also after a restart.
func TestBackgroundVerificationFindsDamage(t *testing.T) {
	t.Parallel()
	f := up(t)
	check(t, f.Configure("aggregator", map[string]string{"verify.every": "1s"}))
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "never")
	deliverBlob(t, f, must(f.Export(id, "logs", "n1"))(t))
	flip(t, blobOf(t, f, "/results/"))
	until(t, "the damage is found", func() bool { return damagedResults(t, f, "1") })
	wantError(t, operator(t, f).read(t, id, "logs", "n1"), codes.DataLoss, "RESULT_DAMAGED")
	kill(t, f)
	until(t, "the restarted aggregator reports its metrics", func() bool {
		_, err := metrics(f, "aggregator")
		return err == nil
	})
	if !damagedResults(t, f, "1") {
		t.Error("the restart forgot the damage")
	}
}
