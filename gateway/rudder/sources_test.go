package rudder

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

// smallSpace has space for three files of 16 KiB of one source.
func smallSpace(s *testRelay) { s.config.SharedFilesQuota, s.config.MaxBodySize = 140<<10, 20<<10 }

// setLimit sets a limit until the relays of the test have ended: it is called before they are started.
func setLimit(t *testing.T, limit *int, value int) {
	before := *limit
	*limit = value
	t.Cleanup(func() { *limit = before })
}

func TestSharesOfOneSourceLeaveSpaceForOthers(t *testing.T) {
	s := startExtended(t, withCertificates("n-a", "n-b"), smallSpace)
	text := strings.Repeat("x", 16<<10)
	for i := range 3 {
		s.want(s.share("n-b", "n-a", fmt.Sprint(i), text), 200, "")
	}
	for range 2 {
		s.want(s.share("n-b", "n-a", "more", text), 507, errSourceNoSpace.Error())
		s.want(s.share("n-a", "n-b", "file", text), 200, "")
		s.restart() // existing files count for their source
	}
	must(t, os.RemoveAll(s.pathOf("n-b/n-a/0")))
	s.server.store.sweep(t.Context(), time.Now())
	s.want(s.share("n-b", "n-a", "more", text), 200, "")
	if held := s.server.store.space.held; len(held) != 0 {
		t.Error(held)
	}
}

func TestStrictUploadsOfOneSourceLeaveSpaceForOthers(t *testing.T) {
	s := startRoot(t, smallSpace)
	text := strings.Repeat("x", 16<<10)
	for i := range 3 {
		s.want(s.put(fmt.Sprint(i, "?ttl=1d"), block("n-a", "sha512", text), text), 200, "")
	}
	s.want(s.put("more?ttl=1d", block("n-a", "sha512", text), text), 507, "")
	_, err := s.server.store.space.reserve("n-b", 16<<10)
	must(t, err)
}

func TestSpooledSharesOfOneSourceLeaveSpaceForOthers(t *testing.T) {
	f := startExtendedTree(t, smallSpace)
	f.root.stop()
	text := strings.Repeat("x", 16<<10)
	first := f.r1.uploadOf(f.r1.share("n-e", "n-c", "0", text))
	f.r1.uploadOf(f.r1.share("n-e", "n-c", "1", text))
	f.r1.restart() // uploads in transit count for their source
	f.r1.want(f.r1.share("n-e", "n-c", "more", text), 507, errSourceNoSpace.Error())
	f.r1.want(f.r1.share("n-d", "n-c", "more", text), 507, errSourceNoSpace.Error())
	f.r1.uploadOf(f.r1.share("n-e", "n-d", "file", text))
	f.r1.want(f.r1.share("n-c", "n-d", "file", text), 200, "")
	f.root.restart()
	f.r1.awaitState(first.ID, stateDelivered)
	mustertest.Await(t, "all are delivered", func() bool { return f.r1.server.spool.waiting() == 0 })
	f.r1.want(f.r1.share("n-d", "n-c", "more", text), 200, "")
}

func TestPendingUploadsOfOneSourceLeaveRoomForOthers(t *testing.T) {
	setLimit(t, &limits.PendingOfSource, 2)
	setLimit(t, &limits.Pending, 3)
	f := startExtendedTree(t)
	f.root.stop()
	for i := range 2 {
		f.r1.uploadOf(f.r1.share("n-e", "n-c", fmt.Sprint(i), content))
	}
	f.r1.restart()
	f.r1.want(f.r1.share("n-e", "n-c", "more", content), 507, "2 uploads of the source are pending already")
	f.r1.uploadOf(f.r1.share("n-e", "n-d", "file", content))
	f.r1.want(f.r1.share("n-e", "n-d", "more", content), 507, "3 uploads are pending already")
	if f.r1.spoolFolder() != 3 || f.r1.leftovers() != 0 {
		t.Error("files of refused uploads are left")
	}
	f.root.restart()
	mustertest.Await(t, "all are delivered", func() bool { return f.r1.server.spool.waiting() == 0 })
	f.r1.uploadOf(f.r1.share("n-e", "n-c", "more", content))
}

func TestUploadsOfOneSourceDoNotDelayThoseOfAnother(t *testing.T) {
	var mu sync.Mutex
	most, now, let := 0, 0, make(chan struct{})
	s := startBelow(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Query().Get("source-uuid") != "n-c" {
			return
		}
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-let
		mu.Lock()
		now--
		mu.Unlock()
	})
	for i := range limits.Senders + limits.Askers {
		s.uploadOf(s.share("n-e", "n-c", fmt.Sprint(i), content))
	}
	other := s.uploadOf(s.share("n-e", "n-d", "file", content))
	s.awaitState(other.ID, stateDelivered)
	close(let)
	mustertest.Await(t, "all are delivered", func() bool { return s.server.spool.waiting() == 0 })
	if most > limits.SendersOfSource || len(s.server.spool.sources) != 0 {
		t.Error(most, s.server.spool.sources)
	}
}

// A large content takes long to be synced, and every request for shared files needs the lock.
func TestContentIsSyncedWithoutTheLockOfTheSpool(t *testing.T) {
	s := startBelow(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	accepted := make(chan reply, 1)
	unlock := sync.OnceFunc(s.server.spool.mu.Unlock)
	s.server.spool.mu.Lock()
	defer unlock()
	go func() { accepted <- s.share("n-e", "n-c", "file", content) }()
	mustertest.Await(t, "the content is complete and closed", func() bool {
		received, err := filepath.Glob(s.pathOf(incoming + "/*"))
		if err != nil || len(received) != 1 {
			return false
		}
		info, err := os.Stat(received[0])
		return err == nil && info.Size() == int64(len(content)) && !isOpen(t, received[0])
	})
	unlock()
	s.awaitState(s.uploadOf(<-accepted).ID, stateDelivered)
}

// isOpen reports whether this process has opened a file.
func isOpen(t *testing.T, file string) bool {
	t.Helper()
	open, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, descriptor := range open {
		if target, err := os.Readlink(descriptor); err == nil && target == file {
			return true
		}
	}
	return false
}
