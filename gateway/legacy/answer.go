package legacy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"

	"muster.example/gateway/limits"
	"muster.example/services/client/go"
	"muster.example/services/client/go/reasons"
)

// refuse answers with one line of text, as legacy clients expect. The length lets them read it before the connection is
// closed.
func refuse(w http.ResponseWriter, code int, text string) {
	if text != "" {
		text = strings.ReplaceAll(text, "\n", " ") + "\n"
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

var (
	errTooLarge  = errors.New("the result is larger than this gateway accepts (limits.result_bytes)")
	errStalled   = errors.New("the body was sent too slowly")
	errMalformed = errors.New("the body is not valid HTTP")
)

// diskFullText is the answer for a full disk. The log names the file of the aggregator; the client does not see it.
const diskFullText = "the aggregator's disk is full (DISK_FULL): free space on the aggregator's disk, or delete old " +
	"runs, and send it again; earlier results are not affected"

// reasonStatuses maps reasons whose codes do not follow from their class.
var reasonStatuses = map[string]int{
	reasons.ResultConflict: http.StatusConflict,
	reasons.RunSealed:      http.StatusGone,
	reasons.RunCancelled:   http.StatusGone,
	reasons.RunNotFound:    http.StatusGone, // this listener is the run's own: the run was deleted
	reasons.PairNotPlanned: http.StatusForbidden,
	reasons.NotYours:       http.StatusForbidden,
	reasons.ResultTooLarge: http.StatusRequestEntityTooLarge, // the aggregator's limit
	reasons.DiskFull:       http.StatusInsufficientStorage,
	reasons.RunFull:        http.StatusInsufficientStorage,
	reasons.TakenOver:      http.StatusServiceUnavailable, // another sender has taken over: this one may retry
	reasons.CrcMismatch:    http.StatusServiceUnavailable,
	reasons.DigestMismatch: http.StatusServiceUnavailable,
	reasons.SizeMismatch:   http.StatusServiceUnavailable,
}

// classes maps error classes to codes. Never 201, 202, 204 or 206, which old workers treat as failures, never a
// redirect, and never 429, which they do not retry.
var classes = map[string]int{
	"PERMISSION_DENIED": http.StatusForbidden,
	"UNAUTHENTICATED":   http.StatusForbidden,
	"INVALID_ARGUMENT":  http.StatusBadRequest,
}

// failure converts an error of a delivery into a code and a line. Old workers retry after 5xx.
func failure(err error) (code int, text string, retryAfter time.Duration) {
	var answer *muster.Error
	var body *muster.BodyError
	var lost *muster.LostError
	switch {
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge, err.Error(), 0
	case errors.Is(err, errStalled), errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusServiceUnavailable, errStalled.Error() + ": send the result again", 0
	case errors.Is(err, errMalformed):
		return http.StatusBadRequest, err.Error() + ": nothing was stored", 0
	case errors.As(err, &body):
		return http.StatusInternalServerError, err.Error() + ": nothing was stored", 0
	case errors.As(err, &lost):
		return http.StatusServiceUnavailable, "the aggregator lost the upload: send the result again", 0
	case errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "the gateway is stopping: send the result again", 0
	case !errors.As(err, &answer):
		return http.StatusInternalServerError, err.Error(), 0
	}
	code, ok := reasonStatuses[answer.Reason]
	if !ok {
		if code, ok = classes[answer.Code]; !ok {
			code = http.StatusInternalServerError
		}
		if answer.Retryable() {
			code = http.StatusServiceUnavailable
		}
	}
	text = answer.Error()
	switch answer.Reason {
	case reasons.DiskFull:
		text = diskFullText
	case reasons.TakenOver: // old workers send it again
		text = "another sender delivers this result (TAKEN_OVER): send it again; the content that is complete first stays"
	}
	return code, text, answer.RetryAfter
}

// answerFailure ends a request with the result of failure, and returns the code.
func answerFailure(w http.ResponseWriter, err error) int {
	code, text, retryAfter := failure(err)
	if retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	}
	refuse(w, code, text)
	return code
}

// body reads a request's body with a size limit. The listener disconnects a slow sender.
type body struct {
	from    io.Reader
	chunked bool
	limit   int64 // 0: no limit
	total   int64
	count   func(int)
}

// Read implements io.Reader. Its errors are errStalled, errTooLarge, errMalformed, and those of the connection.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.total += int64(n)
	b.count(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, errStalled
	}
	if b.limit > 0 && b.total > b.limit {
		return n, errTooLarge
	}
	if b.chunked && isChunkError(err) {
		return n, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return n, err
}

// chunkErrors are the texts of net/http's errors about the encoding of chunks, which it does not export.
var chunkErrors = map[string]bool{
	"malformed chunked encoding":                  true,
	"chunked line ends with bare LF":              true,
	"invalid CR in chunked line":                  true,
	"empty hex number for chunk length":           true,
	"invalid byte in chunk length":                true,
	"http chunk length too large":                 true,
	"chunked encoding contains too much non-data": true,
}

// isChunkError returns true for an error of net/http about the encoding of chunks. Other errors, also that of an
// incomplete trailer, may come from a connection that was cut: old workers repeat the request only if it is not 4xx.
func isChunkError(err error) bool {
	var trailer textproto.ProtocolError
	return err != nil && (errors.Is(err, http.ErrLineTooLong) || errors.As(err, &trailer) || chunkErrors[err.Error()])
}

// refuse ends a request whose body is not needed with `answer`. A small body is read before, so that the connection is
// used again. The rest of a large one is read after the answer: a client that is disconnected while it sends would treat
// that as a transport error, and send everything again.
func (b *body) refuse(w http.ResponseWriter, r *http.Request, answer func()) {
	if b.awaited(r) {
		answer()
		return
	}
	control, first := http.NewResponseController(w), limits.DrainFirst
	early := r.ProtoMajor == 1 && control.EnableFullDuplex() == nil
	switch {
	case !early:
		first = limits.DrainBytes
	case r.ContentLength > first:
		first = 0
	}
	err := b.drain(control, first)
	if !errors.Is(err, io.EOF) {
		w.Header().Set("Connection", "close")
	}
	answer()
	if err == nil && early && control.Flush() == nil {
		_ = b.drain(control, limits.DrainBytes)
	}
}

// awaited reports whether the client waits for 100 Continue before it sends.
func (b *body) awaited(r *http.Request) bool { return r.Header.Get("Expect") != "" && b.total == 0 }

// drain reads the rest of the body, but not much more than `most` bytes. It returns io.EOF at the end, and nil if more
// may follow.
func (b *body) drain(control *http.ResponseController, most int64) error {
	b.limit = 0
	deadline, buffer := time.Now().Add(limits.DrainTime), make([]byte, 32<<10)
	for read := int64(0); most > 0 && read <= most && time.Now().Before(deadline); {
		_ = control.SetReadDeadline(time.Now().Add(limits.DrainSilence))
		n, err := b.Read(buffer)
		read += int64(n)
		if err != nil {
			_ = control.SetReadDeadline(time.Time{})
			return err
		}
	}
	return nil
}
