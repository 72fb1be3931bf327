package fleet

import (
	"bytes"
	"context"
	"os/exec"
)

// RunningAgent is an agent in the background.
type RunningAgent struct {
	Process               // of the agent itself, not of what leads into its namespace
	Output  *bytes.Buffer // what it said, to be read after Wait

	ended chan error
}

// StartAgent starts an agent with a credential and with `environment` ("NAME=value") besides; on a host of
// its own if that is given. It takes progress nowhere unless the environment says where.
func (f *Fleet) StartAgent(credential *Credential, on *Host, environment ...string) (*RunningAgent, error) {
	command := f.Command(context.Background(), "agent", "--config", credential.File)
	command.Env = append(append(command.Env, "SONOBUOY_PROGRESS_PORT=0"), environment...)
	if on != nil {
		command = on.inside(command)
	}
	agent := &RunningAgent{Output: &bytes.Buffer{}, ended: make(chan error, 1)}
	command.Stderr = agent.Output
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() { agent.ended <- command.Wait() }()
	// nsenter becomes the agent: it has its process number.
	agent.Process = Process{command.Process.Pid, Muster, command.Args[1:]}
	return agent, nil
}

// Wait returns when the agent has ended: nil for the exit code 0.
func (a *RunningAgent) Wait() error {
	err := <-a.ended
	a.ended <- err
	return err
}

// End kills it unless it has ended, and returns when it is gone.
func (a *RunningAgent) End() {
	select {
	case err := <-a.ended:
		a.ended <- err
	default:
		a.Kill()
		_ = a.Wait()
	}
}

// inside makes a command one of this host. `nsenter` replaces itself by it.
func (h *Host) inside(command *exec.Cmd) *exec.Cmd {
	inner := append([]string{"--net=" + h.namespace, command.Path}, command.Args[1:]...)
	outer := exec.Command("nsenter", inner...)
	outer.Env, outer.WaitDelay = command.Env, command.WaitDelay
	return outer
}
