package rudder

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

// uploadOf returns the upload in the answer to a share.
func (s *testRelay) uploadOf(got reply) *upload {
	s.t.Helper()
	u := &upload{}
	if err := json.Unmarshal([]byte(got.body), u); got.code != 202 || err != nil || u.ID == "" || u.State != statePending ||
		got.header.Get("Location") != basePath+"shared-files/uploads/"+u.ID {
		s.t.Fatal(got, got.header, err)
	}
	return u
}

// awaitState waits until an upload is in a state.
func (s *testRelay) awaitState(id, state string) *upload {
	s.t.Helper()
	u := &upload{}
	mustertest.Await(s.t, id+" is "+state, func() bool {
		got := s.call("GET", "shared-files/uploads/"+id, nil)
		if err := json.Unmarshal([]byte(got.body), u); err != nil || got.code != 200 {
			s.t.Fatal(got)
		}
		if u.State != state && u.State != statePending {
			s.t.Fatalf("upload is %+v", u)
		}
		return u.State == state
	})
	return u
}

func (s *testRelay) spoolFolder() int {
	found, err := os.ReadDir(filepath.Join(s.config.SharedFilesNodes, spoolFolder))
	if err != nil {
		s.t.Error(err)
	}
	contents := 0
	for _, entry := range found {
		if !strings.HasSuffix(entry.Name(), ".json") {
			contents++
		}
	}
	return contents
}

func TestShareForAnotherBranchIsForwardedThroughRoot(t *testing.T) {
	f := startExtendedTree(t)
	if got := f.r2.has("n-e", "n-d", "file", sumOf(content)); got != 404 {
		t.Error(got)
	}
	u := f.r2.uploadOf(f.r2.share("n-e", "n-d", "file", content, "ttl=1h")) // r2, then r1, then root, which knows n-e
	f.r2.awaitState(u.ID, stateDelivered)
	if got := f.root.read("shared-files-nodes/r3/n-e/n-d/file"); got != content {
		t.Errorf("%q", got)
	}
	for _, s := range []*testRelay{f.root, f.r1, f.r2} {
		if got := s.has("n-e", "n-d", "file", sumOf(content)); got != 200 {
			t.Error(s.config.NodeID, got)
		}
		if got := s.has("n-e", "n-d", "file", sumOf("other")); got != 404 {
			t.Error(s.config.NodeID, got)
		}
	}
	if f.r1.spoolFolder()+f.r2.spoolFolder() != 0 {
		t.Error("files of the upload are left")
	}
	// A file for a descendant of r1 is not sent upstream: r1 knows the target.
	f.r1.want(f.r1.share("n-d", "n-c", "file", content), 200, "")
	if got := f.r2.call("GET", "shared-files/uploads/0123", nil); got.code != 404 {
		t.Error(got)
	}
}

func TestShareForUnknownTargetIsRefusedByRootAndReported(t *testing.T) {
	f := startExtendedTree(t)
	u := f.r2.awaitState(f.r2.uploadOf(f.r2.share("nobody", "n-d", "file", content)).ID, stateRefused)
	if u.Code != 404 || u.Reason != "target_uuid: node not found" {
		t.Errorf("%+v", u)
	}
	if f.r1.spoolFolder()+f.r2.spoolFolder() != 0 {
		t.Error("files of the upload are left")
	}
}

func TestShareSurvivesPolicyServerOutageAndRestart(t *testing.T) {
	f := startExtendedTree(t)
	f.root.stop()
	before := time.Now().Unix()
	u := f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", content, "ttl=2h"))
	mustertest.Await(t, "there was a retry", func() bool { return f.r1.awaitState(u.ID, statePending).Tries > 1 })
	if why := f.r1.awaitState(u.ID, statePending).Reason; why == "" {
		t.Error("a pending upload has no reason")
	}
	if got := f.r1.has("n-e", "n-c", "file", sumOf(content)); got != 202 { // in transit: not to be sent again
		t.Error(got)
	}
	mustertest.Await(t, "some of its time to live has passed", func() bool { return time.Now().Unix() > before+3 })
	f.r1.restart()
	f.root.restart()
	f.r1.awaitState(u.ID, stateDelivered)
	ends := 0
	for line := range strings.Lines(f.root.read("shared-files-nodes/r3/n-e/n-c/file.medata")) {
		if text, found := strings.CutPrefix(line, "expires="); found {
			ends, _ = strconv.Atoi(strings.TrimSpace(text))
		}
	}
	if left := int64(ends) - before; left < 7199 || left > 7202 { // it counts from the receipt by r1
		t.Error(left)
	}
	f.r1.restart() // the outcome is kept
	f.r1.awaitState(u.ID, stateDelivered)
}

