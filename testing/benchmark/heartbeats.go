package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster.example/testing/fleet"
)

const (
	floodAgents  = 200
	floodSeconds = 20
	maxPerAgent  = 126 << 10
	connectRate  = 100 // per second: a handshake costs both sides several ms of CPU
	backWithin   = 60 * time.Second
)

// heartbeats measures how many heartbeats per second one core of the status service answers, the memory per connected
// agent, and the time until all agents have reconnected after a kill.
func heartbeats(s settings) (table string, err error) {
	f, err := startFleet(s.folder)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var out strings.Builder
	if err := flood(s, f, &out); err != nil {
		return "", err
	}
	if err := hold(s, f, &out); err != nil {
		return "", err
	}
	return out.String(), nil
}

// flood measures the rate of agents that send the next heartbeat immediately after each answer.
func flood(s settings, f *fleet.Fleet, out *strings.Builder) error {
	agents, err := startAgents(s, f, floodAgents, "--flood", fmt.Sprintf("--last=%ds", floodSeconds))
	if err != nil {
		return err
	}
	defer agents.stop()
	if _, err := agents.await("all connected"); err != nil {
		return err
	}
	server, err := f.Process(fleet.Status)
	if err != nil {
		return err
	}
	before, client := server.CPU(), agents.cpu()
	end, err := agents.await("end")
	if err != nil {
		return err
	}
	cpu := (server.CPU() - before).Seconds()
	client = agents.cpu() - client // the load waits for its standard input to close
	fmt.Fprintf(out, "**Heartbeats without pauses, %d agents, mutual TLS**\n\n", floodAgents)
	fmt.Fprintf(out, "| | figure | bar | ratio |\n|---|---|---|---|\n")
	fmt.Fprintf(out, "| heartbeats per second and core of the service | %.0f | 20000 | %.2f |\n",
		end.Heartbeats/cpu, end.Heartbeats/cpu/20000)
	fmt.Fprintf(out, "| heartbeats/s (load and service share the machine) | %.0f | | |\n", end.Rate)
	fmt.Fprintf(out, "| server CPU us per heartbeat | %.1f | | |\n", cpu/end.Heartbeats*1e6)
	fmt.Fprintf(out, "| client CPU us per heartbeat | %.1f | | |\n", client.Seconds()/end.Heartbeats*1e6)
	fmt.Fprintf(out, "| p50 / p99 of one heartbeat, ms | %.1f / %.1f | | |\n\n", end.P50, end.P99)
	return nil
}

// hold measures memory with many idle agents, then their reconnection after a kill of the service.
func hold(s settings, f *fleet.Fleet, out *strings.Builder) error {
	server, err := f.Process(fleet.Status)
	if err != nil {
		return err
	}
	if err := server.ResetPeak(); err != nil {
		return err
	}
	empty := server.PeakMemory()
	agents, err := startAgents(s, f, s.agents, "--connect_rate="+strconv.Itoa(connectRate), "--last=1h")
	if err != nil {
		return err
	}
	defer agents.stop()
	connected, err := agents.await("all connected")
	if err != nil {
		return err
	}
	if err := server.ResetPeak(); err != nil {
		return err
	}
	cpu, client := server.CPU(), agents.cpu()
	each := (server.PeakMemory() - empty) / int64(s.agents)
	fmt.Fprintf(out, "**%d agents, each with its own certificate and connection, one heartbeat every 10 s**\n\n", s.agents)
	fmt.Fprintf(out, "| | figure | bar | ratio |\n|---|---|---|---|\n")
	fmt.Fprintf(out, "| memory of the service per connected agent | %d KiB | 126 KiB | %.2f |\n", each>>10, float64(each)/maxPerAgent)
	fmt.Fprintf(out, "| time until all are connected (%d new ones a second) | %.0f s | | |\n", connectRate, connected.Seconds)
	fmt.Fprintf(out, "| CPU s of the service since its start; of the client until then | %.1f; %.1f | | |\n", cpu.Seconds(), client.Seconds())
	server.Kill()
	back, err := agents.await("all connected")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| time until all are reconnected after a kill of the service | %.0f s | %.0f s | %.2f |\n",
		back.Seconds, backWithin.Seconds(), back.Seconds/backWithin.Seconds())
	lost, err := lostSenders(f)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| agents reported lost meanwhile | %s | 0 | |\n", lost)
	return nil
}

// lostSenders returns how many senders the service has reported as lost since its start.
func lostSenders(f *fleet.Fleet) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.Home, "run", "status.addresses.json"))
	if err != nil {
		return "", err
	}
	var addresses struct{ Inspection string }
	if err := json.Unmarshal(text, &addresses); err != nil {
		return "", err
	}
	response, err := http.Get("http://" + addresses.Inspection + "/metrics")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(metrics), "\n") {
		if value, found := strings.CutPrefix(line, `muster_sender_transitions_total{presence="PRESENCE_LOST"} `); found {
			return value, nil
		}
	}
	return "0", nil
}

// agents is a running testing/load/heartbeat_load or attach_load.
type agents struct {
	command *exec.Cmd
	stdin   io.Closer // the load ends with this program, however it ends
	lines   *bufio.Scanner
}

// loadEvent is one line of its output.
type loadEvent struct {
	Event      string
	Error      string
	Seconds    float64
	Heartbeats float64
	Rate       float64 `json:"heartbeats_per_second"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	// TimedOut and Other count failed attempts of attach_load.
	TimedOut float64 `json:"timed_out"`
	Other    float64 `json:"other"`
}

func startAgents(s settings, f *fleet.Fleet, count int, flags ...string) (*agents, error) {
	operator, err := f.Operator()
	if err != nil {
		return nil, err
	}
	return startLoad(s, "heartbeat_load", append([]string{"--home=" + f.Home, "--fleet=" + operator.Fleet,
		"--target=" + operator.Status[0], "--agents=" + strconv.Itoa(count)}, flags...)...)
}

// startLoad starts a program of testing/load that writes lines of JSON, until its standard input is closed.
func startLoad(s settings, name string, flags ...string) (*agents, error) {
	command := exec.Command(program(s, name), flags...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &agents{command, stdin, bufio.NewScanner(stdout)}, command.Start()
}

// await reads until this event.
func (a *agents) await(event string) (loadEvent, error) {
	for a.lines.Scan() {
		var line loadEvent
		if err := json.Unmarshal(a.lines.Bytes(), &line); err != nil {
			return line, fmt.Errorf("%s: %w in %q", a.name(), err, a.lines.Text())
		}
		if line.Error != "" && line.Event == "failed" {
			fmt.Fprintf(os.Stderr, "%s: %s\n", a.name(), line.Error)
		}
		if line.Event == event {
			return line, nil
		}
	}
	return loadEvent{}, fmt.Errorf("%s ended before %q", a.name(), event)
}

func (a *agents) cpu() time.Duration { return fleet.Process{PID: a.command.Process.Pid}.CPU() }

func (a *agents) name() string { return filepath.Base(a.command.Path) }

func (a *agents) stop() {
	_ = a.command.Process.Kill()
	_ = a.command.Wait()
}
