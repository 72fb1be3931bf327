package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.example/testing/fleet"
)

const (
	deployedNodes = 200
	deployed      = 1_000
	deployers     = 4
	deployedIn    = 10 * time.Minute
)

// deployments measures many deployments to simulated nodes: no record of theirs is missing or doubled.
func deployments(s settings) (table string, err error) {
	f, err := startFleet(s.folder)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := &bench{settings: s, fleet: f}
	defer func() { b.stop() }()
	if err := b.start(); err != nil {
		return "", err
	}
	if _, err := b.attach(deployedNodes); err != nil {
		return "", err
	}
	document := filepath.Join(f.Home, "empty.yaml")
	text := "apiVersion: muster/v1\nkind: TemplateType\nname: empty\nversion: 1.0.0\ncontract: 1\nimage: registry.example/empty@sha256:" +
		strings.Repeat("a", 64) + "\n"
	if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
		return "", err
	}
	if _, err := f.Muster("type", "push", document); err != nil {
		return "", err
	}
	fmt.Fprintf(&b.out, "**%d deployments to %d simulated nodes behind %d relays; everything on one machine**\n\n", s.scaled(deployed),
		deployedNodes, relayCount)
	fmt.Fprintf(&b.out, "| | figure | bar | ratio |\n|---|---|---|---|\n")
	if err := b.deployAll(); err != nil {
		return "", err
	}
	return b.out.String(), nil
}

// deployAll creates the deployments, and compares every record of their jobs.
func (b *bench) deployAll() error {
	begin := time.Now()
	ids, err := b.createAll(b.scaled(deployed))
	if err != nil {
		return err
	}
	created := time.Since(begin)
	var times []float64
	var lost int
	for _, id := range ids {
		var shown struct {
			Job        string
			State      string
			CreateTime time.Time `json:"create_time"`
			EndTime    time.Time `json:"end_time"`
		}
		err := fleet.Until(deployedIn, "deployment "+id+" has ended", func() bool {
			return b.fleet.JSON(&shown, "deployment", "show", id) == nil && !shown.EndTime.IsZero()
		})
		if err != nil {
			return err
		}
		all, err := b.client.watch(shown.Job, 0)
		if err != nil {
			return err
		}
		if shown.State != "succeeded" || all.succeeded != 1 {
			lost++
		}
		times = append(times, shown.EndTime.Sub(shown.CreateTime).Seconds())
	}
	slices.Sort(times)
	b.row("time until all are created, by 4 programs at a time", fmt.Sprintf("%.1f s", created.Seconds()), "", 0)
	b.row("from the creation of one to its stored outcome, p50; p99", fmt.Sprintf("%.2f; %.2f s", times[len(times)/2], times[len(times)*99/100]), "", 0)
	b.row("lost or failed", fmt.Sprint(lost), "", 0)
	b.row("records that were missing or doubled", "0", "", 0) // watch fails at the first one
	b.processes()
	return nil
}

func (b *bench) createAll(count int) ([]string, error) {
	ids := make([]string, count)
	failures := make([]error, deployers)
	var working sync.WaitGroup
	for n := range deployers {
		working.Add(1)
		go func() {
			defer working.Done()
			for i := n; i < count && failures[n] == nil; i += deployers {
				ids[i], failures[n] = b.create(nodeName(i % deployedNodes))
			}
		}()
	}
	working.Wait()
	return ids, errors.Join(failures...)
}

func (b *bench) create(node string) (string, error) {
	out, err := b.fleet.Muster("deploy", "--type", "empty@1.0.0", "--node", node, "--ttl", "10m", "--json")
	if err != nil {
		return "", err
	}
	var created struct{ Deployment string }
	return created.Deployment, json.Unmarshal([]byte(out), &created)
}
