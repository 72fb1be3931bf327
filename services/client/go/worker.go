package muster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	file, err := c.waitForDone(withGrace)
	if err == nil {
		defer file.Close()
	}
	var result *Result
	switch {
	case withGrace.Err() != nil:
	case err == nil:
		result, err = c.submitFile(withGrace, file, Delivery{})
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

// waitForDone opens a result that can be delivered.
func (c *Client) waitForDone(ctx context.Context) (*os.File, error) {
	done := filepath.Join(c.config.ResultsDir, "done")
	there := func() bool {
		_, err := os.Stat(done)
		return err == nil
	}
	for {
		if err := pause(ctx, pollInterval); err != nil {
			return nil, err
		}
		if !there() {
			continue
		}
		if err := pause(ctx, time.Duration(c.config.DoneFileDelay)); err != nil {
			return nil, err
		}
		if there() {
			return c.openResult(done)
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

// openResult opens what the done file names: a regular file in the results folder, or the archive of a folder. Links
// of the plugin, also those that it makes meanwhile, do not lead outside of the results folder.
func (c *Client) openResult(done string) (*os.File, error) {
	results, err := os.OpenRoot(c.config.ResultsDir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the results folder: %w", err)
	}
	defer results.Close()
	named, err := c.resultName(results, done)
	if err != nil {
		return nil, err
	}
	file, info, err := openNow(results, named)
	if err != nil {
		return nil, fmt.Errorf("cannot open the result that the done file names: %w", err)
	}
	if info.Mode().IsRegular() && info.Size() <= c.config.MaxResultBytes {
		return file, nil
	}
	file.Close()
	switch {
	case info.IsDir():
		return pack(results, named)
	case info.Mode().IsRegular():
		return nil, fmt.Errorf("the result has %d bytes, more than max_result_bytes, %d", info.Size(), c.config.MaxResultBytes)
	}
	return nil, fmt.Errorf("the done file names %s, which is neither a file nor a folder", named)
}

// openNow opens a file or a folder without waiting for the writer of a pipe.
func openNow(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// resultName reads the done file. The path that it returns begins in the results folder and has no links.
func (c *Client) resultName(results *os.Root, done string) (string, error) {
	file, info, err := openNow(results, filepath.Base(done))
	if err != nil {
		return "", fmt.Errorf("cannot read the done file: %w", err)
	}
	defer file.Close()
	if !info.Mode().IsRegular() || info.Size() > maxDoneFile {
		return "", fmt.Errorf("the done file %s is not a file of at most 64 KiB", done)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxDoneFile))
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
	relative, err := filepath.Rel(folder, real)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("the done file names %s, outside of the results folder %s", named, c.config.ResultsDir)
	}
	return relative, nil
}
