package logs

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Clients that break their watches do not fill the log.
func TestGRPCErrorsAreLoggedOncePerMinuteAndSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := lines("text", "debug", func(log *slog.Logger) {
			to := NewGRPC(log)
			fail := func(host string, port int) {
				to.Errorf("Failed to send response chunk: %v", fmt.Errorf("write tcp 10.0.0.1:443->%s:%d: broken pipe", host, port))
			}
			for port := range 100 {
				fail("10.0.0.2", 5000+port)
			}
			fail("10.0.0.3", 5000)
			to.Errorf("Failed to marshal response chunk: %v", errors.New("x"))
			to.Warningln("no", "answer")
			time.Sleep(Interval) // of the fake clock of synctest
			fail("10.0.0.2", 6000)
		})
		for i, want := range []string{
			`T DEBUG gRPC: Failed to send response chunk count=1 error="write tcp 10.0.0.1:443->10.0.0.2:5000: broken pipe"`,
			`T DEBUG gRPC: Failed to send response chunk count=1 error="write tcp 10.0.0.1:443->10.0.0.3:5000: broken pipe"`,
			`T WARN  gRPC: Failed to marshal response chunk count=1 error=x`,
			`T DEBUG gRPC: no answer count=1`,
			`T DEBUG gRPC: Failed to send response chunk count=100 error="write tcp 10.0.0.1:443->10.0.0.2:6000: broken pipe"`,
		} {
			if i >= len(got) || got[i] != want {
				t.Errorf("line %d of %d: got %q, want %q", i, len(got), strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), want)
			}
		}
		if len(got) != 5 {
			t.Errorf("%d lines", len(got))
		}
	})
}

func TestBrokenReadersAreNotLoggedAtInfo(t *testing.T) {
	got := lines("text", "info", func(log *slog.Logger) {
		to := NewGRPC(log)
		to.Errorf("Failed to flush response to client: %v", errors.New("http2: stream closed"))
		to.Info("connected")
		to.Error("unexpected")
	})
	if len(got) != 1 || got[0] != "T WARN  gRPC: unexpected count=1" {
		t.Errorf("%q", got)
	}
}
