package fleet

import (
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

//go:embed debian_boot.sh
var bootScript string

// Debian is a machine with Debian, systemd and an SSH server: see debian_boot.sh. Its network is ours. It requires root and the packages of the section [test] of deploy/packages.
type Debian struct {
	Address string
	Port    int
	HostKey string // of its SSH server: "TYPE BASE64"

	folder string // has the private key, and the control groups of the machine
	boot   *exec.Cmd
}

// DockerOfDebian is what a machine has of Docker.
type DockerOfDebian string

const (
	DockerInstalled DockerOfDebian = "installed"
	DockerPackage   DockerOfDebian = "package"
)

// StartDebian starts a machine that root enters by SSH with the private key KeyFile. Docker is installed, or a package
// that can be installed.
func StartDebian(docker DockerOfDebian) (*Debian, error) {
	folder, err := os.MkdirTemp("", "debian")
	if err != nil {
		return nil, err
	}
	d := &Debian{Address: "127.0.0.1", folder: folder}
	if err := d.start(docker); err != nil {
		output, _ := os.ReadFile(filepath.Join(folder, "log"))
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, d.Close()), output)
	}
	return d, nil
}

func (d *Debian) start(docker DockerOfDebian) error {
	script := filepath.Join(d.folder, "boot")
	if err := os.WriteFile(script, []byte(bootScript), 0o700); err != nil {
		return err
	}
	if _, err := run(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", d.KeyFile())); err != nil {
		return err
	}
	public, err := os.ReadFile(d.KeyFile() + ".pub")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", d.Address+":0")
	if err != nil {
		return err
	}
	d.Port = listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil { // sshd has no other way to get a free port
		return err
	}
	log, err := os.Create(filepath.Join(d.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	d.boot = exec.Command(script, "prepare", d.folder, d.Address, fmt.Sprint(d.Port), strings.TrimSpace(string(public)), string(docker))
	d.boot.Stdout, d.boot.Stderr = log, log
	if err := d.boot.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- d.boot.Wait() }()
	return errors.Join(Until(time.Minute, "the machine has an SSH server", func() bool {
		out, err := run(exec.Command("ssh-keyscan", "-t", "ed25519", "-p", fmt.Sprint(d.Port), d.Address))
		if words := strings.Fields(out); err == nil && len(words) == 3 {
			d.HostKey = words[1] + " " + words[2]
		}
		return d.HostKey != "" || len(ended) > 0
	}), d.knowHost())
}

func (d *Debian) knowHost() error {
	if d.HostKey == "" {
		return errors.New("the machine did not start")
	}
	line := fmt.Sprintf("[%s]:%d %s\n", d.Address, d.Port, d.HostKey)
	return os.WriteFile(filepath.Join(d.folder, "known_hosts"), []byte(line), 0o600)
}

// KeyFile is the private key that root of the machine admits.
func (d *Debian) KeyFile() string { return filepath.Join(d.folder, "key") }

// SSHOptions are the options of ssh with which it trusts the machine and no other.
func (d *Debian) SSHOptions() []string {
	return []string{"-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile=" + filepath.Join(d.folder, "known_hosts")}
}

// Run runs a shell command as root of the machine, and returns what it prints.
func (d *Debian) Run(command string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	arguments := append(d.SSHOptions(), "-i", d.KeyFile(), "-p", fmt.Sprint(d.Port), "root@"+d.Address, command)
	return run(exec.CommandContext(ctx, "ssh", arguments...))
}

// Close ends the machine and removes its folder.
func (d *Debian) Close() error {
	if d.boot != nil && d.boot.Process != nil {
		_ = d.boot.Process.Kill() // its namespaces end with it
	}
	var failures []error
	groups, _ := os.ReadFile(filepath.Join(d.folder, "groups"))
	for _, group := range strings.Fields(string(groups)) {
		failures = append(failures, removeGroup(group))
	}
	return errors.Join(append(failures, os.RemoveAll(d.folder))...)
}

// removeGroup removes a control group whose processes end.
func removeGroup(group string) error {
	return Until(time.Minute, group+" is empty", func() bool {
		var all []string
		_ = filepath.WalkDir(group, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				all = append(all, path)
			}
			return nil
		})
		for i := len(all) - 1; i >= 0; i-- { // a group after those in it
			_ = syscall.Rmdir(all[i])
		}
		_, err := os.Stat(group)
		return errors.Is(err, os.ErrNotExist)
	})
}
