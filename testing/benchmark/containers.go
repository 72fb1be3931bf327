package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"muster.example/testing/fleet"
)

const (
	maxDispatch  = 700.0 // ms, from the command to the first line, over two hops
	maxOwn       = 50.0  // ms of it, beside that of Docker
	maxSlower    = 1.10  // of a container whose output is read
	maxAgent     = 128 << 20
	logBytes     = 1_000 << 20 // an agent stores at most 1 GiB, records included
	containerLog = 20 * time.Minute
)

// containerBench is a fleet whose node has a dedicated Docker, and is attached to a relay of the root relay.
type containerBench struct {
	bench
	docker *fleet.Docker
	image  string
	home   string
	agent  *fleet.RunningProgram
}

// containers measures the time from a command to the first line of its container, and a large output, each beside
// Docker's own client with the same limits.
func containers(s settings) (table string, err error) {
	f, err := startFleet(s.folder)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Configure("relay", map[string]string{"jobs.max_output": "4GiB"}); err != nil {
		return "", err
	}
	b := &containerBench{bench: bench{settings: s, fleet: f}}
	defer func() { err = errors.Join(err, b.end()) }()
	if err := b.begin(); err != nil {
		return "", err
	}
	fmt.Fprintf(&b.out, "**A container on a node behind a relay of the root relay; everything on one machine**\n\n")
	fmt.Fprintf(&b.out, "| | figure | bar | ratio |\n|---|---|---|---|\n")
	for _, measure := range []func() error{b.dispatch, b.log} {
		if err := measure(); err != nil {
			return b.out.String(), errors.Join(err, errors.New("measured so far:\n"+b.out.String()))
		}
	}
	return b.out.String(), nil
}

func (b *containerBench) begin() error {
	var err error
	if b.docker, err = fleet.StartDocker(); err != nil {
		return err
	}
	if b.image, err = b.docker.PushBusybox("tools/busybox", "/bin/echo", "first line"); err != nil {
		return err
	}
	if _, err := b.docker.Run("pull", b.image); err != nil {
		return err
	}
	if err := b.chainRelay("r1", ""); err != nil {
		return err
	}
	b.home, b.agent, err = b.joinNode("n1", b.relays[0], "DOCKER_HOST=unix://"+b.docker.Socket)
	if err != nil {
		return err
	}
	policy := "containers:\n  - images: [\"" + b.docker.Registry + "/*\"]\n    actions: [container, deployment]\n    max_output: 1GiB\n"
	if err := os.WriteFile(filepath.Join(b.home, "policy.yaml"), []byte(policy), 0o600); err != nil {
		return err
	}
	document := filepath.Join(b.fleet.Home, "line.yaml")
	text := "apiVersion: muster/v1\nkind: TemplateType\nname: line\nversion: 1.0.0\ncontract: 1\nimage: " + b.image + "\n"
	if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
		return err
	}
	_, err = b.fleet.Muster("type", "push", document)
	return err
}

func (b *containerBench) end() error {
	if b.agent != nil {
		b.agent.End()
	}
	b.stop()
	if b.docker == nil {
		return nil
	}
	return b.docker.Close()
}

// dockerRun returns `docker run` with the limits of an agent's containers (services/agent/docker).
func (b *containerBench) dockerRun(ctx context.Context, driver string, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "/usr/bin/docker", append([]string{"-H", "unix://" + b.docker.Socket, "run", "--rm", "--network=none",
		"--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=256", "--memory=512m", "--cpus=1",
		"--user=65532:65532", "--init", "--log-driver=" + driver, b.image}, arguments...)...)
}

// firstLine returns the milliseconds until a command prints its first line.
func firstLine(command *exec.Cmd) (float64, error) {
	out, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	begin := time.Now()
	if err := command.Start(); err != nil {
		return 0, err
	}
	_, err = bufio.NewReader(out).ReadString('\n')
	took := float64(time.Since(begin).Microseconds()) / 1000
	_, _ = io.Copy(io.Discard, out)
	if err := errors.Join(err, command.Wait()); err != nil {
		return 0, fmt.Errorf("%v: %w: %s", command.Args, err, &stderr)
	}
	return took, nil
}

// dispatch measures in turn, so that the load of the machine is the same for each.
func (b *containerBench) dispatch() error {
	ctx, cancel := context.WithTimeout(context.Background(), containerLog)
	defer cancel()
	sides := []struct {
		what    string
		command func() *exec.Cmd
	}{
		{"`docker run`", func() *exec.Cmd { return b.dockerRun(ctx, "local") }},
		{"`muster exec --image`", func() *exec.Cmd { return b.fleet.Command(ctx, "exec", "--node", "n1", "--image", b.image) }},
		{"`muster deploy --wait`", func() *exec.Cmd {
			return b.fleet.Command(ctx, "deploy", "--type", "line@1.0.0", "--node", "n1", "--wait")
		}},
	}
	times := make([][]float64, len(sides))
	for i := range b.times + 1 {
		for n, side := range sides {
			took, err := firstLine(side.command())
			if err != nil {
				return err
			}
			if i > 0 { // the first one warms up
				times[n] = append(times[n], took)
			}
		}
	}
	docker := 0.0
	for n, side := range sides {
		slices.Sort(times[n])
		p50, p99 := times[n][len(times[n])/2], times[n][min(len(times[n])-1, len(times[n])*99/100)]
		b.row(fmt.Sprintf("from the start of %s to the first line of its container, p50 of %d", side.what, b.times),
			fmt.Sprintf("%.0f ms", p50), "700 ms", p50/maxDispatch)
		b.row("p99 (the slowest)", fmt.Sprintf("%.0f ms", p99), "", 0)
		if n == 0 {
			docker = p50
			continue
		}
		b.row("p50 beside that of `docker run`", fmt.Sprintf("%+.0f ms", p50-docker), "+50 ms", (p50-docker)/maxOwn)
	}
	return nil
}

