package fleet

import (
	"io"
	"os/exec"
	"syscall"
)

// reap is what runs when the program that started a fleet is gone, however it went: a test that runs into its
// time limit, or is killed, cleans nothing up by itself.
const reap = `
cat >/dev/null
for round in 1 2 3; do
	for process in /proc/[0-9]*; do
		if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qxF "MUSTER_HOME=$1"; then
			kill -9 "${process#/proc/}" 2>/dev/null
		fi
	done
done
rm -rf "$1"`

// startReaper watches over a home until the writer is closed, by us or by our end. Wait for the command then.
func startReaper(home string) (io.WriteCloser, *exec.Cmd, error) {
	command := exec.Command("/bin/sh", "-c", reap, "reaper", home)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	alive, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	return alive, command, command.Start()
}
