package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	mebibyte = 1 << 20
	// memoryFolder is the size of /tmp.
	memoryFolder = 64 * mebibyte
	// enoughDisk is what a deployment may write to /state (64 MiB) and its output, with room to spare.
	enoughDisk = 1 << 30
)

func filesystemChecks() []check {
	return []check{
		{"filesystem.state", "filesystem", true, "writable", func() finding { return writable(stateFolder) }},
		{"filesystem.state-sync", "filesystem", true, "fsync works", checkSync},
		{"filesystem.outputs", "filesystem", true, "an empty folder", checkOutputs},
		{"filesystem.parameters", "filesystem", true, "one JSON object", checkParameters},
		{"filesystem.names", "filesystem", true, "any UTF-8", checkNames},
		{"filesystem.root", "filesystem", true, "read-only", func() finding { return mountedReadOnly("/") }},
		{"filesystem.sys", "filesystem", true, "read-only", func() finding { return mountedReadOnly("/sys") }},
		{"filesystem.proc-sys", "filesystem", true, "read-only", func() finding { return mountedReadOnly("/proc/sys") }},
		{"filesystem.tmp", "filesystem", true, "in memory", checkMemoryFolder},
		{"filesystem.tmp-size", "filesystem", true, bytesText(memoryFolder), checkMemoryFolderSize},
		{"filesystem.docker-socket", "filesystem", true, "absent", checkDockerSocket},
		{"filesystem.devices", "filesystem", true, "no disk and no memory of the machine", checkDevices},
		{"filesystem.umask", "filesystem", false, "0022", checkUmask},
		{"filesystem.free", "filesystem", false, "at least 1 GiB for /state", checkFree},
	}
}

func writable(folder string) finding {
	path := filepath.Join(folder, ".conformance")
	text := []byte("conformance\x00\n")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return holds("not writable", err)
	}
	read, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(read, text) {
		err = errors.New("other bytes are read than were written")
	}
	return holds("writable", errors.Join(err, os.Remove(path)))
}

func checkSync() finding {
	path := stateFolder + "/.sync"
	file, err := os.Create(path)
	if err != nil {
		return holds("not writable", err)
	}
	_, err = file.WriteString("conformance")
	err = errors.Join(err, file.Sync(), file.Close(), os.Remove(path))
	if err != nil {
		return holds("fsync fails", err)
	}
	return holds("fsync works", nil)
}

func checkOutputs() finding {
	entries, err := os.ReadDir(stateFolder + "/outputs")
	if err != nil {
		return holds("no folder", err)
	}
	if len(entries) > 0 {
		return holds("not empty", fmt.Errorf("it has %q", entries[0].Name()))
	}
	found := writable(stateFolder + "/outputs")
	if found.failure == nil {
		found.measured = "an empty folder"
	}
	return found
}

// checkParameters checks what probeAll has not: it has read one JSON value.
func checkParameters() finding {
	text, err := os.ReadFile(stateFolder + "/parameters.json")
	if err == nil && !strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
		err = errors.New("it is no object")
	}
	return holds("one JSON object", err)
}

func checkNames() finding {
	for _, name := range []string{"with space", "Grüße", "名前", "quote'\"", "line\nbreak", strings.Repeat("n", 255)} {
		path := filepath.Join(stateFolder, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return holds("not all", err)
		}
		entries, err := os.ReadDir(stateFolder)
		found := false
		for _, entry := range entries {
			found = found || entry.Name() == name
		}
		if err == nil && !found {
			err = fmt.Errorf("%q is listed by another name", name)
		}
		if err = errors.Join(err, os.Remove(path)); err != nil {
			return holds("not all", err)
		}
	}
	return holds("any UTF-8", nil)
}

// mountedReadOnly checks the mount and not whether a file can be opened: that also depends on the user.
func mountedReadOnly(path string) finding {
	var statistics unix.Statfs_t
	if err := unix.Statfs(path, &statistics); err != nil {
		return holds("unknown", err)
	}
	if statistics.Flags&unix.ST_RDONLY == 0 {
		return holds("writable", errors.New("a user with rights on the files may change them"))
	}
	return holds("read-only", nil)
}

func checkMemoryFolder() finding {
	var statistics unix.Statfs_t
	if err := unix.Statfs("/tmp", &statistics); err != nil {
		return holds("no /tmp", err)
	}
	if statistics.Type != unix.TMPFS_MAGIC {
		return holds("on a disk", fmt.Errorf("its type is %#x", statistics.Type))
	}
	found := writable("/tmp")
	if found.failure == nil {
		found.measured = "in memory"
	}
	return found
}

// checkMemoryFolderSize fills the folder: a size that is only declared does not protect the node.
func checkMemoryFolderSize() finding {
	path := "/tmp/.fill"
	file, err := os.Create(path)
	if err != nil {
		return holds("not writable", err)
	}
	block := make([]byte, mebibyte)
	var written int64
	for written <= 2*memoryFolder {
		n, writeErr := file.Write(block)
		written += int64(n)
		if writeErr != nil {
			err = writeErr
			break
		}
	}
	closeErr := errors.Join(file.Close(), os.Remove(path))
	switch {
	case err == nil:
		err = fmt.Errorf("%d bytes fit into it", written)
	case errors.Is(err, unix.ENOSPC) && written <= memoryFolder:
		err = nil
	}
	return holds(bytesText(written), errors.Join(err, closeErr))
}

func checkDockerSocket() finding {
	for _, path := range []string{"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"} {
		if _, err := os.Lstat(path); err == nil {
			return holds("present", fmt.Errorf("%s gives the rights of root on the node", path))
		}
	}
	return holds("absent", nil)
}

func checkDevices() finding {
	var devices []string
	err := filepath.WalkDir("/dev", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return nil // a folder of another user holds nothing for this one
		}
		var statistics unix.Stat_t
		if entry.IsDir() || unix.Lstat(path, &statistics) != nil {
			return nil
		}
		kind := statistics.Mode & unix.S_IFMT
		const memoryMajor, firstSafeMinor = 1, 3 // mem, kmem and port are before null
		if kind == unix.S_IFBLK || (kind == unix.S_IFCHR && unix.Major(uint64(statistics.Rdev)) == memoryMajor &&
			unix.Minor(uint64(statistics.Rdev)) < firstSafeMinor) {
			devices = append(devices, path)
		}
		return nil
	})
	if len(devices) > 0 {
		return holds("some", fmt.Errorf("%s", strings.Join(devices, ", ")))
	}
	return holds("none", err)
}

func checkUmask() finding {
	mask := unix.Umask(0o022)
	unix.Umask(mask)
	return expect(fmt.Sprintf("%04o", mask), "0022")
}

func checkFree() finding {
	var statistics unix.Statfs_t
	if err := unix.Statfs(stateFolder, &statistics); err != nil {
		return holds("unknown", err)
	}
	free := statistics.Bavail * uint64(statistics.Bsize)
	if free < enoughDisk {
		return holds("less than 1 GiB", fmt.Errorf("%d MiB are free", free/mebibyte))
	}
	return holds("at least 1 GiB", nil)
}