// hashLines passes output on to a digest, without the name of the node before each line.
type hashLines struct {
	digest hash.Hash
	bytes  int64
	prefix string
}

func (h *hashLines) read(from io.Reader) error {
	reader := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := reader.ReadSlice('\n')
		line = bytes.TrimPrefix(line, []byte(h.prefix))
		h.digest.Write(line)
		h.bytes += int64(len(line))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// log measures a container that prints as fast as it may, beside one whose output is not stored.
func (b *containerBench) log() error {
	line := []byte("0123456789012345678901234567890123456789012345678901234567890\n")
	size := int64(b.scaled(logBytes)) / int64(len(line)) * int64(len(line)) // muster exec ends the last line
	script := fmt.Sprintf("yes %s | head -c %d", bytes.TrimSpace(line), size)
	want := sha256.New()
	for left := size; left > 0; left -= int64(len(line)) {
		want.Write(line[:min(left, int64(len(line)))])
	}
	ctx, cancel := context.WithTimeout(context.Background(), containerLog)
	defer cancel()
	begin := time.Now()
	if out, err := b.dockerRun(ctx, "none", "sh", "-c", script+" >/dev/null").CombinedOutput(); err != nil {
		return fmt.Errorf("docker run: %w: %s", err, out)
	}
	silent := time.Since(begin).Seconds()
	seconds := map[string]float64{}
	for _, driver := range []string{"none", "local"} {
		begin = time.Now()
		if err := b.dockerRun(ctx, driver, "sh", "-c", script).Run(); err != nil {
			return fmt.Errorf("docker run: %w", err)
		}
		seconds[driver] = time.Since(begin).Seconds()
	}
	docker := seconds["none"]

	if err := b.agent.ResetPeak(); err != nil {
		return err
	}
	cpu := b.agent.CPU()
	got := hashLines{digest: sha256.New(), prefix: "n1: "}
	command := b.fleet.Command(ctx, "exec", "--node", "n1", "--image", b.image, "--deadline", "15m", "--", "sh", "-c",
		// The date of busybox has no fractions of seconds.
		"read s _ </proc/uptime; "+script+"; read e _ </proc/uptime; echo $(( ${e%.*}${e#*.} - ${s%.*}${s#*.} )) >&2")
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	begin = time.Now()
	if err := command.Start(); err != nil {
		return err
	}
	if err := errors.Join(got.read(out), command.Wait()); err != nil {
		return fmt.Errorf("muster exec: %w: %s", err, &stderr)
	}
	took := time.Since(begin).Seconds()
	own := 0.0
	if _, err := fmt.Sscanf(stderr.String(), "n1: %f", &own); err != nil {
		return fmt.Errorf("%w: %q", err, stderr.String())
	}
	own /= 100 // hundredths of seconds
	same := "equal"
	if digest := hex.EncodeToString(got.digest.Sum(nil)); digest != hex.EncodeToString(want.Sum(nil)) {
		same = "**differs**"
	}
	b.row(fmt.Sprintf("%s of output: bytes that arrived; SHA-256", mib(size)), fmt.Sprintf("%d; %s", got.bytes, same), fmt.Sprint(size), float64(got.bytes)/float64(size))
	b.row("`docker run` with the driver none, to /dev/null in the container", fmt.Sprintf("%.1f s", silent), "", 0)
	b.row("`docker run` with the driver none, attached", fmt.Sprintf("%.1f s", docker), "", 0)
	b.row("`docker run` with the driver local, attached", fmt.Sprintf("%.1f s", seconds["local"]), "", 0)
	b.row("the same by Muster: time of the program in the container", fmt.Sprintf("%.1f s", own), "1.1 of docker", own/docker/maxSlower)
	b.row("until the operator has all of it", fmt.Sprintf("%.1f s", took), "", 0)
	b.row("peak memory of the agent", mib(b.agent.PeakMemory()), "128 MiB", float64(b.agent.PeakMemory())/maxAgent)
	b.row("processor time of the agent", fmt.Sprintf("%.1f s", (b.agent.CPU()-cpu).Seconds()), "", 0)
	b.row("peak memory of the relay r1", mib(b.relays[0].running.PeakMemory()), "", 0)
	return nil
}
