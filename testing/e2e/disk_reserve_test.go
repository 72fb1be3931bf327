package e2e

import (
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"muster.example/testing/fleet"
)

// A disk without a free byte refuses data, but an operator can cancel and delete runs on it, and the aggregator starts on
// it after a kill -9.
func TestFullDiskLetsOperatorsMakeRoom(t *testing.T) {
	t.Parallel()
	f, disk, err := fleet.NewOnSmallDisk()
	check(t, err)
	closeAtEnd(t, f)
	staged := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	other := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	partial := must(f.Export(staged, "logs", "n1"))(t)
	small := must(f.Export(other, "logs", "n1"))(t)
	late := must(f.Export(other, "logs", "n2"))(t)
	check(t, submit(t, small, other, "logs", "n1", "accepted"))
	a := operator(t, f)

	// An upload that stays in the middle.
	upload := openUpload(t, partial)
	content := strings.Repeat("y", 1<<20)
	upload.chunk(0, content, crc32.Checksum([]byte(content), castagnoli))
	must(upload.stream.Recv())(t)
	if left := blobFiles(t, f); len(left) == 0 {
		t.Fatal("nothing is staged")
	}

	// Data does not take the reserve.
	check(t, disk.Fill(0))
	refused := submit(t, late, other, "logs", "n2", "small")
	wantError(t, refused, codes.ResourceExhausted, "DISK_FULL")
	if !strings.Contains(refused.Error(), "bytes are kept to start, cancel and delete") {
		t.Errorf("the refusal has no numbers: %v", refused)
	}
	wantReserve(t, f, true)

	// After a kill the aggregator starts without a free byte: the reserve is released for it.
	kill(t, f)
	wantReserve(t, f, false)
	wantError(t, submit(t, late, other, "logs", "n2", "small"), codes.ResourceExhausted, "DISK_FULL")
	must(f.Muster("cancel", staged))(t)
	must(f.Muster("delete", staged))(t)
	if left := blobFiles(t, f); len(left) != 0 {
		t.Errorf("the deleted run left %v", left)
	}
	if got := a.result(t, other, "logs", "n1"); got.Generation != 1 {
		t.Errorf("the accepted result is %v", got)
	}

	// With room the reserve is restored; without, a running aggregator cancels and deletes too.
	check(t, disk.Free())
	until(t, "the reserve is restored", func() bool { return reserved(t, f) })
	second := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	check(t, disk.Fill(0))
	must(f.Muster("cancel", second))(t)
	must(f.Muster("delete", second))(t)
	check(t, disk.Free())
	until(t, "the reserve is restored", func() bool { return reserved(t, f) })
	check(t, submit(t, late, other, "logs", "n2", "small"))
}

// The services start in a home without a free byte: `muster up` writes before the aggregator could release the reserve.
func TestUpOnFullDiskReleasesTheReserve(t *testing.T) {
	t.Parallel()
	f := must(fleet.New(""))(t)
	closeAtEnd(t, f)
	namespace := []string{"--mount"}
	if os.Getuid() != 0 {
		namespace = append(namespace, "--user", "--map-root-user")
	}
	if err := exec.Command("unshare", append(namespace, "mount", "-t", "tmpfs", "none", f.Home)...).Run(); err != nil {
		t.Skipf("no mount namespace: %v", err)
	}
	muster := f.Command(t.Context())
	const script = `set -e
mount -t tmpfs -o size=64m,mode=0700 none "$MUSTER_HOME"
"$0" up --port 0
"$0" down
dd if=/dev/zero of="$MUSTER_HOME/filler" bs=4k || true
"$0" up
"$0" down`
	command := exec.CommandContext(t.Context(), "unshare", append(namespace, "sh", "-c", script, muster.Path)...)
	command.Env = muster.Env
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A jobs service without a free byte starts after a kill -9, because its reserve is released; it then refuses new content
// and cancels a deployment.
func TestFullDiskLetsJobsServiceStartAndCancel(t *testing.T) {
	t.Parallel()
	f, disk, err := fleet.NewOnSmallDiskOf("jobs")
	check(t, err)
	closeAtEnd(t, f)
	push := func(version string) error {
		file := must(f.WriteFile("greet.yaml", greetType(version, "registry.example/greet@sha256:"+strings.Repeat("a", 64))))(t)
		_, err := f.Muster("type", "push", file)
		return err
	}
	check(t, push("1.0.0"))
	relay := must(f.Process(fleet.Relay, "--config", filepath.Join(f.Home, "config", "relay.yaml")))(t)
	check(t, relay.Stop()) // the submission may still arrive there
	id := strings.TrimSpace(must(f.Muster("deploy", "--type", "greet", "--node", "n1", "--set", "name=Ada"))(t))
	until(t, "the deployment says why it is pending", func() bool {
		out, _ := f.Muster("deployment", "show", id)
		return strings.Contains(out, "the root relay has not answered yet") || strings.Contains(out, "the root relay does not answer connections")
	})
	check(t, disk.Fill(0))
	killUntilRestart(t, f, fleet.Jobs)
	until(t, "the jobs service serves again", func() bool {
		_, err := f.Muster("deployment", "list")
		return err == nil
	})
	if err := push("1.0.1"); err == nil || !strings.Contains(err.Error(), "no space for more data") {
		t.Errorf("a full disk admits a new version: %v", err)
	}
	must(f.Muster("deployment", "cancel", id))(t)
	check(t, disk.Free())
	until(t, "data is admitted again", func() bool { return push("1.0.1") == nil })
	check(t, relay.Continue())
	// The submission of the killed process may arrive first: its job then fails, because its node is unknown.
	until(t, "the deployment ends", func() bool {
		shown, _ := f.Muster("deployment", "show", id)
		return strings.Contains(shown, "cancelled") || strings.Contains(shown, "failed")
	})
}

// kill ends the aggregator with SIGKILL and waits until it serves again.
func kill(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	before := must(f.Process(fleet.Aggregator))(t)
	before.Kill()
	until(t, "the aggregator serves again", func() bool {
		now, err := f.Process(fleet.Aggregator)
		if err != nil || now.PID == before.PID {
			return false
		}
		_, err = f.Muster("runs")
		return err == nil
	})
}

func reserved(t *testing.T, f *fleet.Fleet) bool {
	t.Helper()
	text := must(metrics(f, "aggregator"))(t)
	return !strings.Contains(text, "\nmuster_disk_reserve_bytes 0\n")
}

func wantReserve(t *testing.T, f *fleet.Fleet, want bool) {
	t.Helper()
	if got := reserved(t, f); got != want {
		t.Errorf("the reserve is held: %v, want %v", got, want)
	}
}

// blobFiles lists the files of results, staged and published, as the aggregator sees them.
func blobFiles(t *testing.T, f *fleet.Fleet) (files []string) {
	t.Helper()
	process := must(f.Process(fleet.Aggregator))(t)
	root := filepath.Join("/proc", strconv.Itoa(process.PID), "root", f.Home, "aggregator", "blobs")
	check(t, filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && info.Name() != "lock" {
			files = append(files, path)
		}
		return err
	}))
	return files
}
