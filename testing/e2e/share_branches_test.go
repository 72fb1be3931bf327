package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/services/client/go/mustertest"
	"muster.example/testing/fleet"
)

// localRelay joins a relay on this machine with exactly these parents, and starts it.
func localRelay(t *testing.T, f *fleet.Fleet, name, parents string) (r *relay, address string) {
	t.Helper()
	r, address = joinLocalRelay(t, f, name, parents)
	r.start(t)
	return r, address
}

// joinLocalRelay does the same without the start.
func joinLocalRelay(t *testing.T, f *fleet.Fleet, name, parents string) (r *relay, address string) {
	t.Helper()
	r = &relay{machine: newMachine(t, f), name: name}
	address = mustertest.ReserveAddress(t)
	file := token(t, f, "--relay", name)
	if _, stderr, code := r.muster(t, nil, "relay", "join", "--token-file", file, "--dir", r.home,
		"--advertise", address, "--join-advertise", mustertest.ReserveAddress(t)); code != 0 {
		t.Fatalf("relay %s joins: exit %d: %s", name, code, stderr)
	}
	config := fmt.Sprintf("state_folder: %s\nlisten: %s\ninterval: 2s\n", r.home, address)
	if parents != "" {
		config += "parents: [" + parents + "]\n"
	}
	check(t, os.WriteFile(r.config(), []byte(config), 0o600))
	return r, address
}

// joinAt joins a node that knows only the relay at an address, and attaches it.
func joinAt(t *testing.T, f *fleet.Fleet, name, address string) *node {
	t.Helper()
	n := join(t, f, name, openPolicy, nil, nil)
	n.attachAt(t, address)
	return n
}

// attachAt attaches a joined node to the relay at an address in place of its parents.
func (n *node) attachAt(t *testing.T, address string) {
	t.Helper()
	file := filepath.Join(n.folder(), "node.json")
	content := member(t, file)
	content["relay_targets"] = []string{address}
	check(t, os.WriteFile(file, must(json.Marshal(content))(t), 0o644))
	n.attach(t)
}

// sizes returns the sizes of files in a relay's store of shared files; "staged" are arriving, "blobs" are complete.
func sizes(t *testing.T, home, what string) (all []int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(home, "shares", "blobs", what), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			all = append(all, info.Size())
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be removed meanwhile
		t.Fatal(err)
	}
	return all
}

// awaitHalf waits until a file has partially arrived at a relay.
func awaitHalf(t *testing.T, name, home string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		for _, size := range sizes(t, home, "staged") {
			if size > 0 {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no bytes arrive at %s", name)
		}
	}
}

// Source and target are in different branches; every relay on the route is killed while the file arrives there. The
// file arrives complete, once.
func TestSharedFileArrivesAfterKillOfEveryRelay(t *testing.T) {
	t.Parallel()
	f := up(t)
	east, eastAddress := localRelay(t, f, "east", "")
	west, westAddress := localRelay(t, f, "west", "")
	far, farAddress := localRelay(t, f, "far", westAddress)
	n1, n2 := joinAt(t, f, "n1", eastAddress), joinAt(t, f, "n2", farAddress)
	if at := nodes(t, f); at["n1"]["relay"] != "east" || at["n2"]["relay"] != "far" || at["far"]["relay"] != "west" {
		t.Fatalf("wrong topology: %v", at)
	}
	path, content := fileOf(t, n1, 96<<20)

	type answer struct {
		out string
		err error
	}
	shared := make(chan answer, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		command := f.Command(ctx, "share", path, "--to", "n2", "--wait", "4m", "--json")
		command.Env = append(command.Env, "MUSTER_HOME="+n1.home)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.String())
		}
		shared <- answer{string(out), err}
	}()
	root := filepath.Join(f.Home, "relay")
	homes := map[string]string{"east": east.home, "root": root, "west": west.home, "far": far.home}
	for _, step := range []struct {
		name string
		kill func()
	}{
		{"east", func() { east.killAndStart(t) }},
		{"root", func() {
			must(f.Process(fleet.Relay, "--config", filepath.Join(f.Home, "config", "relay.yaml")))(t).Kill()
		}},
		{"west", func() { west.killAndStart(t) }},
		{"far", func() { far.killAndStart(t) }},
	} {
		awaitHalf(t, step.name, homes[step.name])
		step.kill()
	}

	end := <-shared
	check(t, end.err)
	var file sharedFile
	check(t, json.Unmarshal([]byte(end.out), &file))
	if file.State != "delivered" || file.Relay != "far" {
		t.Errorf("the source gets %+v", file)
	}
	got := filepath.Join(n2.home, "got.csv")
	n2.must(t, "shared", "get", "--from", "n1", "--id", "report.csv", "-o", got)
	if !bytes.Equal(must(os.ReadFile(got))(t), content) {
		t.Error("the bytes at n2 differ")
	}
	until(t, "exactly one relay has it", func() bool {
		whole, parts := "", 0
		for name, home := range homes {
			for range sizes(t, home, "blobs") {
				whole += name + " "
			}
			parts += len(sizes(t, home, "staged"))
		}
		return whole == "far " && parts == 0
	})
}

