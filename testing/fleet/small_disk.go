package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// SmallDisk is a file system for the aggregator's data that is small enough to be filled.
type SmallDisk struct {
	fleet   *Fleet
	folder  string // as the aggregator sees it
	private bool   // in the mount namespace of the services, invisible to others
}

// The size of the small disk.
const smallDiskBytes = 64 << 20

// NewOnSmallDisk is New and Up with a small disk of the aggregator.
func NewOnSmallDisk() (*Fleet, *SmallDisk, error) { return NewOnSmallDiskOf("aggregator") }

// NewOnSmallDiskOf is New and Up with a small disk for the folder of a service. The disk is mounted in a namespace of the services, and ends with the
// last of them. Where that is not permitted, as in most containers, /dev/shm is used: it is small there, and private to
// the container.
func NewOnSmallDiskOf(service string) (*Fleet, *SmallDisk, error) {
	f, err := New("")
	if err != nil {
		return nil, nil, err
	}
	disk := &SmallDisk{f, filepath.Join(f.Home, service), true}
	namespaceErr := f.upInNamespace(disk.folder)
	if namespaceErr == nil {
		return f, disk, nil
	}
	shared := "/dev/shm"
	var space syscall.Statfs_t
	if err := syscall.Statfs(shared, &space); err != nil || int64(space.Blocks)*space.Bsize > 4*smallDiskBytes {
		return nil, nil, errors.Join(fmt.Errorf("no small disk is available: no mount namespace (%w), and %s is not small: "+
			"run as root, or in a container", namespaceErr, shared), f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, nil, err
	}
	if f, err = New(shared); err != nil {
		return nil, nil, err
	}
	return f, &SmallDisk{f, f.Home, false}, f.Up()
}

const mountAndRun = `mkdir -p "$1" && mount -t tmpfs -o "size=$2,mode=0700" small-disk "$1" && shift 2 && exec "$@"`

func (f *Fleet) upInNamespace(folder string) error {
	flags := []string{"--mount"}
	if os.Getuid() != 0 {
		flags = append(flags, "--user", "--map-root-user")
	}
	ctx, cancel := context.WithTimeout(context.Background(), upLimit)
	defer cancel()
	up := f.Command(ctx, "up", "--port", "0")
	command := exec.CommandContext(ctx, "unshare", append(append(flags, "/bin/sh", "-c", mountAndRun, "mount",
		folder, fmt.Sprint(smallDiskBytes)), up.Args...)...)
	command.Env, command.WaitDelay = up.Env, up.WaitDelay
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, stderr.String())
	}
	return nil
}

// Fill leaves this many bytes free, or a little less.
func (d *SmallDisk) Fill(leave int64) error {
	root, err := d.root()
	if err != nil {
		return err
	}
	filler, err := os.Create(filepath.Join(root, "filler"))
	if err != nil {
		return err
	}
	defer filler.Close()
	block := make([]byte, 64<<10)
	for {
		var space syscall.Statfs_t
		if err := syscall.Fstatfs(int(filler.Fd()), &space); err != nil {
			return err
		}
		free := int64(space.Bavail)*space.Bsize - leave
		if free <= 0 {
			return nil
		}
		if _, err := filler.Write(block[:min(free, int64(len(block)))]); err != nil {
			return err
		}
	}
}

// Free removes what Fill wrote.
func (d *SmallDisk) Free() error {
	root, err := d.root()
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(root, "filler"))
}

// root returns the disk's folder as this process sees it.
func (d *SmallDisk) root() (string, error) {
	if !d.private {
		return d.folder, nil
	}
	process, err := d.fleet.Process(Aggregator)
	return filepath.Join(fmt.Sprintf("/proc/%d/root", process.PID), d.folder), err
}
