// Package fleet starts Muster's programs on free ports in a separate folder, for end-to-end tests and benchmarks, and
// removes everything at the end.
package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Names of the programs.
const (
	Muster     = "muster"
	Aggregator = "muster-aggregator"
	Status     = "muster-status"
	Gateway    = "muster-gateway"
	Relay      = "muster-relay"
	Jobs       = "muster-jobs"
)

const (
	commandLimit = 2 * time.Minute // of a command that does not wait
	upLimit      = time.Minute
)

// Fleet is one installation. Its methods may be called from several goroutines.
type Fleet struct {
	Home string // $MUSTER_HOME
	Bin  string // the folder of the programs
	// Variables of every program that is started, in addition to that of this process ("NAME=value").
	Environment []string

	alive  io.Closer // closing it starts the reaper
	reaper *exec.Cmd
}

// Programs returns the folder of the programs: $MUSTER_BIN, where testing/test installs them.
func Programs() (string, error) {
	folder := os.Getenv("MUSTER_BIN")
	if folder == "" {
		return "", errors.New("MUSTER_BIN is not set: testing/programs FOLDER builds the programs into a folder; " +
			"set MUSTER_BIN to it")
	}
	for _, name := range []string{Muster, Aggregator, Status, Gateway, Relay, Jobs} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("MUSTER_BIN: %w", err)
		}
	}
	return filepath.Abs(folder)
}

// New creates an empty home in `parent` ("": the default folder for temporary files) without starting anything. The
// name is short, because the path of a Unix socket in it is limited to 108 characters.
func New(parent string) (*Fleet, error) {
	bin, err := Programs()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(parent, "muster")
	if err != nil {
		return nil, err
	}
	alive, reaper, err := startReaper(home)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	return &Fleet{Home: home, Bin: bin, alive: alive, reaper: reaper}, nil
}

// Up starts the services and returns when they are ready.
func (f *Fleet) Up(arguments ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), upLimit)
	defer cancel()
	_, err := f.Run(ctx, append([]string{"up", "--port", "0"}, arguments...)...)
	return err
}

// Close stops everything of this home, by force if necessary, and removes it. It is an error if a process was still
// running after `muster down`.
func (f *Fleet) Close() error {
	_, downErr := f.Muster("down")
	left := f.Processes()
	err := errors.Join(f.alive.Close(), f.reaper.Wait())
	if len(left) > 0 {
		return errors.Join(fmt.Errorf("still running after `muster down`: %v", left), downErr, err)
	}
	return errors.Join(downErr, err)
}

// CommandError is a failed command of the CLI.
type CommandError struct {
	Command  string
	ExitCode int
	Stderr   string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", e.Command, e.ExitCode, strings.TrimSpace(e.Stderr))
}

// Muster runs a command of the CLI and returns its stdout.
func (f *Fleet) Muster(arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	return f.Run(ctx, arguments...)
}

// Run is Muster with the caller's time limit.
func (f *Fleet) Run(ctx context.Context, arguments ...string) (string, error) {
	command := f.Command(ctx, arguments...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", err, ctx.Err())
		}
		if command.ProcessState == nil || ctx.Err() != nil {
			return stdout.String(), fmt.Errorf("muster %s: %w: %s", strings.Join(arguments, " "), err, stderr.String())
		}
		return stdout.String(), &CommandError{"muster " + strings.Join(arguments, " "),
			command.ProcessState.ExitCode(), stderr.String()}
	}
	return stdout.String(), nil
}

// Command returns a command of the CLI that is not started.
func (f *Fleet) Command(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(f.Bin, Muster), arguments...)
	command.Env = append(append(os.Environ(), "MUSTER_HOME="+f.Home), f.Environment...)
	command.WaitDelay = 10 * time.Second
	return command
}

// JSON runs a command with --json and decodes its output.
func (f *Fleet) JSON(into any, arguments ...string) error {
	out, err := f.Muster(append(arguments, "--json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		return fmt.Errorf("muster %s --json: %w in %q", strings.Join(arguments, " "), err, out)
	}
	return nil
}

// Logs returns the end of every service's log, for the report of a failure.
func (f *Fleet) Logs() string {
	const most = 6000
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(f.Home, "log", "*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if len(text) > most {
			text = text[len(text)-most:]
		}
		fmt.Fprintf(&all, "--- %s\n%s\n", filepath.Base(file), text)
	}
	return all.String()
}

// Until polls `ready` until it returns true; an error after `limit`.
func Until(limit time.Duration, what string, ready func() bool) error {
	for end := time.Now().Add(limit); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("timeout after %v, waiting for: %s", limit, what)
		}
	}
	return nil
}
