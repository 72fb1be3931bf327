package fleet

import (
	"context"
	"os/exec"
)

// StartAgent starts an agent with a credential and additional `environment` ("NAME=value"), on its own host if that is
// given. It does not accept progress unless the environment says where.
func (f *Fleet) StartAgent(credential *Credential, on *Host, environment ...string) (*RunningProgram, error) {
	command := f.Command(context.Background(), "agent", "--config", credential.File)
	command.Env = append(append(command.Env, "SONOBUOY_PROGRESS_PORT=0"), environment...)
	return start(on, command, Muster)
}

// Inside makes a command run on this host. `nsenter` replaces itself by it.
func (h *Host) Inside(command *exec.Cmd) *exec.Cmd {
	inner := append([]string{"--net=" + h.namespace, command.Path}, command.Args[1:]...)
	outer := exec.Command("nsenter", inner...)
	outer.Env, outer.WaitDelay = command.Env, command.WaitDelay
	return outer
}
