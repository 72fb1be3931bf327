package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dockerPath is the PATH of Debian's programs: another docker of the machine would not know the daemon's options.
const dockerPath = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"

// Docker is a real Docker daemon with its own folder, and a registry that it pulls from.
type Docker struct {
	Socket   string
	Registry string // host:port

	folder   string
	daemon   *exec.Cmd
	registry *exec.Cmd
}

// StartDocker starts both. It requires root and the packages of the section [test] of deploy/packages.
func StartDocker() (*Docker, error) {
	folder, err := os.MkdirTemp("", "docker")
	if err != nil {
		return nil, err
	}
	d := &Docker{Socket: filepath.Join(folder, "sock"), folder: folder}
	if err = d.StartDaemon(); err == nil {
		err = d.startRegistry()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, d.Close())
	}
	return d, nil
}

// StartDaemon starts the daemon, or starts it again after KillDaemon.
func (d *Docker) StartDaemon() error {
	output, err := os.OpenFile(filepath.Join(d.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	d.daemon = exec.Command("/usr/sbin/dockerd", "--iptables=false", "--bridge=none", "--live-restore", "--storage-driver=overlay2",
		"--data-root="+d.folder+"/root", "--exec-root="+d.folder+"/exec", "--pidfile="+d.folder+"/pid", "--host=unix://"+d.Socket)
	d.daemon.Env = []string{dockerPath, "HOME=" + d.folder}
	d.daemon.Stdout, d.daemon.Stderr = output, output
	if err := d.daemon.Start(); err != nil {
		return err
	}
	return Until(time.Minute, "Docker answers", func() bool {
		_, err := d.Run("version")
		return err == nil
	})
}

// KillDaemon kills the daemon; its containers run on.
func (d *Docker) KillDaemon() error {
	if err := d.daemon.Process.Kill(); err != nil {
		return err
	}
	_ = d.daemon.Wait() // it was killed
	// Its containerd ends with it, a moment later. The next daemon would wait in vain for the process in this file, also
	// if it was not reaped yet.
	file := filepath.Join(d.folder, "exec/containerd/containerd.pid")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err := Until(time.Minute, "containerd ends", func() bool { return !Process{PID: pid}.runs() }); err != nil {
		return err
	}
	return errors.Join(os.Remove(file), os.Remove(filepath.Join(d.folder, "pid")))
}

func (d *Docker) startRegistry() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.Registry = listener.Addr().String()
	configuration := filepath.Join(d.folder, "registry.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: warn}\nstorage: {filesystem: {rootdirectory: %s/images}}\nhttp: {addr: %s}\n",
		d.folder, d.Registry)
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		return err
	}
	if err := listener.Close(); err != nil { // the registry has no other way to get a free port
		return err
	}
	d.registry = exec.Command("/usr/bin/docker-registry", "serve", configuration)
	if err := d.registry.Start(); err != nil {
		return err
	}
	return Until(time.Minute, "the registry answers", func() bool {
		connection, err := net.Dial("tcp", d.Registry)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}

// StopRegistry ends the registry: nothing answers at its address any more.
func (d *Docker) StopRegistry() error {
	if err := d.registry.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_ = d.registry.Wait() // it was ended
	d.registry = nil
	return nil
}

// Run runs a command of Docker's client, and returns what it prints.
func (d *Docker) Run(arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	return run(exec.CommandContext(ctx, "/usr/bin/docker", append([]string{"-H", "unix://" + d.Socket}, arguments...)...))
}

func run(command *exec.Cmd) (string, error) {
	command.Env = append(append(os.Environ(), command.Env...), dockerPath)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, &stderr)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// PushBusybox pushes an image of busybox to the registry, removes it from the daemon, and returns its reference by
// digest. Its containers run `command`.
func (d *Docker) PushBusybox(name string, command ...string) (string, error) {
	const script = `set -eu
mkdir -p "$1/bin" "$1/tmp" "$1/etc"
chmod 1777 "$1/tmp"
cp /usr/bin/busybox "$1/bin/"
for applet in $(busybox --list); do [ "$applet" = busybox ] || ln -sf busybox "$1/bin/$applet"; done
tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 -c . | docker -H "unix://$2" import -c "CMD $4" - "$3"`
	reference := d.Registry + "/" + name
	list, err := json.Marshal(command)
	if err != nil {
		return "", err
	}
	if _, err := run(exec.Command("/bin/sh", "-c", script, "image", filepath.Join(d.folder, "image"), d.Socket, reference, string(list))); err != nil {
		return "", err
	}
	return d.push(reference)
}

// push pushes an image, removes it from the daemon, and returns its reference by digest.
// AddProgram adds a static program to the images of PushBusybox, in /bin.
func (d *Docker) AddProgram(path string) error {
	folder := filepath.Join(d.folder, "image/bin")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	_, err := run(exec.Command("/bin/cp", path, folder))
	return err
}

func (d *Docker) push(reference string) (string, error) {
	if _, err := d.Run("push", reference); err != nil {
		return "", err
	}
	digest, err := d.Run("image", "inspect", "--format", "{{index .RepoDigests 0}}", reference)
	if err != nil {
		return "", err
	}
	_, err = d.Run("image", "rm", reference)
	return digest, err
}

// Containers returns the names of all containers.
func (d *Docker) Containers() ([]string, error) {
	out, err := d.Run("ps", "--all", "--format", "{{.Names}}")
	return strings.Fields(out), err
}

// Close removes the containers, ends both programs and removes their folder.
func (d *Docker) Close() error {
	if names, err := d.Containers(); err == nil && len(names) > 0 {
		_, _ = d.Run(append([]string{"rm", "--force", "--volumes"}, names...)...)
	}
	for _, command := range []*exec.Cmd{d.daemon, d.registry} {
		if command == nil || command.Process == nil {
			continue
		}
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	}
	return errors.Join(d.unmount(), os.RemoveAll(d.folder))
}

// unmount removes what a killed daemon left mounted in the folder.
func (d *Docker) unmount() error {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var failures []error
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], d.folder+"/") {
			if err := syscall.Unmount(fields[1], syscall.MNT_DETACH); err != nil && err != syscall.EINVAL { // EINVAL: it went with another one
				failures = append(failures, fmt.Errorf("unmount %s: %w", fields[1], err))
			}
		}
	}
	return errors.Join(failures...)
}
