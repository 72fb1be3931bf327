package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster.example/testing/fleet"
)

const (
	legacyUploads = 20
	diskNeeded    = 30 * gib
	mostMemory    = 256 << 20
)

// memory measures the memory of the services while 20 old sidecars send 1 GiB each, concurrently, as one HTTP chunk.
func memory(s settings) (table string, err error) {
	var space syscall.Statfs_t
	if err := syscall.Statfs(s.disk, &space); err != nil {
		return "", err
	}
	if free := int64(space.Bavail) * space.Bsize; free < diskNeeded {
		return "", fmt.Errorf("%s has %d GiB free, but 30 are required: set another with -disk", s.disk, free>>30)
	}
	folder, err := os.MkdirTemp(s.disk, "bench")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	f, credential, err := planned(folder, legacyUploads)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	var servers []fleet.Process
	var before []time.Duration
	for _, name := range []string{fleet.Aggregator, fleet.Gateway} {
		server, err := f.Process(name)
		if err != nil {
			return "", err
		}
		servers, before = append(servers, server), append(before, server.CPU())
		if err := server.ResetPeak(); err != nil {
			return "", err
		}
	}
	begin := time.Now()
	if err := putAll(credential); err != nil {
		return "", err
	}
	seconds := time.Since(begin).Seconds()
	var out strings.Builder
	fmt.Fprintf(&out, "**%d simultaneous uploads of 1 GiB by legacy PUT, each one HTTP chunk**: %.0f s, %.0f MB/s in total\n\n",
		legacyUploads, seconds, legacyUploads*gib/1e6/seconds)
	fmt.Fprintf(&out, "| | peak memory | bar | ratio | server CPU s |\n|---|---|---|---|---|\n")
	for i, server := range servers {
		fmt.Fprintf(&out, "| %s | %s | 256 MiB | %.2f | %.1f |\n", server.Name, mib(server.PeakMemory()),
			float64(server.PeakMemory())/mostMemory, (server.CPU() - before[i]).Seconds())
	}
	return out.String(), nil
}

// putAll sends the same bytes for every node, concurrently.
func putAll(credential *fleet.Credential) error {
	body := make([]byte, gib)
	rand.New(rand.NewSource(1)).Read(body)
	failures := make([]error, legacyUploads)
	var all sync.WaitGroup
	for i := range legacyUploads {
		all.Add(1)
		go func() {
			defer all.Done()
			failures[i] = putOne(credential, i, body)
		}()
	}
	all.Wait()
	return errors.Join(failures...)
}

// putOne hides the length, so that the body is chunked; the reader writes everything in one call: one chunk.
func putOne(credential *fleet.Credential, node int, body []byte) error {
	client, err := credential.HTTP()
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPut,
		fmt.Sprintf("%s/api/v1/results/by-node/node-%d/load", credential.AggregatorURL, node), io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return err
	}
	request.ContentLength = -1
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("node %d: status %d: %s", node, response.StatusCode, text)
	}
	return nil
}
