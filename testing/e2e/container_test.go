package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// newDocker starts a Docker daemon and a registry for the test, and returns the reference of an image in it.
func newDocker(t *testing.T) (docker *fleet.Docker, image string) {
	t.Helper()
	docker = must(fleet.StartDocker())(t)
	t.Cleanup(func() { check(t, docker.Close()) })
	return docker, must(docker.PushBusybox("tools/busybox", "/bin/echo", "from the image"))(t)
}

// containerNode attaches a node whose policy admits the images of a registry.
func containerNode(t *testing.T, f *fleet.Fleet, name string, docker *fleet.Docker) *node {
	t.Helper()
	policy := "containers:\n  - images: [\"" + docker.Registry + "/tools/*\"]\n    environment: [GREETING]\n    memory: 64MiB\n"
	n := join(t, f, name, policy, nil, []string{"DOCKER_HOST=unix://" + docker.Socket})
	n.attach(t)
	return n
}

// noContainers fails unless the daemon has no container any more.
func noContainers(t *testing.T, docker *fleet.Docker) {
	t.Helper()
	until(t, "the containers are removed", func() bool { return len(must(docker.Containers())(t)) == 0 })
}

// A node with Docker and nothing else pulls the image by its digest, and prints what the command printed.
func TestExecInAContainer(t *testing.T) {
	t.Parallel()
	f := up(t)
	docker, image := newDocker(t)
	containerNode(t, f, "n1", docker)
	inContainer := func(arguments ...string) (stdout, stderr string, code int) {
		return execOn(t, f, append([]string{"--node", "n1", "--image", image}, arguments...)...)
	}

	out, stderr, code := inContainer("--env", "GREETING=hello", "--", "sh", "-c",
		"echo $GREETING; id -u; printf 'last \\377 byte'; echo err >&2; touch /file; exit 3")
	if code != 9 || !strings.Contains(out, "n1: hello\nn1: 65532\n") || !strings.Contains(stderr, "n1: err\n") ||
		!strings.Contains(stderr, "Read-only file system") || !strings.Contains(stderr, "exit code 3") {
		t.Errorf("exit %d: %q %q", code, out, stderr)
	}
	if out, stderr, code = inContainer(); code != 0 || out != "n1: from the image\n" {
		t.Errorf("the command of the image: exit %d: %q %q", code, out, stderr)
	}
	noContainers(t, docker)

	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--image", image, "--detach", "--", "sleep", "1000"))(t))
	until(t, "the container runs", func() bool {
		names := must(docker.Containers())(t)
		return len(names) == 1 && names[0] == "muster-n1-"+job
	})
	if shown := must(f.Muster("job", "show", job))(t); !strings.Contains(shown, image) || !strings.Contains(shown, "sleep 1000") {
		t.Errorf("job show prints %s", shown)
	}
	must(f.Muster("job", "cancel", job))(t)
	noContainers(t, docker)
	if audit := must(f.Muster("audit"))(t); !strings.Contains(audit, "container "+image+" sleep 1000") {
		t.Errorf("the audit log has no record of the container:\n%s", audit)
	}

	out, stderr, code = inContainer("--", "sh", "-c", "x=y; while :; do x=$x$x; done")
	if code != 9 || !strings.Contains(stderr, "limited to 64 MiB") {
		t.Errorf("a command that needs too much memory: exit %d: %q %q", code, out, stderr)
	}
}

// Each refusal names its reason.
func TestContainerIsRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	docker, image := newDocker(t)
	n1 := containerNode(t, f, "n1", docker)
	digest := image[strings.Index(image, "@"):]
	for _, c := range []struct {
		image, reason string
		code          int
	}{
		{"busybox:1.36", "is not an image by its content", 2},
		{"../containers" + digest, "is not an image by its content", 2},
		{"evil.example/tools/busybox" + digest, "POLICY_REFUSED", 9},
		{docker.Registry + "/tools/none" + digest, "IMAGE_PULL_FAILED", 9},
	} {
		if out, stderr, code := execOn(t, f, "--node", "n1", "--image", c.image, "--", "true"); code != c.code || !strings.Contains(stderr, c.reason) {
			t.Errorf("%s: exit %d, %q %q; want %d and %s", c.image, code, out, stderr, c.code, c.reason)
		}
	}
	if _, stderr, code := execOn(t, f, "--node", "n1", "--", "/bin/true"); code != 9 || !strings.Contains(stderr, "has no rule for commands") {
		t.Errorf("a command on the node: exit %d: %s", code, stderr)
	}
	check(t, docker.KillDaemon())
	if _, stderr, code := execOn(t, f, "--node", "n1", "--image", image, "--", "true"); code != 9 || !strings.Contains(stderr, "DOCKER_UNREACHABLE") {
		t.Errorf("without Docker: exit %d: %s", code, stderr)
	}
	check(t, docker.StartDaemon())
	if out, stderr, code := execOn(t, f, "--node", "n1", "--image", image, "--", "echo", "well"); code != 0 || out != "n1: well\n" {
		t.Errorf("afterwards: exit %d: %q %q", code, out, stderr)
	}
	n1.agent.End()
}

// The command runs once, and its output arrives whole, although agent and daemon are killed while it runs.
func TestContainerSurvivesKillsOfAgentAndDaemon(t *testing.T) {
	t.Parallel()
	f := up(t)
	docker, image := newDocker(t)
	n1 := containerNode(t, f, "n1", docker)
	job := strings.TrimSpace(must(f.Muster("exec", "--node", "n1", "--image", image, "--deadline", "2m", "--detach", "--", "sh", "-c",
		"for i in $(seq 200); do echo line $i; sleep 0.05; done; exit 4"))(t))
	printed := func(line string) func() bool {
		return func() bool {
			out, _ := f.Muster("job", "logs", job)
			return strings.Contains(out, "n1: "+line+"\n")
		}
	}
	until(t, "the command prints", printed("line 10"))
	n1.agent.End()
	n1.start(t)
	until(t, "the agent follows the container", printed("line 60"))
	check(t, docker.KillDaemon())
	check(t, docker.StartDaemon())
	until(t, "the agent follows it again", printed("line 120"))
	n1.agent.End()
	check(t, fleet.Until(time.Minute, "the container has ended without its agent", func() bool {
		out, err := docker.Run("ps", "--format", "{{.Names}}")
		return err == nil && out == ""
	}))
	n1.start(t)
	out, err := f.Muster("job", "logs", "-f", job)
	wantExit(t, err, 9, "exit code 4")
	if want := 200; strings.Count(out, "n1: line ") != want || !strings.Contains(out, "n1: line 200\n") {
		t.Errorf("%d lines arrived, want %d: %s", strings.Count(out, "n1: line "), want, out)
	}
	noContainers(t, docker)
	if left, _ := filepath.Glob(filepath.Join(n1.folder(), "jobs", "*", "*.damaged")); len(left) > 0 {
		t.Errorf("damaged records: %v", left)
	}
	if _, err := os.Stat(filepath.Join(n1.folder(), "jobs")); err != nil {
		t.Error(err)
	}
}
