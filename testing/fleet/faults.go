package fleet

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

//go:embed preload/faults.c
var faultsSource string

// Faults makes system calls of this fleet's programs fail, and moves their realtime clocks, by a library that they load
// before others. Programs of Go do not load it. A program is known by its own name, or by that of Environment.
type Faults struct{ folder, library string }

// NewFaults compiles the library. Every program that the fleet starts from now on loads it.
func (f *Fleet) NewFaults() (*Faults, error) {
	x := &Faults{folder: filepath.Join(f.Home, "faults")}
	x.library = filepath.Join(x.folder, "faults.so")
	source := filepath.Join(x.folder, "faults.c")
	if err := errors.Join(os.Mkdir(x.folder, 0o700), os.WriteFile(source, []byte(faultsSource), 0o600)); err != nil {
		return nil, err
	}
	if out, err := exec.Command("cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", x.library, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("faults.c: %w: %s", err, out)
	}
	f.Environment = append(f.Environment, "LD_PRELOAD="+x.library, "FLEET_FAULTS="+x.folder)
	return x, nil
}

// Environment gives a program another name.
func (x *Faults) Environment(name string) string { return "FLEET_FAULTS_NAME=" + name }

func (x *Faults) syncFile(program string) string { return filepath.Join(x.folder, program+".sync") }

// FailSync makes the nth fsync or fdatasync of a program from now on fail with EIO, once. A program that restarts counts
// from 1.
func (x *Faults) FailSync(program string, nth int) error {
	part := x.syncFile(program) + ".part"
	return errors.Join(os.WriteFile(part, []byte(strconv.Itoa(nth)), 0o600), os.Rename(part, x.syncFile(program)))
}

// SyncFailed reports whether the call of FailSync has failed.
func (x *Faults) SyncFailed(program string) bool {
	_, err := os.Stat(x.syncFile(program))
	return err != nil
}

// EndFailSync reports whether the call of FailSync has failed; otherwise none will.
func (x *Faults) EndFailSync(program string) bool { return os.Remove(x.syncFile(program)) != nil }

// SetClock moves the realtime clock of a program, also while it runs, if it was called before the start of the program.
func (x *Faults) SetClock(program string, by time.Duration) error {
	file, err := os.OpenFile(filepath.Join(x.folder, program+".clock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(by/time.Second))), 0)
	return errors.Join(err, file.Close())
}
