package fleet

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// reap is what runs when the program that started a fleet is gone, however it went: a test that runs into its
// time limit, or is killed, cleans nothing up by itself.
const reap = `
cat >/dev/null
for round in 1 2 3; do
	for environment in $(grep -slzxF -e "MUSTER_HOME=$1" -e "TMPDIR=$1" /proc/[0-9]*/environ); do
		process=${environment#/proc/}
		kill -9 "${process%/environ}" 2>/dev/null
	done
done
rm -rf "$1"`

// startReaper watches over a folder until the writer is closed, by us or by our end. Wait for the command then.
// It ends every process whose home or folder for temporary files this is, and removes it.
func startReaper(folder string) (io.WriteCloser, *exec.Cmd, error) {
	command := exec.Command("/bin/sh", "-c", reap, "reaper", folder)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}      // else one reaper would end another
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	alive, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	return alive, command, command.Start()
}

// KeepTemporaryFiles gives this program, and what it starts, a folder of its own for temporary files. `end`
// removes it; if this program ends without that, it is removed all the same.
func KeepTemporaryFiles() (end func() error, err error) {
	folder, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return nil, err
	}
	alive, reaper, err := startReaper(folder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	end = func() error { return errors.Join(alive.Close(), reaper.Wait()) }
	return end, os.Setenv("TMPDIR", folder)
}
