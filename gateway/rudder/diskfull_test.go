package rudder

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const smallDisk = "MUSTER_TEST_SMALL_DISK" // where the process of this test in its own namespaces mounts a small disk

// TestUploadOnFullDiskFailsAndLosesNothing runs itself again where it may mount a file system of 1 MiB.
func TestUploadOnFullDiskFailsAndLosesNothing(t *testing.T) {
	folder := os.Getenv(smallDisk)
	if folder == "" {
		again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
		again.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := again.CombinedOutput()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || strings.Contains(string(out), "cannot mount") {
			t.Skip("this machine allows no namespaces: ", err)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Error(err, string(out))
		}
		return
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal("cannot mount: ", err)
	}
	defer syscall.Unmount(folder, syscall.MNT_DETACH)
	onDisk := func(s *testRelay) {
		s.config.SharedFilesNodes, s.config.SharedFiles = filepath.Join(folder, "nodes"), filepath.Join(folder, "files")
	}
	s := start(t, "r1", "127.0.0.1", 0, listOf("n-a a.example r1", "n-b b.example r1"), extended, withCertificates("n-a"), withUpstream("root", "127.0.0.9"), onDisk)
	half := strings.Repeat("h", 500<<10)
	s.want(s.share("n-b", "n-a", "old", half), 200, "")
	const full = "the disk of this relay is full"
	s.want(s.share("n-b", "n-a", "new", half+half), 507, full)
	s.want(s.share("n-b", "n-a", "old", half+half), 507, full)
	s.want(s.share("elsewhere", "n-a", "new", half+half), 507, full)
	if got := s.has("n-b", "n-a", "old", sumOf(half)); got != 200 || s.leftovers() != 0 || s.spoolFolder() != 0 {
		t.Error("an accepted file is missing, or a partial one is left", got)
	}
	s.want(s.share("n-b", "n-a", "small", "x"), 200, "")
	strict := startRoot(t, onDisk)
	strict.want(strict.put("new?ttl=1d", block("n-a", "sha512", half+half), half+half), 500, "") // as released relays answer
	strict.want(strict.put("new?ttl=1d", block("n-a", "sha512", "x"), "x"), 200, "")
	if strict.leftovers() != 0 {
		t.Error("a partial file is left")
	}
}
