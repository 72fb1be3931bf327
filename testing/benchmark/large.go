package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	planNodes   = 100_000 // the most that a run may have
	startWithin = 2 * time.Second
	largeLimit  = 20 * time.Minute
)

// withFleet measures something on a new fleet in a new folder of `parent`, and removes both.
func withFleet(parent string, measure func(f *fleet.Fleet, folder string) (string, error)) (table string, err error) {
	folder, err := os.MkdirTemp(parent, "bench")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	f, err := startFleet(folder)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return measure(f, folder)
}

// start measures how long the services take to become ready with many rows of results: of a run that is still open,
// whose pairs the status service lists before it is ready, and of the same run after its end.
func start(s settings) (string, error) {
	return withFleet(s.folder, func(f *fleet.Fleet, _ string) (string, error) { return startWithRows(f, s) })
}

func startWithRows(f *fleet.Fleet, s settings) (string, error) {
	// Their deadline commits a time-out for each pair; the grace keeps the run from being sealed.
	request := &musterv1.CreateRunRequest{Timeout: durationpb.New(time.Second), SealGrace: durationpb.New(time.Hour)}
	rows := s.scaled(s.rows)
	nodes := min(rows, planNodes)
	for i := range nodes {
		request.Nodes = append(request.Nodes, statusNode(i))
	}
	for i := range rows / nodes {
		request.Plugins = append(request.Plugins, strings.ReplaceAll(loadPlugin, "plugin-name: load", "plugin-name: "+loadName(i)))
	}
	run, err := runUntil(f, request, func(run *musterv1.Run) bool { return run.Counts.GetPending() == 0 }, nil)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "**Start with %d rows of results, until all services are ready**\n\n", rows)
	fmt.Fprintf(&out, "| the run | `muster up` | bar | ratio | CPU and peak memory of the aggregator | of status | of the gateway | client CPU s |\n|---|---|---|---|---|---|---|---|\n")
	if err := restart(f, "is open", &out); err != nil {
		return "", err
	}
	if _, err := f.Muster("cancel", run.Id); err != nil {
		return "", err
	}
	if err := restart(f, "has ended", &out); err != nil {
		return "", err
	}
	took, err := firstStatus(f, run.Id)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "\nThe first `GetStatus` of the ended run took %.1f s.\n", took.Seconds())
	return out.String(), nil
}

// restart stops the services, starts them, and adds a row.
func restart(f *fleet.Fleet, state string, out *strings.Builder) error {
	if _, err := f.Muster("down"); err != nil {
		return err
	}
	begin, client := time.Now(), ownCPU()
	if err := f.Up(); err != nil {
		return err
	}
	took, client := time.Since(begin), ownCPU()-client
	fmt.Fprintf(out, "| %s | %.1f s | %.0f s | %.2f |", state, took.Seconds(), startWithin.Seconds(), took.Seconds()/startWithin.Seconds())
	for _, name := range []string{fleet.Aggregator, fleet.Status, fleet.Gateway} {
		server, err := f.Process(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, " %.1f s; %s |", server.CPU().Seconds(), mib(server.PeakMemory()))
	}
	fmt.Fprintf(out, " %.1f |\n", client.Seconds())
	return nil
}

// firstStatus returns how long the status service takes for the first page of a run.
func firstStatus(f *fleet.Fleet, run string) (time.Duration, error) {
	operator, err := f.Operator()
	if err != nil {
		return 0, err
	}
	connection, err := operator.StatusGRPC()
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), largeLimit)
	defer cancel()
	begin := time.Now()
	_, err = musterv1.NewStatusServiceClient(connection).GetStatus(ctx, &musterv1.GetStatusRequest{Run: run, PageSize: 100})
	return time.Since(begin), err
}

// runUntil creates a run, calls `deliver` for it, and returns it when it is as wanted.
func runUntil(f *fleet.Fleet, request *musterv1.CreateRunRequest, wanted func(*musterv1.Run) bool,
	deliver func(run string) error) (*musterv1.Run, error) {
	operator, err := f.Operator()
	if err != nil {
		return nil, err
	}
	connection, err := operator.GRPC(0)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), largeLimit)
	defer cancel()
	runs := musterv1.NewRunServiceClient(connection)
	run, err := runs.CreateRun(ctx, request)
	if err != nil {
		return nil, err
	}
	if deliver != nil {
		if err := deliver(run.Id); err != nil {
			return nil, err
		}
	}
	for !wanted(run) {
		time.Sleep(50 * time.Millisecond)
		if run, err = runs.GetRun(ctx, &musterv1.GetRunRequest{Run: run.Id}); err != nil {
			return nil, err
		}
	}
	return run, nil
}
