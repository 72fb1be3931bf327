package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const (
	jobWithin     = 5 * time.Minute
	outputLine    = 16 // bytes, as in testing/load/simulated_job.h
	pollsAttached = 200 * time.Millisecond
)

func nodeName(number int) string { return fmt.Sprintf("load-%d", number) }

// jobClient submits commands with `muster exec`, and watches them by gRPC.
type jobClient struct {
	fleet         *fleet.Fleet
	target        string // of the root relay
	rootArguments []string
	connection    *grpc.ClientConn
}

func newJobClient(f *fleet.Fleet) (*jobClient, error) {
	operator, err := f.Operator()
	if err != nil {
		return nil, err
	}
	connection, err := operator.RelayGRPC()
	if err != nil {
		return nil, err
	}
	c := &jobClient{fleet: f, target: operator.Relay[0], connection: connection}
	for _, process := range f.Processes() {
		if process.Name == fleet.Relay && strings.Contains(strings.Join(process.Arguments, " "), f.Home+"/config/") {
			c.rootArguments = process.Arguments
		}
	}
	return c, nil
}

func (c *jobClient) close() { _ = c.connection.Close() }

// awaitAttached waits until this many nodes and relays are attached to the root relay or its descendants.
func (c *jobClient) awaitAttached(count int) error {
	attached := 0
	err := fleet.Until(allAttachedFor, fmt.Sprintf("%d nodes are attached", count), func() bool {
		attached = c.attached()
		if attached < count {
			time.Sleep(pollsAttached)
		}
		return attached >= count
	})
	if err != nil {
		return fmt.Errorf("%w: the root relay knows %d", err, attached)
	}
	return nil
}

func (c *jobClient) attached() int {
	ctx, cancel := context.WithTimeout(context.Background(), jobWithin)
	defer cancel()
	count := 0
	request := &musterv1.ListAttachedRequest{AttachedOnly: true}
	for {
		page, err := musterv1.NewAttachServiceClient(c.connection).ListAttached(ctx, request)
		if err != nil {
			return 0
		}
		count += len(page.Children)
		if request.PageToken = page.NextPageToken; request.PageToken == "" {
			return count
		}
	}
}

// submit returns the job's id.
func (c *jobClient) submit(targets string, arguments ...string) (string, error) {
	out, err := c.fleet.Muster(append([]string{"exec", targets, "--deadline=4m", "--detach", "--", "/load"}, arguments...)...)
	return strings.TrimSpace(out), err
}

// seen is what a watch received of a job.
type seen struct {
	seconds   float64 // from its submission to the receipt of its last final record
	succeeded int     // nodes that exited with 0 and whose output is complete
}

// watch reads all records of a job to its end, and compares each byte of output.
func (c *jobClient) watch(job string, each int64) (seen, error) {
	ctx, cancel := context.WithTimeout(context.Background(), jobWithin)
	defer cancel()
	stream, err := musterv1.NewJobServiceClient(c.connection).WatchJob(ctx, &musterv1.WatchJobRequest{Job: job})
	if err != nil {
		return seen{}, err
	}
	var all seen
	var last time.Time
	nodes := map[string]*watchedNode{}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		for _, record := range response.Records {
			node := nodes[record.Node]
			if node == nil {
				node = &watchedNode{}
				nodes[record.Node] = node
			}
			if err := node.check(record); err != nil {
				return all, fmt.Errorf("job %s: %s: %w", job, record.Node, err)
			}
			if final := record.GetFinal(); final != nil {
				last = time.Now()
				if final.Outcome == musterv1.JobOutcome_JOB_OUTCOME_EXITED && node.bytes == each {
					all.succeeded++
				}
			}
		}
		if response.Job != nil {
			all.seconds = last.Sub(response.Job.SubmitTime.AsTime()).Seconds()
		}
	}
}

// watchedNode is the position in the records of a node.
type watchedNode struct {
	sequence int64
	bytes    int64
}

// check checks that no record is missing, duplicated or foreign.
func (n *watchedNode) check(record *musterv1.JobRecord) error {
	if record.Sequence == 0 {
		return nil // made by the root relay
	}
	if n.sequence++; record.Sequence != n.sequence {
		return fmt.Errorf("got record %d instead of %d", record.Sequence, n.sequence)
	}
	if record.GetCut() != nil {
		return errors.New("output was truncated")
	}
	data := record.GetOutput().GetData()
	if len(data) == 0 {
		return nil
	}
	number, err := strconv.Atoi(strings.TrimPrefix(record.Node, "load-"))
	if err != nil {
		return err
	}
	var want bytes.Buffer
	for at := n.bytes / outputLine; int64(want.Len()) < int64(len(data))+outputLine; at++ {
		fmt.Fprintf(&want, "%07d %07d\n", number, at)
	}
	begin := n.bytes % outputLine
	if !bytes.Equal(data, want.Bytes()[begin:begin+int64(len(data))]) {
		return fmt.Errorf("its output differs from byte %d on", n.bytes)
	}
	n.bytes += int64(len(data))
	return nil
}

// memoryNow returns the resident memory of a process, in bytes.
func memoryNow(process fleet.Process) (int64, error) {
	if err := process.ResetPeak(); err != nil {
		return 0, err
	}
	return process.PeakMemory(), nil
}

var socketBytes = regexp.MustCompile(`\b(?:bytes_sent|bytes_received):(\d+)`)

// upstreamBytes returns the bytes of a process's connections to an address, in both directions, without TCP and lower
// headers.
func upstreamBytes(pid int, target string) (int64, error) {
	out, err := exec.Command("ss", "-tinpHO", "dst", target).Output()
	if err != nil {
		return 0, fmt.Errorf("ss: %w", err)
	}
	var sum int64
	found := false
	for _, line := range strings.Split(string(out), "\n") {
		if !strings.Contains(line, fmt.Sprintf("pid=%d,", pid)) {
			continue
		}
		for _, match := range socketBytes.FindAllStringSubmatch(line, -1) {
			bytes, _ := strconv.ParseInt(match[1], 10, 64)
			sum, found = sum+bytes, true
		}
	}
	if !found {
		return 0, fmt.Errorf("process %d has no connection to %s", pid, target)
	}
	return sum, nil
}
