package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.example/services/client/go"
	"muster.example/testing/fleet"
)

const (
	statusPlugins = 4
	statusNodes   = 25_000
	statusPairs   = statusPlugins * statusNodes
	statusAsked   = 11
	statusWithin  = 150 * time.Millisecond
	reporters     = 32
)

// status measures GET /status for a run of 100,000 pairs: aggregator, status service and gateway as installed, and one
// client with a persistent connection.
func status(s settings) (table string, err error) {
	f, err := startFleet(s.folder)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	run, err := planMany(f)
	if err != nil {
		return "", err
	}
	page, err := newStatusPage(f, run)
	if err != nil {
		return "", err
	}
	// Ages of heartbeats are part of the answer: it does not change until the first heartbeat.
	known, err := page.ask(http.StatusNotModified)
	if err != nil {
		return "", err
	}
	if err := reportMany(f, run); err != nil {
		return "", err
	}
	var servers []fleet.Process
	var before []time.Duration
	for _, name := range []string{fleet.Status, fleet.Gateway} {
		server, err := f.Process(name)
		if err != nil {
			return "", err
		}
		if err := server.ResetPeak(); err != nil {
			return "", err
		}
		servers, before = append(servers, server), append(before, server.CPU())
	}
	client := ownCPU()
	whole, err := page.ask(http.StatusOK)
	if err != nil {
		return "", err
	}
	client = ownCPU() - client
	var out strings.Builder
	fmt.Fprintf(&out, "**`GET /status` of a run of %d pairs, half of them with progress, through the gateway** (median of %d, range)\n\n",
		statusPairs, statusAsked)
	fmt.Fprintf(&out, "| | figure | bar | ratio |\n|---|---|---|---|\n")
	fmt.Fprintf(&out, "| whole answer, %.1f MB of JSON, ms | %s | %d | %.2f |\n", float64(page.size)/1e6, millis(whole),
		statusWithin.Milliseconds(), float64(middle(whole))/float64(statusWithin))
	fmt.Fprintf(&out, "| unchanged answer (304), before the first heartbeat, ms | %s | | |\n", millis(known))
	for i, server := range servers {
		fmt.Fprintf(&out, "| CPU of %s per request, ms | %d | | |\n", server.Name, (server.CPU()-before[i]).Milliseconds()/statusAsked)
		fmt.Fprintf(&out, "| peak memory of %s | %s | | |\n", server.Name, mib(server.PeakMemory()))
	}
	fmt.Fprintf(&out, "| CPU of the client per request, ms | %d | | |\n", client.Milliseconds()/statusAsked)
	return out.String(), nil
}

// planMany creates the run. The nodes are arguments of the CLI, which are limited to 2 MB.
func planMany(f *fleet.Fleet) (string, error) {
	var arguments []string
	for i := range statusPlugins {
		file, err := f.WriteFile(fmt.Sprintf("plugin-%d.yaml", i), strings.ReplaceAll(loadPlugin, "plugin-name: load", "plugin-name: "+loadName(i)))
		if err != nil {
			return "", err
		}
		arguments = append(arguments, "-f", file)
	}
	for i := range statusNodes {
		arguments = append(arguments, "--node", statusNode(i))
	}
	return f.CreateRun(arguments...)
}

func loadName(i int) string   { return fmt.Sprintf("load-%d", i) }
func statusNode(i int) string { return fmt.Sprintf("node-%05d", i) }

// reportMany reports progress for every other node.
func reportMany(f *fleet.Fleet, run string) error {
	for i := range statusPlugins {
		credential, err := f.Export(run, loadName(i), "")
		if err != nil {
			return err
		}
		config, err := muster.LoadConfig(credential.File)
		if err != nil {
			return err
		}
		client, err := muster.New(config)
		if err != nil {
			return err
		}
		failures := make([]error, reporters)
		var all sync.WaitGroup
		for r := range reporters {
			all.Go(func() { failures[r] = reportFrom(client, run, loadName(i), 2*r) })
		}
		all.Wait()
		if err := errors.Join(append(failures, client.Close())...); err != nil {
			return err
		}
	}
	return nil
}

func reportFrom(client *muster.Client, run, plugin string, first int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for node := first; node < statusNodes; node += 2 * reporters {
		err := client.ReportProgress(ctx, muster.Key{Run: run, Plugin: plugin, Node: statusNode(node)},
			muster.Progress{Total: 100, Completed: int64(node % 100), Message: "checks disks"})
		if err != nil {
			return err
		}
	}
	return nil
}

// statusPage is the status of a run for a client with a persistent connection.
type statusPage struct {
	client *http.Client
	url    string
	tag    string // of the newest complete answer
	size   int64  // of that answer
}

// newStatusPage waits until the status service has the whole plan.
func newStatusPage(f *fleet.Fleet, run string) (*statusPage, error) {
	viewer, err := fleet.ReadViewer(f.CredentialsFile(run))
	if err != nil {
		return nil, err
	}
	var last error
	err = fleet.Until(time.Minute, "the status has the whole plan", func() bool {
		var shown *fleet.Shown
		shown, last = viewer.Status()
		return last == nil && len(shown.Plugins) == statusPairs
	})
	if err != nil {
		return nil, errors.Join(err, last)
	}
	client, err := viewer.HTTP()
	if err != nil {
		return nil, err
	}
	client.Transport.(*http.Transport).DisableKeepAlives = false
	page := &statusPage{client: client, url: strings.TrimSuffix(viewer.Address, "/") + "/status"}
	_, err = page.once(http.StatusOK)
	return page, err
}

// ask sends requests one after the other, and returns how long each answer took.
func (p *statusPage) ask(code int) ([]time.Duration, error) {
	var all []time.Duration
	for range statusAsked {
		took, err := p.once(code)
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
	return all, nil
}

func (p *statusPage) once(code int) (time.Duration, error) {
	request, err := http.NewRequest(http.MethodGet, p.url, nil)
	if err != nil {
		return 0, err
	}
	if code == http.StatusNotModified {
		request.Header.Set("If-None-Match", p.tag)
	}
	begin := time.Now()
	response, err := p.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	size, err := io.Copy(io.Discard, response.Body)
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != code {
		return 0, fmt.Errorf("GET %s: %s, not %d", p.url, response.Status, code)
	}
	if code == http.StatusOK {
		p.tag, p.size = response.Header.Get("ETag"), size
	}
	return took, nil
}

func middle(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// millis returns the median with the range.
func millis(all []time.Duration) string {
	return fmt.Sprintf("%d (%d-%d)", middle(all).Milliseconds(), slices.Min(all).Milliseconds(), slices.Max(all).Milliseconds())
}
