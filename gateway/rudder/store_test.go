package rudder

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestConcurrentUploadsOfOneIDAreNotMixed(t *testing.T) {
	s := startRoot(t)
	contents := map[string]string{}
	for i := range 8 {
		one := strings.Repeat(strconv.Itoa(i), 200_000+i)
		contents[sumOf(one)] = one
	}
	var working sync.WaitGroup
	for _, one := range contents {
		working.Go(func() { s.want(s.put("file?ttl=1d", block("n-a", "sha512", one), one), 200, "") })
	}
	working.Wait()
	m, err := s.server.store.describe("n-b/files/n-a/file")
	if err != nil || s.stored("file") != contents[m.values["hash_value"]] || s.leftovers() != 0 {
		t.Error("content and header block are of two uploads", err)
	}
}

func TestContentAndHeaderBlockAreReplacedTogether(t *testing.T) {
	s := startRoot(t)
	s.write("shared-files/x", "")
	for range 200 {
		var working sync.WaitGroup
		for i := range 4 {
			one := strconv.Itoa(i)
			s.write("shared-files/content"+one, one)
			s.write("shared-files/block"+one, one)
			working.Go(func() {
				if err := s.server.store.replace("content"+one, "block"+one, "x"); err != nil {
					t.Error(err)
				}
			})
		}
		working.Wait()
		if s.read("shared-files/x") != s.read("shared-files/x.metadata") {
			t.Fatal("content and header block are of two uploads")
		}
	}
}

func TestSweepRemovesOnlyExpiredFiles(t *testing.T) {
	s := startRoot(t)
	s.want(s.put("application.properties?ttl=1h", block("n-a", "sha512", content), content), 200, "")
	s.want(s.put("other.properties?ttl=3h", block("n-a", "sha512", content), content), 200, "")
	s.write("shared-files/n-b/files/n-a/endless", "x")
	s.write("shared-files/n-b/files/n-a/endless.metadata", block("n-a", "sha512", "x"))
	s.write("shared-files/n-b/files/n-a/odd.metadata", "nonsense")
	// Like released relays, HEAD ignores the expiry: only the sweep removes a file.
	expired := strings.Replace(s.stored("application.properties.metadata"), "\nexpires=", "\nexpires=1\x00", 1)
	expired = expired[:strings.IndexByte(expired, 0)] + "\n"
	s.write("shared-files/n-b/files/n-a/application.properties.metadata", expired)
	s.want(s.call("HEAD", "shared-files/n-b/n-a/application.properties?hash="+sumOf(content), nil), 200, "")
	s.server.store.sweep(t.Context(), time.Now())
	found, err := os.ReadDir(filepath.Join(s.config.SharedFiles, "n-b/files/n-a"))
	names := map[string]bool{}
	for _, entry := range found {
		names[entry.Name()] = true
	}
	if want := []string{"endless", "endless.metadata", "odd.metadata", "other.properties", "other.properties.metadata"}; err != nil ||
		!slices.Equal(slices.Sorted(maps.Keys(names)), want) {
		t.Error(names, err)
	}
}

func TestIncompleteUploadsOfEarlierProcessAreRemoved(t *testing.T) {
	s := startRoot(t, func(s *testRelay) { s.write("shared-files/.incoming/half", "half of a file") })
	if s.leftovers() != 0 {
		t.Error("the file still exists")
	}
	// Killed between the two steps of storing: the content exists without its header block.
	s.write("shared-files/n-b/files/n-a/file", content)
	s.want(s.call("HEAD", "shared-files/n-b/n-a/file?hash="+sumOf(content), nil), 404, "")
	s.want(s.put("file?ttl=1d", block("n-a", "sha512", content), content), 200, "")
}

func TestLinkCannotLeaveFolder(t *testing.T) {
	outside := t.TempDir()
	s := startRoot(t, func(s *testRelay) {
		if err := os.MkdirAll(s.config.SharedFiles, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(s.config.SharedFiles, "n-b")); err != nil {
			t.Fatal(err)
		}
	})
	s.want(s.put("file?ttl=1d", block("n-a", "sha512", content), content), 500, "")
	if found, _ := os.ReadDir(outside); len(found) != 0 {
		t.Error("a file was written outside of the store")
	}
}
