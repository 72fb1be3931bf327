package rudder

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/services/client/go/mustertest"
)

// pathOf returns the path of a file in the folder of shared files.
func (s *testRelay) pathOf(name string) string { return filepath.Join(s.config.FilesFolder(), name) }

// must ends the test with the first error.
func must(t *testing.T, all ...error) {
	t.Helper()
	for _, err := range all {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestUploadWhoseContentCannotBeReadForAWhileIsDelivered(t *testing.T) {
	f := startExtendedTree(t)
	f.root.stop()
	u := f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", content))
	// A link to itself fails with ELOOP, for any user. It replaces the file in one step.
	file := f.r1.pathOf(u.file())
	kept, link := filepath.Join(t.TempDir(), "kept"), file+".link"
	must(t, os.Link(file, kept), os.Symlink(u.ID, link), os.Rename(link, file))
	mustertest.Await(t, "the upload has the reason", func() bool {
		return strings.HasPrefix(f.r1.awaitState(u.ID, statePending).Reason, "cannot read its content: ")
	})
	must(t, os.Rename(kept, file))
	f.root.restart()
	f.r1.awaitState(u.ID, stateDelivered)
	if got := f.root.read("shared-files-nodes/r3/n-e/n-c/file"); got != content {
		t.Errorf("%q", got)
	}
}

func TestUploadWithoutContentIsRefused(t *testing.T) {
	f := startExtendedTree(t)
	f.root.stop()
	u := f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", content))
	must(t, os.Remove(f.r1.pathOf(u.file())))
	if u = f.r1.awaitState(u.ID, stateRefused); u.Code != 500 || !strings.HasPrefix(u.Reason, "its content is missing: ") {
		t.Errorf("%+v", u)
	}
}

func TestDeliveryIsNotRepeatedIfItsOutcomeCannotBeWritten(t *testing.T) {
	f := startExtendedTree(t)
	f.root.stop()
	older := f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", "older"))
	away := f.r1.pathOf("away")
	must(t, os.Rename(f.r1.pathOf(incoming), away))
	f.root.restart()
	f.r1.awaitState(older.ID, stateDelivered)
	must(t, os.Rename(away, f.r1.pathOf(incoming)))
	newer := f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", "newer"))
	f.r1.awaitState(newer.ID, stateDelivered)
	f.r1.restart()
	if got := f.r1.call("GET", "shared-files/uploads/"+older.ID, nil); got.code != 404 {
		t.Error("the delivery is repeated", got)
	}
	if got := f.root.read("shared-files-nodes/r3/n-e/n-c/file"); got != "newer" {
		t.Error(got)
	}
	if left, err := filepath.Glob(f.r1.pathOf(spoolFolder + "/*")); err != nil || len(left) != 1 || left[0] != f.r1.pathOf(newer.details()) {
		t.Error(left, err)
	}
}

func TestContentThatCannotBeRemovedIsRemovedLater(t *testing.T) {
	var s *testRelay
	var obstacle string
	s = startBelow(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		files, err := filepath.Glob(s.pathOf(spoolFolder + "/*" + uploadDetails))
		if err != nil || len(files) != 1 {
			t.Error(files, err)
			return
		}
		file := strings.TrimSuffix(files[0], uploadDetails)
		obstacle = filepath.Join(file, "obstacle") // a folder that is not empty cannot be removed
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
		if err := os.MkdirAll(obstacle, 0o700); err != nil {
			t.Error(err)
		}
	})
	s.awaitState(s.uploadOf(s.share("n-e", "n-c", "file", content)).ID, stateDelivered)
	if s.spoolFolder() != 1 {
		t.Error("the content is removed already")
	}
	must(t, os.Remove(obstacle))
	s.server.spool.forget(time.Now())
	if s.spoolFolder() != 0 {
		t.Error("the content is kept")
	}
}

func TestContentOfEndedUploadIsRemovedAtStart(t *testing.T) {
	s := startBelow(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	u := s.awaitState(s.uploadOf(s.share("n-e", "n-c", "file", content)).ID, stateDelivered)
	s.write("shared-files-nodes/"+u.file(), content) // as if the process had been killed after it wrote the outcome
	s.restart()
	if s.spoolFolder() != 0 {
		t.Error("the content is kept")
	}
	s.awaitState(u.ID, stateDelivered)
}
