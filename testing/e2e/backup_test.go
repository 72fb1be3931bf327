package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// backedUp is the output of `muster backup --json`.
type backedUp struct {
	Files         int
	Home          string
	Keys, Omitted []string
	Damaged       []damagedFile
}

type damagedFile struct{ File, Run, Plugin, Node string }

// lose kills all processes of the home and moves it away, as if the machine were lost.
func lose(t *testing.T, f *fleet.Fleet) (old string) {
	t.Helper()
	for _, process := range f.Processes() {
		process.Kill()
	}
	old = f.Home + ".lost"
	check(t, os.Rename(f.Home, old))
	t.Cleanup(func() { os.RemoveAll(old) })
	return old
}

// wantPrivate fails unless each file of a backup has mode 0600, and each with a key is listed.
func wantPrivate(t *testing.T, backup string, keys []string) {
	t.Helper()
	home := filepath.Join(backup, "home")
	check(t, filepath.WalkDir(backup, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if mode := must(entry.Info())(t).Mode(); mode != 0o600 {
			t.Errorf("%s has mode %v", path, mode)
		}
		relative := must(filepath.Rel(home, path))(t)
		content := must(os.ReadFile(path))(t)
		if bytes.Contains(content, []byte("PRIVATE KEY")) && !slices.Contains(keys, relative) {
			t.Errorf("the backup does not list the key %s in %v", relative, keys)
		}
		return nil
	}))
}

// A backup of running services that receive results, and delete some, is consistent: the restored services have every
// result that was acknowledged before the backup, each with its digest, and continue the run.
func TestBackupUnderLoadIsRestored(t *testing.T) {
	t.Parallel()
	f := up(t)
	const small, large = 300, 40
	nodes := []string{"late"}
	for i := range small {
		nodes = append(nodes, fmt.Sprintf("n%d", i))
	}
	for i := range large {
		nodes = append(nodes, fmt.Sprintf("large%d", i))
	}
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, nodes...)
	late, anyNode := must(f.Export(id, "logs", "late"))(t), must(f.Export(id, "logs", ""))(t)
	text := func(i int) string { return fmt.Sprintf("content %d", i) }
	a := operator(t, f)
	var acknowledged []*musterv1.Result // before the backup began
	for i := range small / 3 {
		node := fmt.Sprintf("n%d", i)
		check(t, submit(t, anyNode, id, "logs", node, text(i)))
		acknowledged = append(acknowledged, a.result(t, id, "logs", node))
	}
	for i := range 4 {
		node := fmt.Sprintf("large%d", i)
		deliverBlob(t, f, must(f.Export(id, "logs", node))(t))
		acknowledged = append(acknowledged, a.result(t, id, "logs", node))
	}

	stop := make(chan struct{})
	var load sync.WaitGroup
	repeat := func(from, to int, step func(i int) error) {
		load.Add(1)
		go func() {
			defer load.Done()
			for i := from; i < to; i++ {
				select {
				case <-stop:
					return
				default:
					if err := step(i); err != nil {
						t.Errorf("during the backup: %v", err)
						return
					}
				}
			}
		}()
	}
	repeat(small/3, small, func(i int) error { return submit(t, anyNode, id, "logs", fmt.Sprintf("n%d", i), text(i)) })
	repeat(4, large, func(i int) error {
		deliverBlob(t, f, must(f.Export(id, "logs", fmt.Sprintf("large%d", i)))(t))
		return nil
	})
	repeat(0, 1000, func(int) error {
		other := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
		deliverBlob(t, f, must(f.Export(other, "logs", "n1"))(t))
		a.awaitState(t, other, musterv1.RunState_RUN_STATE_COMPLETE)
		_, err := f.Muster("delete", other)
		return err
	})
	backup := filepath.Join(t.TempDir(), "backup")
	var report backedUp
	err := f.JSON(&report, "backup", "-o", backup)
	close(stop)
	load.Wait()
	check(t, err)
	if len(report.Damaged) > 0 || !slices.Contains(report.Keys, "root/ca.key") || !slices.Contains(report.Omitted, "relay/spool") {
		t.Errorf("the backup reported %+v", report)
	}
	wantPrivate(t, backup, report.Keys)
	_, err = f.Muster("backup", "-o", backup)
	wantExit(t, err, 1, "is not empty")
	_, err = f.Muster("restore", backup)
	wantExit(t, err, 1, "the services of "+f.Home+" are running")

	lose(t, f)
	var restored backedUp
	check(t, f.JSON(&restored, "restore", backup))
	if !slices.Equal(restored.Keys, report.Keys) || restored.Home != f.Home {
		t.Errorf("the restore reported %+v", restored)
	}
	_, err = f.Muster("restore", backup)
	wantExit(t, err, 1, "is not empty")
	check(t, f.Up())
	var sound verified
	check(t, f.JSON(&sound, "verify"))
	if len(sound.Damaged) > 0 || sound.Database != "" || sound.Results < int64(len(acknowledged)) {
		t.Errorf("the restored store: %+v", sound)
	}
	a = operator(t, f)
	for _, before := range acknowledged {
		node := before.Key.Node
		after := a.result(t, id, "logs", node)
		if after.Outcome != before.Outcome || !bytes.Equal(after.Sha256, before.Sha256) {
			t.Errorf("the result of %s was %v, and is %v", node, before, after)
		}
		if err := a.read(t, id, "logs", node); err != io.EOF {
			t.Errorf("the restored result of %s: %v", node, err)
		}
	}
	// Results that were delivered during the backup are in the copy or are accepted again.
	for i := range small {
		check(t, submit(t, anyNode, id, "logs", fmt.Sprintf("n%d", i), text(i)))
	}
	for i := range large {
		deliverBlob(t, f, must(f.Export(id, "logs", fmt.Sprintf("large%d", i)))(t))
	}
	check(t, submit(t, late, id, "logs", "late", "after"))
	a.awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	until(t, "the status service has the end of the run", func() bool {
		out, _ := f.Muster("status", id)
		return strings.Contains(out, fmt.Sprintf("%d of %d results", len(nodes), len(nodes)))
	})
}

