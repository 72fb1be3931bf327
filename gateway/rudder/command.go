package rudder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"muster.example/gateway/limits"
)

const (

	// killDelay is how long a command has to end after SIGTERM, and how long its output is read after its end, if a
	// process that it started keeps the pipe open.
	killDelay = 5 * time.Second
)

var errSpawn = errors.New("the command of remote run cannot be started")

// environment is the environment of commands, without variables of the gateway.
var environment = []string{"PATH=/opt/rudder/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}

// trigger runs the configured command for nodes that are attached here, and forwards its output; `errs` receives its
// stderr. Each command gets as many host names as fit in an argument. The end of the context ends the process group.
func trigger(ctx context.Context, command, conditions, hosts []string, errs io.Writer, emit func([]byte) bool) (all error) {
	for len(hosts) > 0 && ctx.Err() == nil {
		count, size := 0, 0
		for count < len(hosts) && (count == 0 || size+len(hosts[count]) < limits.HostNames) {
			size += len(hosts[count]) + 1
			count++
		}
		arguments := append([]string{}, command[1:]...)
		if len(conditions) > 0 {
			arguments = append(arguments, "-D", strings.Join(conditions, ","))
		}
		arguments = append(arguments, "--", strings.Join(hosts[:count], ","))
		err := runCommand(ctx, command[0], arguments, errs, emit)
		if all = errors.Join(all, err); errors.Is(err, errSpawn) {
			break
		}
		hosts = hosts[count:]
	}
	return all
}

// runCommand waits for one process and the end of its output.
func runCommand(ctx context.Context, program string, arguments []string, errs io.Writer, emit func([]byte) bool) error {
	output, input, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("%w: %w", errSpawn, err)
	}
	defer output.Close()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env, command.Dir, command.Stdout, command.Stderr = environment, "/", input, errs
	command.WaitDelay = killDelay // for `errs`, if a process keeps it open
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	err = command.Start()
	input.Close()
	if err != nil {
		return fmt.Errorf("%w: %w", errSpawn, err)
	}
	over := make(chan struct{})
	defer close(over)
	go killLate(ctx, command.Process.Pid, output, over)
	reader := &pipeReader{pipe: output}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		reader.ended.Store(true)
		_ = output.SetReadDeadline(time.Now().Add(killDelay))
		ended <- err
	}()
	err = eachLine(reader, limits.RunLine, emit)
	_, _ = io.Copy(io.Discard, reader) // ending processes may still write
	output.Close()
	return errors.Join(err, <-ended)
}

// killLate kills a process group that did not end after SIGTERM. A process that the gateway may not kill (sudo, by an
// unprivileged user) ends when its output is closed.
func killLate(ctx context.Context, group int, output *os.File, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-ctx.Done():
	}
	select {
	case <-over:
	case <-time.After(killDelay):
		_ = syscall.Kill(-group, syscall.SIGKILL)
		output.Close()
	}
}

// pipeReader reads the output of a process, and for a while that of its group after its end.
type pipeReader struct {
	pipe  *os.File
	ended atomic.Bool
}

func (p *pipeReader) Read(into []byte) (int, error) {
	if p.ended.Load() {
		_ = p.pipe.SetReadDeadline(time.Now().Add(killDelay))
	}
	n, err := p.pipe.Read(into)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}
