package muster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
)

// Submit delivers a result and returns when it is committed: only then it survives the loss of any process
// and of power. It retries over lost connections and restarts of the server, and resumes the upload, until
// the context is done (or Delivery.Hold expires).
//
// Errors: *Error for the server's final answer, *BodyError, *LostError, *SpooledError, the context's
// error.
func (c *Client) Submit(ctx context.Context, d *Delivery) (*Result, error) {
	renumber := d.Attempt == 0
	d = c.prepared(d)
	defer c.currentHeartbeats.Load().scope(PhaseDelivering)()
	if c.legacy != nil {
		return c.submitLegacy(ctx, d)
	}
	rpc := c.pick()
	var from source
	if file, ok := d.Body.(interface {
		io.ReaderAt
		io.Seeker
	}); ok {
		size, err := file.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, &BodyError{err}
		}
		if size > smallResult {
			if from, err = newFileSource(file, size); err != nil {
				return nil, err
			}
		} else if _, err = file.Seek(0, io.SeekStart); err != nil {
			return nil, &BodyError{err}
		}
	}
	switch {
	case from != nil:
	case d.OpenFirst:
		from = newStreamSource(d.Body)
	default:
		head, more, err := readHead(d.Body)
		if err != nil {
			return nil, err
		}
		if !more {
			return c.submitSmall(ctx, rpc, d, head)
		}
		from = newStreamSource(io.MultiReader(bytes.NewReader(head), d.Body))
	}
	if !d.Forwarded {
		from.addDigest()
	}
	c.uploads.Add(1)
	defer c.uploads.Add(-1)
	u := &upload{rpc: rpc, delivery: d, source: from, sign: c.sign, share: c.share, renumber: renumber}
	return persist(ctx, d.Hold, c.waiting, u.once, d.LeaveWhenSpooled)
}

func (c *Client) submitLegacy(ctx context.Context, d *Delivery) (*Result, error) {
	file, ok := d.Body.(*os.File)
	if !ok {
		var err error
		if file, err = spool(d.Body); err != nil {
			return nil, err
		}
		defer file.Close()
	}
	return c.legacy.submit(ctx, d, file, c.waiting)
}

// SubmitError delivers an error result with the reason why there is no result; the text is truncated to 64
// KiB. A genuine result may still follow until the run is sealed. It fails with RESULT_CONFLICT if a genuine result or
// another error is committed and stays; the legacy protocol does not report that. The zero Key is the configuration's.
func (c *Client) SubmitError(ctx context.Context, key Key, text string) (*Result, error) {
	return c.Submit(ctx, &Delivery{Key: key, IsError: true, MediaType: "text/plain; charset=utf-8",
		Body: strings.NewReader(text[:min(len(text), smallResult)])})
}

// SubmitFile delivers a file. It sets the delivery's Body, and its FileName and MediaType if they are empty.
func (c *Client) SubmitFile(ctx context.Context, path string, d Delivery) (*Result, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &BodyError{err}
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, &BodyError{fmt.Errorf("%s is not a regular file", path)}
	}
	return c.submitFile(ctx, file, d)
}

// submitFile delivers an open file.
func (c *Client) submitFile(ctx context.Context, file *os.File, d Delivery) (*Result, error) {
	if d.FileName == "" {
		d.FileName = filepath.Base(file.Name())
	}
	if d.MediaType == "" {
		d.MediaType = mediaType(file.Name())
	}
	d.Body = file
	return c.Submit(ctx, &d)
}

// readHead reads up to the size of one call, and reports whether there may be more.
func readHead(body io.Reader) ([]byte, bool, error) {
	head := make([]byte, 0, 4<<10+bytes.MinRead) // the end of 4 KiB is found without a larger buffer
	for {
		n, err := body.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		switch {
		case errors.Is(err, io.EOF):
			return head, len(head) > smallResult, nil
		case err != nil:
			return nil, false, &BodyError{err}
		case len(head) > smallResult:
			return head, true, nil
		case len(head) == cap(head): // about 4, 18, 68 KiB
			head = append(make([]byte, 0, min(4*cap(head), smallResult+4<<10)), head...)
		}
	}
}

func (c *Client) submitSmall(ctx context.Context, rpc musterv1.ResultServiceClient, d *Delivery, body []byte) (*Result, error) {
	sum := summary{size: int64(len(body)), crc32c: crc32.Checksum(body, castagnoli)}
	if !d.Forwarded {
		digest := sha256.Sum256(body)
		sum.sha256 = digest[:]
	}
	signature, err := c.sign.result(d, sum)
	if err != nil {
		return nil, err
	}
	request := &musterv1.SubmitResultRequest{
		Description: d.description(), Crc32C: sum.crc32c, Sha256: sum.sha256, Signature: signature, Body: body,
	}
	return persist(ctx, d.Hold, c.waiting, func(ctx context.Context) (*Result, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		result, err := rpc.SubmitResult(ctx, request)
		if err != nil && AsError(err).Reason == reasons.RelayCutOff {
			return c.uploadSmall(ctx, rpc, d, body)
		}
		if err != nil {
			return nil, false, err
		}
		stored, err := d.confirmed(result, sum)
		return stored, true, err
	}, d.LeaveWhenSpooled)
}

// uploadSmall delivers a small result to a disconnected relay.
func (c *Client) uploadSmall(ctx context.Context, rpc musterv1.ResultServiceClient, d *Delivery, body []byte) (*Result, bool, error) {
	from, err := newFileSource(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, false, err
	}
	u := &upload{rpc: rpc, delivery: d, source: from, sign: c.sign, share: c.share}
	return u.once(ctx)
}

// maxDamaged bounds how often data that was damaged in transit is resent.
const maxDamaged = 5

// persist calls `once` until it succeeds, its error is final, the context is done, or it made no progress for
// `hold` (if that is not 0; then a full disk ends it, too). It calls `waiting` with the reason of each wait,
// and with nil before a retry. A spooled result is requested repeatedly, unless `leave`.
func persist(ctx context.Context, hold time.Duration, waiting func(*Error), once func(context.Context) (*Result, bool, error),
	leave bool) (*Result, error) {
	wait := backoff{}
	if hold > 0 {
		wait.limit = 2 * time.Second
	}
	var stuck time.Time // since when there was no progress
	for damaged := 0; ; {
		started := time.Now()
		result, progress, err := once(ctx)
		if err == nil {
			return result, nil
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), fromRPC(err))
		}
		err = fromRPC(err)
		var held *SpooledError
		if errors.As(err, &held) {
			if leave {
				return nil, err
			}
			err = &Error{Code: "UNAVAILABLE", Reason: reasons.ResultSpooled, Message: held.Error()}
		}
		var answer *Error
		if !errors.As(err, &answer) || !again(answer, &damaged) {
			return nil, err
		}
		if progress || stuck.IsZero() {
			stuck = time.Now()
			if !progress {
				stuck = started
			}
			wait.reset()
		}
		if hold > 0 && (answer.Reason == reasons.DiskFull || answer.Reason == reasons.RunFull || time.Since(stuck) >= hold) {
			return nil, err
		}
		waiting(answer)
		if err := wait.wait(ctx, answer.RetryAfter); err != nil {
			return nil, errors.Join(err, answer)
		}
		waiting(nil)
	}
}

// again reports whether to open the upload again.
func again(answer *Error, damaged *int) bool {
	switch answer.Reason {
	case reasons.UploadNotFound, reasons.OffsetTooHigh:
		return true
	case reasons.CrcMismatch:
		*damaged++
		return *damaged <= maxDamaged
	}
	return answer.Retryable()
}