// A damaged backup restores nothing, and the error names the file.
func TestDamagedBackupIsNotRestored(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "never")
	deliverBlob(t, f, must(f.Export(id, "logs", "n1"))(t))
	backup := filepath.Join(t.TempDir(), "backup")
	must(f.Muster("backup", "-o", backup))(t)
	damaged := blobIn(t, filepath.Join(backup, "home"), "/results/")
	flip(t, blobOf(t, f, "/results/"))
	out, err := f.Muster("backup", "-o", backup+"2", "--json")
	wantExit(t, err, damagedExit, "Damaged or missing in the store: 1")
	var report backedUp
	check(t, json.Unmarshal([]byte(out), &report))
	want := damagedFile{File: "aggregator/blobs/blobs" + strings.SplitN(damaged, "/aggregator/blobs/blobs", 2)[1], Run: id, Plugin: "logs", Node: "n1"}
	if len(report.Damaged) != 1 || report.Damaged[0] != want {
		t.Errorf("a backup of a damaged store reported %+v", report)
	}

	old := lose(t, f)
	flip(t, damaged)
	_, err = f.Muster("restore", backup)
	wantExit(t, err, 1, damaged+" differs from its checksum")
	check(t, os.Remove(damaged))
	_, err = f.Muster("restore", backup)
	wantExit(t, err, 1, damaged+" is missing")
	_, err = f.Muster("restore", filepath.Join(backup, "home"))
	wantExit(t, err, 1, "is not a complete backup")
	if left := must(filepath.Glob(f.Home + "*"))(t); len(left) != 1 {
		t.Errorf("the refused restore left %v", left)
	}

	check(t, os.MkdirAll(filepath.Join(f.Home, ".restoring"), 0o700))
	_, err = f.Muster("up")
	wantExit(t, err, 1, "a restore to "+f.Home+" did not end")
	must(f.Muster("restore", backup+"2"))(t)
	check(t, f.Up())
	wantError(t, operator(t, f).read(t, id, "logs", "n1"), codes.DataLoss, "RESULT_DAMAGED")
	check(t, os.RemoveAll(old))
}
