package muster_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/services/client/go"
)

func TestWorkerDeliversFileOfDoneFile(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *fixture) string // returns the done file's content
		want    string                  // the result; an error result if it begins with "!"
	}{
		"a file":     {func(w *fixture) string { return w.file("r", []byte("result")) }, "result"},
		"with space": {func(w *fixture) string { return "  " + w.file("r x", []byte("result")) + " \n\n" }, "result"},
		"relative":   {func(w *fixture) string { w.file("r", []byte("result")); return "r" }, "result"},
		"missing":    {func(w *fixture) string { return "/tmp/none-of-this" }, "!cannot open"},
		"empty":      {func(*fixture) string { return " \n" }, "!does not name a file"},
		"outside":    {func(*fixture) string { return "/etc/hostname" }, "!outside"},
		"climbing":   {func(*fixture) string { return "../../../../etc/hostname" }, "!outside"},
		"huge":       {func(*fixture) string { return strings.Repeat("x", 70<<10) }, "!is not a file of at most"},
		"a result too big": {func(w *fixture) string {
			w.config["max_result_bytes"] = 3
			return w.file("r", []byte("result"))
		}, "!more than max_result_bytes"},
		"a link outside": {func(w *fixture) string {
			path := filepath.Join(w.results, "link")
			if err := os.Symlink("/etc/hostname", path); err != nil {
				w.t.Fatal(err)
			}
			return path
		}, "!outside"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			text := c.prepare(w)
			client := w.client()
			w.file("done", []byte(text))
			_, err := client.WaitAndDeliver(t.Context())
			got := w.committed("n1")
			if want, bad := strings.CutPrefix(c.want, "!"); bad {
				var none *muster.NoResult
				if !errors.As(err, &none) || !strings.Contains(err.Error(), want) || got == nil || !got.Description.IsError || !strings.Contains(string(got.Data), want) {
					t.Errorf("%v, delivered %+v", err, got)
				}
			} else if err != nil || string(got.Data) != want {
				t.Errorf("%v, delivered %+v", err, got)
			}
		})
	}
}

// A plugin may link to a file that only the sidecar can read.
func TestWorkerDeliversNoFileOutsideThatPluginLinksTo(t *testing.T) {
	const secret = "of another user"
	for name, prepare := range map[string]func(w *fixture, outside string) error{
		"in place of the archive": func(w *fixture, outside string) error {
			folder := filepath.Join(w.results, "out")
			done, earlier := w.file("done", []byte("out")), time.Now().Add(-time.Hour)
			return errors.Join(os.Mkdir(folder, 0o700), os.Symlink(outside, filepath.Join(folder, "results.tar.gz")),
				os.Chtimes(done, earlier, earlier))
		},
		"in place of the done file": func(w *fixture, outside string) error {
			return os.Symlink(outside, filepath.Join(w.results, "done"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			outside := filepath.Join(t.TempDir(), "secret")
			if err := errors.Join(os.WriteFile(outside, []byte(secret), 0o600), prepare(w, outside)); err != nil {
				t.Fatal(err)
			}
			_, err := w.client().WaitAndDeliver(t.Context())
			got := w.committed("n1")
			if got == nil || strings.Contains(string(got.Data), secret) {
				t.Errorf("%v, delivered %+v", err, got)
			}
		})
	}
}

func TestWorkerReportsResultThatListenerFindsTooLarge(t *testing.T) {
	w := start(t)
	listener := w.legacyListener(413)
	w.file("done", []byte(w.file("r", []byte("result"))))
	_, err := w.client().WaitAndDeliver(t.Context())
	var none *muster.NoResult
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "RESULT_TOO_LARGE") || !strings.Contains(err.Error(), "limits.result_bytes") {
		t.Error(err)
	}
	if seen := listener.all(); len(seen) != 2 {
		t.Error(seen)
	}
}

func TestWorkerPacksFolder(t *testing.T) {
	w := start(t)
	folder := filepath.Join(w.results, "out")
	if err := errors.Join(os.MkdirAll(filepath.Join(folder, "sub"), 0o700), os.WriteFile(filepath.Join(folder, "sub", "f"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(folder, ".results.tar.gz-1234") // of a process that was killed
	if err := os.WriteFile(left, []byte("incomplete"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.file("done", []byte(folder))
	for range 2 { // the second process sends the same bytes
		if _, err := w.client().WaitAndDeliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := w.committed("n1")
	if got.Description.FileName != "results.tar.gz" || got.Description.MediaType != "application/gzip" {
		t.Errorf("%v", got.Description)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(got.Data))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tape := tar.NewReader(unzipped); ; {
		header, err := tape.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	if strings.Join(names, " ") != "sub/ sub/f" && strings.Join(names, " ") != "sub sub/f" {
		t.Errorf("packed %v", names)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the incomplete archive remains: %v", err)
	}
}
