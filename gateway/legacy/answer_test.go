package legacy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"muster.example/services/client/go"
)

func TestSplitExtensionUsesPlannedNames(t *testing.T) {
	plugins := map[string]bool{"p": true, "p.json": true, "a.b": true}
	for name, want := range map[string][2]string{
		"p": {"p", ""}, "p.tar.gz": {"p", ".tar.gz"}, "p.json": {"p.json", ""}, "p.json.gz": {"p", ".json.gz"},
		"a.b": {"a.b", ""}, "a.b.gz": {"a.b.gz", ""}, "q.gz": {"q.gz", ""}, ".gz": {".gz", ""},
	} {
		plugin, extension := splitExtension(name, func(p string) bool { return plugins[p] })
		if plugin != want[0] || extension != want[1] {
			t.Errorf("%s: %q %q", name, plugin, extension)
		}
	}
}

// Old workers treat 200 as success, retry after 5xx, and give up otherwise: no error may be answered with a success, a
// redirect, or 429.
func TestEveryErrorMapsToCode(t *testing.T) {
	answer := func(code, reason string) error { return &muster.Error{Code: code, Reason: reason, Message: "m"} }
	for _, c := range []struct {
		err  error
		code int
	}{
		{errTooLarge, 413}, {&muster.BodyError{Err: errTooLarge}, 413},
		{&muster.BodyError{Err: errStalled}, 503}, {&muster.BodyError{Err: os.ErrDeadlineExceeded}, 503},
		{&muster.BodyError{Err: io.ErrUnexpectedEOF}, 500}, {&muster.LostError{Wanted: 1, Kept: 2}, 503},
		{context.Canceled, 503}, {errors.New("unknown"), 500},
		{answer("ALREADY_EXISTS", "RESULT_CONFLICT"), 409},
		{answer("FAILED_PRECONDITION", "RUN_SEALED"), 410}, {answer("FAILED_PRECONDITION", "RUN_CANCELLED"), 410},
		{answer("NOT_FOUND", "RUN_NOT_FOUND"), 410}, {answer("FAILED_PRECONDITION", "SOMETHING_NEW"), 500},
		{answer("PERMISSION_DENIED", "PAIR_NOT_PLANNED"), 403}, {answer("PERMISSION_DENIED", "NOT_YOURS"), 403},
		{answer("PERMISSION_DENIED", "SOMETHING_NEW"), 403}, {answer("UNAUTHENTICATED", ""), 403},
		{answer("INVALID_ARGUMENT", "SOMETHING_NEW"), 400}, {answer("INVALID_ARGUMENT", "RESULT_TOO_LARGE"), 413},
		{answer("RESOURCE_EXHAUSTED", "DISK_FULL"), 507}, {answer("RESOURCE_EXHAUSTED", "TOO_MANY_UPLOADS"), 503},
		{answer("UNAVAILABLE", ""), 503}, {answer("INTERNAL", ""), 503}, {answer("INTERNAL", "STORE_FAILED"), 500},
		{answer("ABORTED", "TAKEN_OVER"), 503}, {answer("DATA_LOSS", "CRC_MISMATCH"), 503},
		{answer("DATA_LOSS", "DIGEST_MISMATCH"), 503}, {answer("DATA_LOSS", "SIZE_MISMATCH"), 503},
		{answer("UNIMPLEMENTED", ""), 500},
	} {
		code, text, _ := failure(fmt.Errorf("delivering: %w", c.err))
		if code != c.code || text == "" {
			t.Errorf("%v: %d %q, want %d", c.err, code, text, c.code)
		}
	}
}

// The client's text has a next step and no server paths.
func TestFullDiskAnswerHidesServerPath(t *testing.T) {
	code, text, retryAfter := failure(&muster.Error{Code: "RESOURCE_EXHAUSTED", Reason: "DISK_FULL",
		Message: "write /srv/muster/aggregator/staged/1: No space left on device", RetryAfter: 30 * time.Second})
	if code != 507 || strings.Contains(text, "/srv") || !strings.Contains(text, "DISK_FULL") || !strings.Contains(text, "free space") ||
		retryAfter != 30*time.Second {
		t.Errorf("%d %q, retry after %v", code, text, retryAfter)
	}
}

func TestRetryAfterIsRoundedUpToSeconds(t *testing.T) {
	w := httptest.NewRecorder()
	code := answerFailure(w, &muster.Error{Code: "UNAVAILABLE", Message: "two\nlines", RetryAfter: 1500 * time.Millisecond})
	if code != 503 || w.Code != 503 || w.Header().Get("Retry-After") != "2" || w.Body.String() != "two lines (UNAVAILABLE)\n" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}
