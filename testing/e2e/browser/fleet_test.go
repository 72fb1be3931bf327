package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.example/services/client/go"
	"muster.example/testing/fleet"
)

func up(t *testing.T, arguments ...string) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New("")
	check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.Logs())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	check(t, f.Up(arguments...))
	return f
}

// signIn opens the dashboard with an operator's link, which works once.
func (p *page) signIn(f *fleet.Fleet) {
	p.t.Helper()
	link, err := f.Muster("dashboard")
	check(p.t, err)
	p.open(strings.TrimSpace(link))
	p.until("the link led to the dashboard", `location.pathname === "/" && document.querySelector("h1")`)
}

// gated returns a plugin that waits for a file before it delivers.
func gated(name, gate string) string {
	shell := fmt.Sprintf(`while [ ! -e %q ]; do sleep 0.2; done; echo done > "$RESULTS_DIR/out.txt"; echo "$RESULTS_DIR/out.txt" > "$RESULTS_DIR/done"`, gate)
	quoted, _ := json.Marshal(shell) // JSON is YAML
	return fmt.Sprintf("sonobuoy-config:\n  driver: DaemonSet\n  plugin-name: %s\n  result-format: raw\n"+
		"spec:\n  name: plugin\n  command: [\"/bin/sh\", \"-c\"]\n  args: [%s]\n", name, quoted)
}

// delivered returns a plugin for which the test delivers.
func delivered(name, driver string) string {
	return fmt.Sprintf("sonobuoy-config:\n  driver: %s\n  plugin-name: %s\n  result-format: raw\n"+
		"spec:\n  name: plugin\n  image: example/plugin:v1\n", driver, name)
}

func plan(t *testing.T, f *fleet.Fleet, title string, nodes []string, definitions ...string) string {
	t.Helper()
	arguments := []string{"--title", title}
	for index, definition := range definitions {
		file, err := f.WriteFile(fmt.Sprintf("plugin-%d.yaml", index), definition)
		check(t, err)
		arguments = append(arguments, "-f", file)
	}
	for _, node := range nodes {
		arguments = append(arguments, "--node", node)
	}
	run, err := f.CreateRun(arguments...)
	check(t, err)
	return run
}

// agent starts an agent for one pair, on its own host if that is given. The end of the test kills it.
func agent(t *testing.T, f *fleet.Fleet, host *fleet.Host, run, plugin, node string) *fleet.RunningProgram {
	t.Helper()
	credential, err := f.Export(run, plugin, node)
	check(t, err)
	started, err := f.StartAgent(credential, host)
	check(t, err)
	t.Cleanup(func() {
		started.End()
		if t.Failed() {
			t.Logf("agent on %s: %s", node, started.Output)
		}
	})
	return started
}

// deliverer delivers for any node of a plugin.
type deliverer struct {
	t           *testing.T
	client      *muster.Client
	run, plugin string
}

func newDeliverer(t *testing.T, f *fleet.Fleet, run, plugin string) deliverer {
	t.Helper()
	credential, err := f.Export(run, plugin, "")
	check(t, err)
	config, err := muster.LoadConfig(credential.File)
	check(t, err)
	client, err := muster.New(config)
	check(t, err)
	t.Cleanup(func() { check(t, client.Close()) })
	return deliverer{t, client, run, plugin}
}

func (d deliverer) deliver(node, problem string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	body := problem
	if body == "" {
		body = "what " + d.plugin + " found on " + node + "\n"
	}
	_, err := d.client.Submit(ctx, &muster.Delivery{Key: muster.Key{Run: d.run, Plugin: d.plugin, Node: node},
		IsError: problem != "", FileName: "out.txt", Body: strings.NewReader(body)})
	if err != nil {
		d.t.Fatal(fmt.Errorf("%s on %s: %w", d.plugin, node, err))
	}
}

// report reports progress; a service that has just started may not know the run for a moment.
func (d deliverer) report(node string, p muster.Progress) {
	d.t.Helper()
	var last error
	err := fleet.Until(soon, "progress is accepted", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		last = d.client.ReportProgress(ctx, muster.Key{Run: d.run, Plugin: d.plugin, Node: node}, p)
		return last == nil
	})
	check(d.t, errors.Join(err, last))
}

func names(count int, prefix string) []string {
	var all []string
	for n := range count {
		all = append(all, fmt.Sprintf("%s-%03d", prefix, n+1))
	}
	return all
}

func inHome(f *fleet.Fleet, name string) string { return filepath.Join(f.Home, name) }