func TestServerErrorIsRetriedAndClientErrorIsNot(t *testing.T) {
	f := startExtendedTree(t)
	f.root.config.SharedFilesQuota = 0
	f.root.server.store.space.limit = 4 * minSize
	f.root.want(f.root.share("n-a", "n-b", "x", "fills it"), 200, "")
	f.root.server.store.space.limit = 3 * minSize
	u := f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", content)) // 507
	mustertest.Await(t, "there was a retry", func() bool { return f.r1.awaitState(u.ID, statePending).Tries > 1 })
	if why := f.r1.awaitState(u.ID, statePending).Reason; !strings.HasPrefix(why, "the policy server answered 507: ") {
		t.Error(why)
	}
	f.root.server.store.space.limit = 0
	f.r1.awaitState(u.ID, stateDelivered)
	f.root.config.MaxBodySize = 5
	if u := f.r1.awaitState(f.r1.uploadOf(f.r1.share("n-e", "n-c", "file2", content)).ID, stateRefused); u.Code != 413 || u.Reason != "PAYLOAD TOO LARGE" {
		t.Errorf("%+v", u)
	}
}

func TestUndeliveredShareExpires(t *testing.T) {
	f := startExtendedTree(t)
	f.root.stop()
	u := f.r1.awaitState(f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", content, "ttl=0")).ID, stateExpired)
	if !strings.Contains(u.Reason, "time to live") {
		t.Error(u.Reason)
	}
	f.r1.server.spool.life = time.Millisecond
	u = f.r1.awaitState(f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", content)).ID, stateExpired)
	if !strings.Contains(u.Reason, "rudder.spool_time") || f.r1.spoolFolder() != 0 {
		t.Error(u.Reason)
	}
	f.r1.server.spool.forget(time.Now().Add(limits.OutcomesTime + time.Hour))
	if got := f.r1.call("GET", "shared-files/uploads/"+u.ID, nil); got.code != 404 {
		t.Error(got)
	}
}

func TestNewerUploadReplacesOlderOne(t *testing.T) {
	f := startExtendedTree(t)
	f.root.stop()
	older := f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", "older"))
	newer := f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", "newer"))
	other := f.r1.uploadOf(f.r1.share("n-e", "n-c", "other", "other"))
	if u := f.r1.awaitState(older.ID, stateRefused); !strings.Contains(u.Reason, newer.ID) {
		t.Errorf("%+v", u)
	}
	f.root.restart()
	f.r1.awaitState(newer.ID, stateDelivered)
	f.r1.awaitState(other.ID, stateDelivered)
	if got := f.root.read("shared-files-nodes/r3/n-e/n-c/file"); got != "newer" {
		t.Error(got)
	}
}

func TestUploadUnknownToPolicyServerIsSentAgain(t *testing.T) {
	f := startExtendedTree(t)
	f.root.stop() // r1 has it pending, and cannot deliver
	u := f.r2.uploadOf(f.r2.share("n-e", "n-d", "file", content))
	mustertest.Await(t, "r1 has the upload", func() bool { return f.r1.spoolFolder() == 1 })
	f.r1.stop()
	if err := os.RemoveAll(filepath.Join(f.r1.config.SharedFilesNodes, spoolFolder)); err != nil {
		t.Fatal(err)
	}
	f.root.restart()
	f.r1.restart()
	f.r2.awaitState(u.ID, stateDelivered)
	if got := f.root.read("shared-files-nodes/r3/n-e/n-d/file"); got != content {
		t.Errorf("%q", got)
	}
}

func TestSpoolVerifiesUploads(t *testing.T) {
	f := startExtendedTree(t)
	if got := f.r1.share("n-e", "n-c", "file", content, "signature="+signed("n-d", content)); got.code != 403 {
		t.Error(got)
	}
	if got := f.r1.share("n-e", "stranger", "file", content); got.code != 404 {
		t.Error(got)
	}
	if got := f.r1.call("POST", "shared-files/node/n-e/file?source-uuid=n-c&signature="+signed("n-c", content), strings.NewReader(content),
		"Via", "1.1 r1"); got.code != 508 {
		t.Error(got)
	}
	if f.r1.spoolFolder() != 0 {
		t.Error("a file was stored")
	}
	// A relay without the certificate of the source leaves the check to the relay that stores the file.
	withCertificates("r2")(f.r1)
	if err := f.r1.server.Reload(); err != nil {
		t.Fatal(err)
	}
	u := f.r1.awaitState(f.r1.uploadOf(f.r1.share("n-e", "n-c", "file", content, "signature="+signed("n-d", content))).ID, stateRefused)
	if u.Code != 403 || !strings.HasPrefix(u.Reason, "signature: ") {
		t.Errorf("%+v", u)
	}
}

func TestSpoolCountsAgainstQuota(t *testing.T) {
	f := startExtendedTree(t, func(s *testRelay) { s.config.SharedFilesQuota = 64 << 10 })
	f.root.stop()
	big := strings.Repeat("x", 30<<10)
	u := f.r1.uploadOf(f.r1.share("n-e", "n-c", "one", big))
	if got := f.r1.share("n-e", "n-c", "two", big); got.code != 507 {
		t.Error(got)
	}
	if got := f.r1.share("n-d", "n-c", "two", big); got.code != 507 {
		t.Error(got)
	}
	f.root.restart()
	f.r1.awaitState(u.ID, stateDelivered)
	f.r1.want(f.r1.share("n-d", "n-c", "two", big), 200, "")
}

func TestUnacknowledgedUploadIsRemoved(t *testing.T) {
	f := startExtendedTree(t)
	f.r1.write("shared-files-nodes/.spool/0123456789abcdef", "killed before its description was written")
	f.r1.write("shared-files-nodes/.spool/odd.json", "{")
	f.r1.restart()
	if f.r1.spoolFolder() != 0 {
		t.Error("the file is kept")
	}
	if got := f.r1.call("GET", "shared-files/uploads/odd", nil); got.code != 404 {
		t.Error(got)
	}
	if got := f.r1.call("DELETE", "shared-files/uploads/odd", nil); got.code != http.StatusMethodNotAllowed {
		t.Error(got)
	}
}

func TestShareWithoutPolicyServerFails(t *testing.T) {
	s := start(t, "r1", "127.0.0.1", 0, listOf("n-c c.example r1"), extended, withCertificates("n-c"))
	if got := s.share("n-e", "n-c", "file", content); got.code != 500 || !strings.Contains(got.body, "upstream_host") {
		t.Error(got)
	}
}

func TestRetryPausesGrowToLimit(t *testing.T) {
	for tries, most := range map[int]time.Duration{0: 1500 * time.Millisecond, 3: 9 * time.Second, 30: retryMax + time.Second} {
		for range 100 {
			if got := retryPause(tries); got < retryBase/2 || got > most {
				t.Fatal(tries, got)
			}
		}
	}
}

func TestOutcomesExpireAndAreBounded(t *testing.T) {
	s := startExtended(t)
	spool := s.server.spool
	// Before the uploads: the server may sweep at any time.
	s.write("shared-files-nodes/.spool/0.json", "{}")
	spool.mu.Lock()
	for i := range limits.Outcomes + 5 {
		u := &upload{ID: strconv.Itoa(i), State: stateDelivered, Ended: time.Now()}
		spool.uploads[u.ID] = u
		spool.ended.add(u)
	}
	spool.mu.Unlock()
	known := func() int {
		spool.mu.Lock()
		defer spool.mu.Unlock()
		return len(spool.uploads)
	}
	spool.forget(time.Now())
	if known() != limits.Outcomes || s.read("shared-files-nodes/.spool/0.json") != "" {
		t.Error(known())
	}
	for id, want := range map[string]int{"4": 404, "5": 200} {
		if got := s.call("GET", "shared-files/uploads/"+id, nil); got.code != want {
			t.Error(id, got)
		}
	}
	spool.forget(time.Now().Add(limits.OutcomesTime + time.Second))
	if known() != 0 {
		t.Error(known())
	}
}
