package muster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster.example/services/client/go/reasons"
)

// ErrInterrupted is returned by WaitAndDeliver if its context is done first.
var ErrInterrupted = errors.New("interrupted before the result was committed")

// NoResult reports that there is no genuine result, and that an error result was delivered.
type NoResult struct{ Why string }

// Error implements error.
func (e *NoResult) Error() string { return "an error result was delivered: " + e.Why }

const (
	pollInterval = time.Second
	stopGrace    = 60 * time.Second // as old sidecars after SIGTERM
	sealGrace    = 120 * time.Second
	maxDoneFile  = 64 << 10 // a path has at most 4 KiB; the rest is white space
	archiveName  = "results.tar.gz"
)

// WaitAndDeliver does all work of a sidecar: it waits for the done file in the configuration's ResultsDir and
// delivers the file that it names; a folder is delivered as results.tar.gz. It polls once a second. If the
// done file is removed within DoneFileDelay, it waits again: another sidecar may remove the file to add to
// the results. A done file without a usable path, or a result that the server finds too large, leads to an error result
// with the reason (*NoResult).
//
// When the context is done it continues for 60 s, as old sidecars do, and then returns ErrInterrupted; an
// active delivery gets the same time. It fails 120 s after the configuration's Deadline, or when the
// certificate expires.
func (c *Client) WaitAndDeliver(ctx context.Context) (*Result, error) {
	if c.config == nil {
		return nil, errors.New("muster: a worker needs a client made by New")
	}
	withGrace, cancel := c.withGrace(ctx)
	defer cancel()
	defer c.currentHeartbeats.Load().scope(PhaseWaiting)()
	path, err := c.waitForDone(withGrace)
	var result *Result
	switch {
	case withGrace.Err() != nil:
	case err == nil:
		result, err = c.SubmitFile(withGrace, path, Delivery{})
		if isFaultOfResult(err) && withGrace.Err() == nil {
			err = c.deliverError(withGrace, err.Error())
		}
	default:
		err = c.deliverError(withGrace, err.Error())
	}
	if err != nil && ctx.Err() != nil && withGrace.Err() != nil {
		return nil, errors.Join(ErrInterrupted, err)
	}
	return result, err
}

// isFaultOfResult reports whether no attempt to deliver the result can succeed because of the result itself.
func isFaultOfResult(err error) bool {
	var unreadable *BodyError
	var answer *Error
	return errors.As(err, &unreadable) || errors.As(err, &answer) && answer.Reason == reasons.ResultTooLarge
}

func (c *Client) deliverError(ctx context.Context, why string) error {
	if _, err := c.SubmitError(ctx, Key{}, why); err != nil {
		return fmt.Errorf("%s; cannot deliver this error: %w", why, err)
	}
	return &NoResult{why}
}

// withGrace returns a context that outlives the caller's by the grace, but not the deadline.
func (c *Client) withGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	end := c.config.certificate.Leaf.NotAfter
	if d := c.config.Deadline; !d.IsZero() && d.Add(sealGrace).Before(end) {
		end = d.Add(sealGrace)
	}
	withGrace, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-withGrace.Done():
		}
	})
	return withGrace, func() {
		stop()
		cancel()
	}
}

// waitForDone returns the path of a result that can be delivered.
func (c *Client) waitForDone(ctx context.Context) (string, error) {
	done := filepath.Join(c.config.ResultsDir, "done")
	there := func() bool {
		_, err := os.Stat(done)
		return err == nil
	}
	for {
		if err := pause(ctx, pollInterval); err != nil {
			return "", err
		}
		if !there() {
			continue
		}
		if err := pause(ctx, time.Duration(c.config.DoneFileDelay)); err != nil {
			return "", err
		}
		if there() {
			return c.resultPath(done)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resultPath reads the done file: the path of a regular file or of a folder in the results folder.
func (c *Client) resultPath(done string) (string, error) {
	if info, err := os.Stat(done); err != nil || !info.Mode().IsRegular() || info.Size() > maxDoneFile {
		return "", fmt.Errorf("the done file %s is not a file of at most 64 KiB (%v)", done, err)
	}
	content, err := os.ReadFile(done)
	if err != nil {
		return "", fmt.Errorf("cannot read the done file: %w", err)
	}
	named := strings.TrimSpace(string(content))
	if named == "" || strings.ContainsRune(named, 0) {
		return "", fmt.Errorf("the done file %s does not name a file", done)
	}
	if !filepath.IsAbs(named) {
		named = filepath.Join(c.config.ResultsDir, named)
	}
	folder, err := filepath.EvalSymlinks(c.config.ResultsDir)
	if err != nil {
		return "", fmt.Errorf("cannot open the results folder: %w", err)
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return "", fmt.Errorf("cannot open the result that the done file names: %w", err)
	}
	if relative, err := filepath.Rel(folder, real); err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return "", fmt.Errorf("the done file names %s, outside of the results folder %s", named, c.config.ResultsDir)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot open the result that the done file names: %w", err)
	case info.IsDir():
		return pack(real, done)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("the done file names %s, which is neither a file nor a folder", named)
	case info.Size() > c.config.MaxResultBytes:
		return "", fmt.Errorf("the result has %d bytes, more than max_result_bytes, %d", info.Size(), c.config.MaxResultBytes)
	}
	return real, nil
}
