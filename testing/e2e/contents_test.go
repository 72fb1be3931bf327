package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster.example/testing/fleet"
)

// largeBytes returns bytes without a pattern, equal for equal seeds.
func largeBytes(seed byte, size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(content)
	return content
}

// contents has a node that is attached to a relay behind the root relay, and an ad-hoc type whose container prints the
// SHA-256 of its files.
type contents struct {
	*deploying
	relay *relay
	files string // a folder with 50 MB
	sums  []string
}

func newContents(t *testing.T) *contents {
	t.Helper()
	c := &contents{deploying: &deploying{Fleet: up(t), folder: t.TempDir()}}
	c.docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, c.docker.Close()) })
	image := must(c.docker.PushBusybox("types/plain", "/bin/false"))(t)
	must(c.Muster("type", "push", c.write(t, "shell.yaml", scriptType(image))))(t)
	relay, address := localRelay(t, c.Fleet, "r1", "")
	c.relay = relay
	policy := "containers:\n  - images: [\"" + c.docker.Registry + "/types/*\"]\n    actions: [ad-hoc]\n"
	c.node = join(t, c.Fleet, "n1", policy, nil, []string{"DOCKER_HOST=unix://" + c.docker.Socket})
	c.node.attachAt(t, address)
	c.files = filepath.Join(c.folder, "files")
	check(t, os.MkdirAll(filepath.Join(c.files, "data"), 0o700))
	check(t, os.WriteFile(filepath.Join(c.files, "main.sh"), []byte("cd /files && sha256sum data/*\n"), 0o600))
	for i, size := range []int{30_000_000, 19_500_000, 500_000} {
		c.add(t, fmt.Sprintf("f%d", i), largeBytes(byte(i), size))
	}
	return c
}

// add writes a file, whose SHA-256 the container prints.
func (c *contents) add(t *testing.T, name string, content []byte) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(c.files, "data", name), content, 0o600))
	c.sums = append(c.sums, fmt.Sprintf("n1: %x  data/%s\n", sha256.Sum256(content), name))
}

// start begins a deployment of the files, and returns its command.
func (c *contents) start(t *testing.T, output *bytes.Buffer) *exec.Cmd {
	t.Helper()
	command := c.Command(context.Background(), "deploy", c.files, "--type", "shell", "--node", "n1", "--wait")
	command.Stdout, command.Stderr = output, output
	check(t, command.Start())
	return command
}

// wantSums fails unless the output has the line of each file once.
func (c *contents) wantSums(t *testing.T, output string) {
	t.Helper()
	for _, sum := range c.sums {
		if strings.Count(output, sum) != 1 {
			t.Errorf("the container did not print %q once:\n%s", sum, output)
		}
	}
}

