package fleet

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
)

// RunningProgram is one of our programs in the background.
type RunningProgram struct {
	Process               // of the program itself, not of nsenter
	Output  *bytes.Buffer // its stderr, to be read after Wait

	ended chan error
}

// Start starts a program of the fleet's folder with additional `environment` ("NAME=value"), on its own host if that is
// given.
func (f *Fleet) Start(on *Host, environment []string, program string, arguments ...string) (*RunningProgram, error) {
	command := f.Command(context.Background(), arguments...)
	command.Path = filepath.Join(f.Bin, program)
	command.Args[0] = command.Path
	command.Env = append(command.Env, environment...)
	return start(on, command, program)
}

// start runs a command in the background. nsenter executes the program: the process id remains.
func start(on *Host, command *exec.Cmd, name string) (*RunningProgram, error) {
	if on != nil {
		command = on.Inside(command)
	}
	running := &RunningProgram{Output: &bytes.Buffer{}, ended: make(chan error, 1)}
	command.Stderr = running.Output
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() { running.ended <- command.Wait() }()
	running.Process = Process{command.Process.Pid, name, command.Args[1:]}
	return running, nil
}

// Wait returns when the program has ended: nil for the exit code 0.
func (p *RunningProgram) Wait() error {
	err := <-p.ended
	p.ended <- err
	return err
}

// End kills the program unless it has ended, returns when it has ended, and reports whether the kill ended it.
func (p *RunningProgram) End() bool {
	select {
	case err := <-p.ended:
		p.ended <- err
		return false
	default:
		p.Kill()
		return WasKilled(p.Wait())
	}
}

// WasKilled reports whether a program ended by SIGKILL, from what Wait returned.
func WasKilled(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}
