package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"muster.example/testing/fleet"
)

const mostMemory = 256 << 20

// uploadSize returns the size of each simultaneous upload at the scale of this measurement.
func (s settings) uploadSize() int64 { return int64(s.scaled(s.uploadMiB << 20)) }

// uploadSpace returns an error unless the disk has space for all simultaneous uploads, which may take this percentage of
// it: half for one identity, 80 for one run (docs/limits.md).
func (s settings) uploadSpace(percent int64) error {
	var space syscall.Statfs_t
	if err := syscall.Statfs(s.disk, &space); err != nil {
		return err
	}
	if free, needed := int64(space.Bavail)*space.Bsize, int64(s.uploads)*s.uploadSize()*100/percent+5*gib; free < needed {
		return fmt.Errorf("%s has %d GiB free, but %d are required: set another with -disk, or less with -upload-mib", s.disk, free>>30, needed>>30)
	}
	return nil
}

// memory measures the memory of the services while 100 senders deliver at the same time: by gRPC, and as old sidecars do.
func memory(s settings) (string, error) {
	if err := s.uploadSpace(50); err != nil {
		return "", err
	}
	l := load{size: s.uploadSize(), count: int64(s.uploads), senders: s.uploads}
	var out strings.Builder
	fmt.Fprintf(&out, "**%d uploads of %s at once**\n\n| | seconds | MB/s | peak memory | bar | ratio | server CPU s | client CPU s |\n|---|---|---|---|---|---|---|---|\n",
		s.uploads, mib(l.size))
	for _, way := range []struct {
		name    string
		servers []string
		sender  func(*fleet.Fleet, *fleet.Credential) (*exec.Cmd, error)
	}{
		{"gRPC", []string{fleet.Aggregator}, func(f *fleet.Fleet, credential *fleet.Credential) (*exec.Cmd, error) {
			return grpcSender(f, s, credential, l)
		}},
		{"legacy PUT", []string{fleet.Aggregator, fleet.Gateway}, func(f *fleet.Fleet, credential *fleet.Credential) (*exec.Cmd, error) {
			return sending{protocol: "put", load: l, fresh: true, chunked: true}.legacyCommand(f, credential)
		}},
	} {
		if err := memoryOf(s, l, way.servers, way.sender, func(one sample, peaks []int64) {
			for i, part := range one.parts {
				fmt.Fprintf(&out, "| %s, %s | %.0f | %.0f | %s | 256 MiB | %.2f | %.1f | %.1f |\n", way.name, part.name, one.seconds,
					float64(l.count*l.size)/1e6/one.seconds, mib(peaks[i]), float64(peaks[i])/mostMemory, part.cpu.Seconds(), one.client.Seconds())
			}
		}); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func memoryOf(s settings, l load, names []string, sender func(*fleet.Fleet, *fleet.Credential) (*exec.Cmd, error),
	report func(sample, []int64)) (err error) {
	folder, err := os.MkdirTemp(s.disk, "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	f, credential, err := planned(folder, l.count)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var servers []fleet.Process
	for _, name := range names {
		server, err := f.Process(name)
		if err != nil {
			return err
		}
		servers = append(servers, server)
	}
	command, err := sender(f, credential)
	if err != nil {
		return err
	}
	one, err := measured(servers, command)
	if err != nil {
		return err
	}
	var peaks []int64
	for _, server := range servers {
		peaks = append(peaks, server.PeakMemory())
	}
	report(one, peaks)
	return nil
}