// An operator lists and removes files of a branch that never pass the root relay.
func TestOperatorListsAndRemovesSharedFilesAtAnyRelay(t *testing.T) {
	t.Parallel()
	f := up(t)
	_, address := localRelay(t, f, "r1", "")
	n1 := joinAt(t, f, "n1", address)
	joinAt(t, f, "n2", address)
	path, _ := fileOf(t, n1, 1000)
	n1.must(t, "share", path, "--to", "n2", "--ttl", "1h")
	until(t, "it has arrived", func() bool { return outcome(t, n1, "--to", "n2").State == "delivered" })

	var list []struct {
		Relay               string
		Files, Bytes, Quota int64
		MaxFiles            int64 `json:"max_files"`
		Shares              []sharedFile
		Fault               string
	}
	check(t, f.JSON(&list, "shared", "list", "--all", "--json"))
	if len(list) != 2 || list[0].Relay != "root" || len(list[0].Shares) != 0 || list[1].Relay != "r1" || list[1].Bytes != 1000 ||
		list[1].Files != 1 || list[1].Quota != 10<<30 || len(list[1].Shares) != 1 || list[1].Shares[0].ExpireTime == "" {
		t.Errorf("the list: %+v", list)
	}
	if out := must(f.Muster("shared", "list", "--relay", "r1"))(t); !strings.Contains(out, "1 of 10000") || !strings.Contains(out, "report.csv") {
		t.Errorf("the table is\n%s", out)
	}
	key := []string{"--from", "n1", "--to", "n2", "--id", "report.csv"}
	if out := must(f.Muster(append([]string{"shared", "show"}, key...)...))(t); out != "" {
		t.Errorf("outcome prints %q", out)
	}
	if _, err := f.Muster(append([]string{"shared", "remove", "--relay", "r9"}, key...)...); err == nil || !strings.Contains(err.Error(), "RELAY_NOT_FOUND") {
		t.Errorf("at an unknown relay: %v", err)
	}
	must(f.Muster(append([]string{"shared", "remove"}, key...)...))(t)
	if state := outcome(t, n1, "--to", "n2").State; state != "removed" {
		t.Errorf("the source gets %q", state)
	}
	if _, err := f.Muster(append([]string{"shared", "remove"}, key...)...); err == nil || !strings.Contains(err.Error(), "SHARE_NOT_FOUND") {
		t.Errorf("a second time: %v", err)
	}
}

// A target that never joined is refused immediately, also by a root relay that has just started; the source gets the
// error.
func TestSharedFileForUnknownTargetIsRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	_, address := localRelay(t, f, "r1", "")
	n1, n2 := joinAt(t, f, "n1", address), attached(t, f, "n2")
	path, _ := fileOf(t, n1, 1000)
	for name, n := range map[string]*node{"attached to r1": n1, "attached to the root relay": n2} {
		_, stderr, code := n.muster(t, n.extra, "share", path, "--to", "nobody")
		if code == 0 || !strings.Contains(stderr, "TARGET_UNKNOWN") || !strings.Contains(stderr, "has not joined the fleet") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
	join(t, f, "n4", openPolicy, nil, nil)
	must(f.Muster("node", "revoke", "n4"))(t)
	for target, cause := range map[string]string{"r1": "is a relay", "root": "is a relay", "n4": "was revoked"} {
		_, stderr, code := n1.muster(t, n1.extra, "share", path, "--to", target)
		if code == 0 || !strings.Contains(stderr, "TARGET_UNKNOWN") || !strings.Contains(stderr, cause) {
			t.Errorf("a file for %s: exit %d: %s", target, code, stderr)
		}
		out, _, code := execOn(t, f, "--node", target, "--ttl", "1h", "--json", "--", "/bin/true")
		if end := finals(t, out)[target]; code != 9 || end["outcome"] != "unknown" || !strings.Contains(fmt.Sprint(end["detail"]), cause) {
			t.Errorf("a command for %s: exit %d: %v", target, code, end)
		}
	}
	// A node that has joined may attach later: its file waits.
	join(t, f, "n3", openPolicy, nil, nil)
	if _, stderr, code := n1.muster(t, n1.extra, "share", path, "--to", "n3", "--wait", "1s"); code != 0 || !strings.Contains(stderr, "is stored at relay") {
		t.Errorf("for one that is not attached yet: exit %d: %s", code, stderr)
	}
}

// The answer of the relay that answers is not replaced by that of one which is down.
func TestMissingSharedFileIsNotFoundAlthoughARelayIsDown(t *testing.T) {
	t.Parallel()
	f := up(t)
	_, address := localRelay(t, f, "r1", "")
	n1 := joinAt(t, f, "n1", address)
	file := filepath.Join(n1.folder(), "node.json")
	content := member(t, file)
	content["relay_targets"] = []string{address, mustertest.ReserveAddress(t)}
	check(t, os.WriteFile(file, must(json.Marshal(content))(t), 0o644))
	_, stderr, code := n1.muster(t, n1.extra, "shared", "get", "--from", "n2", "--id", "nosuch", "-o", filepath.Join(n1.home, "file"))
	if code != 69 || !strings.Contains(stderr, "SHARE_NOT_FOUND") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
