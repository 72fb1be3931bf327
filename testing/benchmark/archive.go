package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	archiveResults = 10_000
	gzipAllowance  = 1.1 // of the time of gzip
)

// archive measures the time from the last result to the archive of the run, and that of gzip for the same data.
func archive(s settings) (string, error) {
	return withFleet(s.folder, func(f *fleet.Fleet, folder string) (string, error) { return packResults(f, folder, s) })
}

func packResults(f *fleet.Fleet, folder string, s settings) (string, error) {
	server, err := f.Process(fleet.Aggregator)
	if err != nil {
		return "", err
	}
	size := int64(s.scaled(s.archiveMiB << 20))
	l := load{size: size / archiveResults, count: archiveResults, senders: 16}
	request := &musterv1.CreateRunRequest{Plugins: []string{loadPlugin}}
	for i := range archiveResults {
		request.Nodes = append(request.Nodes, fmt.Sprintf("node-%d", i))
	}
	var begin time.Time
	var before time.Duration
	var delivered sample
	deliver := func(run string) error {
		credential, err := f.Export(run, "load", "")
		if err != nil {
			return err
		}
		sender, err := grpcSender(f, s, credential, l)
		if err != nil {
			return err
		}
		delivered, err = measured([]fleet.Process{server}, sender)
		begin, before = time.Now(), server.CPU()
		return err
	}
	complete := func(run *musterv1.Run) bool { return run.State == musterv1.RunState_RUN_STATE_COMPLETE }
	run, err := runUntil(f, request, complete, deliver)
	if err != nil {
		return "", err
	}
	took, cpu := time.Since(begin), server.CPU()-before
	gzipTook, gzipCPU, err := gzipOf(f, run.Id, folder)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "**Archive of %d results, %d MiB, incompressible, after the last result**\n\n", archiveResults, size>>20)
	fmt.Fprintf(&out, "| | seconds | bar | ratio to the bar | server CPU s | peak memory |\n|---|---|---|---|---|---|\n")
	bar := gzipTook.Seconds() * gzipAllowance
	fmt.Fprintf(&out, "| Muster: read, verify, pack, compress, sync | %.1f | %.1f | %.2f | %.1f | %s |\n", took.Seconds(), bar,
		took.Seconds()/bar, cpu.Seconds(), mib(server.PeakMemory()))
	fmt.Fprintf(&out, "| `gzip -1` of the archive's tar file | %.1f | | | %.1f | |\n", gzipTook.Seconds(), gzipCPU.Seconds())
	fmt.Fprintf(&out, "\nNo client works meanwhile. The senders took %.1f s and %.1f CPU s before, the aggregator %.1f CPU s.\n",
		delivered.seconds, delivered.client.Seconds(), delivered.cpu.Seconds())
	return out.String(), nil
}

// gzipOf returns the wall and CPU time of gzip for the tar file in the archive of a run, from and to the same folder.
func gzipOf(f *fleet.Fleet, run, folder string) (took, cpu time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), largeLimit)
	defer cancel()
	packed, tar := filepath.Join(folder, "archive.tar.gz"), filepath.Join(folder, "archive.tar")
	if _, err := f.Run(ctx, "retrieve", run, "-o", packed); err != nil {
		return 0, 0, err
	}
	if text, err := exec.CommandContext(ctx, "sh", "-c", "gzip -dc \"$1\" > \"$2\"", "sh", packed, tar).CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("gzip -d: %w: %s", err, text)
	}
	to, err := os.Create(packed) // again, without the old content
	if err != nil {
		return 0, 0, err
	}
	defer to.Close()
	gzip := exec.CommandContext(ctx, "gzip", "-1", "-c", tar)
	gzip.Stdout, gzip.Stderr = to, os.Stderr
	begin := time.Now()
	if err := gzip.Run(); err != nil {
		return 0, 0, err
	}
	return time.Since(begin), gzip.ProcessState.UserTime() + gzip.ProcessState.SystemTime(), nil
}