// size returns the bytes of the regular files in a folder.
func folderSize(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(path string, _ os.DirEntry, _ error) error {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}

// Files of 50 MB reach a node behind two relays, and a retry and a second deployment need no upload.
func TestLargeFilesAreDeployedThroughRelays(t *testing.T) {
	t.Parallel()
	c := newContents(t)
	out := must(c.Muster("deploy", c.files, "--type", "shell", "--node", "n1", "--wait"))(t)
	c.wantSums(t, out)
	contents := filepath.Join(c.Home, "jobs", "contents", "blobs")
	stored := folderSize(contents)
	if stored < 50_000_000 {
		t.Errorf("the jobs service stores %d bytes", stored)
	}
	until(t, "the node has removed the files of the ended deployment", func() bool {
		return folderSize(filepath.Join(c.node.folder(), "jobs")) < 1_000_000
	})

	// The policy of the node refuses the next one, which is then tried again.
	c.setPolicy(t, "actions: [ad-hoc]\n    max_files: 10MiB")
	out, err := c.Muster("deploy", c.files, "--type", "shell", "--node", "n1", "--wait")
	wantExit(t, err, 9, "")
	if text := out + fmt.Sprint(err); !strings.Contains(text, "FILES_TOO_LARGE") {
		t.Errorf("files beyond max_files of the policy: %s", text)
	}
	failed := c.newest(t)
	c.setPolicy(t, "actions: [ad-hoc]")
	c.wantSums(t, must(c.Muster("deployment", "retry", failed, "--wait"))(t))
	if now := folderSize(contents); now != stored {
		t.Errorf("the jobs service stores %d bytes after another deployment of the same files, not %d", now, stored)
	}
	noContainers(t, c.docker)
}

// newest returns the id of the newest deployment.
func (c *contents) newest(t *testing.T) string {
	t.Helper()
	var all []shownDeployment
	check(t, c.JSON(&all, "deployment", "list"))
	return all[0].Deployment
}

// A kill of the jobs service, of each relay or of the agent interrupts neither the upload nor the reads for good, and
// the command runs once.
func TestLargeFilesAreDeployedAlthoughProgramsAreKilled(t *testing.T) {
	t.Parallel()
	c := newContents(t)
	staged := filepath.Join(c.Home, "jobs", "contents", "staged")
	var output bytes.Buffer
	deploy := c.start(t, &output)
	until(t, "a part of the upload is stored", func() bool { return folderSize(staged) > 1_000_000 })
	must(c.Process(fleet.Jobs))(t).Kill()
	fetched := func() bool {
		paths, _ := filepath.Glob(filepath.Join(c.node.folder(), "jobs", "*", "files", "data", "f*"))
		return len(paths) > 0
	}
	until(t, "the node reads the files", fetched)
	must(c.Process(fleet.Jobs))(t).Kill()
	must(c.Process(fleet.Relay, "--config", filepath.Join(c.Home, "config", "relay.yaml")))(t).Kill()
	c.node.agent.End()
	c.node.attach(t)
	c.relay.killAndStart(t)
	if err := deploy.Wait(); err != nil {
		t.Errorf("muster deploy: %v", err)
	}
	c.wantSums(t, output.String())
	noContainers(t, c.docker)
}

// An interrupted upload is resumed by the next command.
func TestInterruptedUploadOfFilesIsResumed(t *testing.T) {
	t.Parallel()
	c := newContents(t)
	staged := filepath.Join(c.Home, "jobs", "contents", "staged")
	var output bytes.Buffer
	deploy := c.start(t, &output)
	until(t, "a part of the upload is stored", func() bool { return folderSize(staged) > 1_000_000 })
	check(t, deploy.Process.Kill())
	_ = deploy.Wait()
	if kept := folderSize(filepath.Join(c.Home, "jobs", "contents")); kept < 1_000_000 {
		t.Errorf("the jobs service keeps %d bytes of the interrupted upload", kept)
	}
	// So that the next one cannot end before the signal.
	jobs := must(c.Process(fleet.Jobs))(t)
	check(t, jobs.Stop())
	output.Reset()
	deploy = c.start(t, &output)
	if code := interrupt(t, deploy, syscall.SIGINT); code != 130 || !strings.Contains(output.String(), "Run the same command again: it continues the upload") {
		t.Errorf("an interrupted upload ends with %d: %s", code, output.String())
	}
	check(t, jobs.Continue())
	out := must(c.Muster("deploy", c.files, "--type", "shell", "--node", "n1", "--wait"))(t)
	c.wantSums(t, out)
}

// A node notices a relay that changes bytes in transit, and does not start the container.
func TestForgingRelayCannotChangeTheFilesOfADeployment(t *testing.T) {
	t.Parallel()
	d := &deploying{Fleet: up(t), folder: t.TempDir()}
	d.docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, d.docker.Close()) })
	image := must(d.docker.PushBusybox("types/plain", "/bin/false"))(t)
	must(d.Muster("type", "push", d.write(t, "shell.yaml", scriptType(image))))(t)
	forger := newForgingRelay(t, d.Fleet, "r9")
	policy := "containers:\n  - images: [\"" + d.docker.Registry + "/types/*\"]\n    actions: [ad-hoc]\n"
	d.node = join(t, d.Fleet, "n1", policy, nil, []string{"DOCKER_HOST=unix://" + d.docker.Socket})
	d.node.attachTo(t, forger)
	files := filepath.Join(d.folder, "files")
	check(t, os.MkdirAll(files, 0o700))
	check(t, os.WriteFile(filepath.Join(files, "main.sh"), largeBytes(1, 1_000_000), 0o600))
	out, err := d.Muster("deploy", files, "--type", "shell", "--node", "n1", "--wait")
	wantExit(t, err, 9, "")
	if text := out + fmt.Sprint(err); !strings.Contains(text, "CONTENT_DAMAGED") {
		t.Errorf("a relay that changes the bytes: %s", text)
	}
	if forger.changedParts.Load() == 0 {
		t.Error("the relay changed nothing")
	}
	noContainers(t, d.docker)
}

// The jobs service refuses uploads on a full disk, keeps what it has, and resumes them afterwards.
func TestFullDiskInterruptsTheUploadOfFiles(t *testing.T) {
	t.Parallel()
	f, disk, err := fleet.NewOnSmallDiskOf("jobs")
	check(t, err)
	closeAtEnd(t, f)
	d := &deploying{Fleet: f, folder: t.TempDir()}
	must(d.Muster("type", "push", d.write(t, "shell.yaml", scriptType("a@sha256:"+strings.Repeat("a", 64)))))(t)
	join(t, f, "n1", openPolicy, nil, nil)
	files := filepath.Join(d.folder, "files")
	check(t, os.MkdirAll(files, 0o700))
	check(t, os.WriteFile(filepath.Join(files, "main.sh"), largeBytes(1, 2_000_000), 0o600))
	check(t, disk.Fill(1_000_000))
	_, err = d.Muster("deploy", files, "--type", "shell", "--node", "n1")
	wantExit(t, err, 72, "DISK_FULL")
	check(t, disk.Free())
	must(d.Muster("deploy", files, "--type", "shell", "--node", "n1"))(t)
}
