package fleet

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// reap runs when the program that started a fleet has ended, however it ended: a test that is killed or exceeds its
// time limit does not clean up.
const reap = `
cat >/dev/null
round=0
while environments=$(grep -slzE -e "=$1(/|\$)" /proc/[0-9]*/environ)
	[ -n "$environments" ] && [ "$round" -lt 100 ]
do
	for environment in $environments; do
		process=${environment#/proc/}
		kill -9 "${process%/environ}" 2>/dev/null
	done
	round=$((round + 1))
done
rm -rf "$1"`

// startReaper watches over a folder until the writer is closed, explicitly or by the end of this program. Then wait for
// the command. It kills every process that has the folder, or a path in it, in its environment, and removes the folder.
func startReaper(folder string) (io.WriteCloser, *exec.Cmd, error) {
	command := exec.Command("/bin/sh", "-c", reap, "reaper", folder)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}      // otherwise one reaper would kill another
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that Ctrl-C does not end it
	alive, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	return alive, command, command.Start()
}

// RemoveHome removes the home of a machine whose programs were ended. Before that it kills what they left running, such
// as the tools of a killed agent, which would make their folders again.
func RemoveHome(home string) error {
	alive, reaper, err := startReaper(home)
	if err != nil {
		return err
	}
	return errors.Join(alive.Close(), reaper.Wait())
}

// KeepTemporaryFiles creates a folder for temporary files of this program and its children. `end` removes it; it is
// also removed if this program ends without that.
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
