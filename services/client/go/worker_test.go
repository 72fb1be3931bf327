package muster

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A done file has to exist for its delay: another sidecar may remove it to add to the results.
func TestWorkerWaitsAgainIfDoneFileIsRemoved(t *testing.T) {
	folder := t.TempDir()
	done := filepath.Join(folder, "done")
	names := func(result string) {
		t.Helper()
		for _, file := range []string{filepath.Join(folder, result), done} {
			if err := os.WriteFile(file, []byte(result), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) { // time advances when all goroutines wait
		client := &Client{config: &Config{ResultsDir: folder, DoneFileDelay: Duration(3 * time.Second), MaxResultBytes: 100}}
		names("first")
		found := make(chan string, 1)
		go func() {
			file, err := client.waitForDone(context.Background())
			if err != nil {
				t.Error(err)
				close(found)
				return
			}
			defer file.Close()
			found <- file.Name()
		}()
		time.Sleep(pollInterval + 2*time.Second) // it was seen, and has to exist for another second
		if err := os.Remove(done); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		select {
		case path := <-found:
			t.Fatalf("%s was used, although its done file was removed", path)
		default:
		}
		names("second")
		if path := <-found; filepath.Base(path) != "second" {
			t.Errorf("took %s, want the second result", path)
		}
	})
}
