package inspect

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A stale client may dial for hours: one line a minute for each reason is logged, and every refusal is counted.
func TestRefusalsAreLoggedOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		refused := NewMetrics().RefusedHandshake("main", slog.New(slog.NewTextHandler(&out, nil)))
		remote := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}
		note := func(reason string, times int) {
			for range times {
				refused(reason, remote, errors.New("why"))
			}
		}
		lines := func() []string {
			defer out.Reset()
			return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		}
		note("other_authority", 1000)
		note("no_name", 1)
		got := lines()
		if len(got) != 2 || !strings.Contains(got[0], "reason=other_authority remote=10.0.0.1:5 count=1 error=why") ||
			!strings.Contains(got[1], "reason=no_name") {
			t.Errorf("first: %q", got)
		}
		time.Sleep(refusalInterval) // of the fake clock of synctest
		note("other_authority", 1)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "count=1000") {
			t.Errorf("a minute later: %q", got)
		}
	})
}

// Health checks connect and close.
func TestConnectionsThatWentAwayAreLoggedAtDebug(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		var out bytes.Buffer
		refused := NewMetrics().RefusedHandshake("main", slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		for _, reason := range []string{"gone", "timeout"} {
			refused(reason, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}, errors.New("EOF"))
			if logged := strings.Contains(out.String(), "level=DEBUG msg=\"connection refused\" reason="+reason); logged != (level == slog.LevelDebug) {
				t.Errorf("%s at level %s: %q", reason, level, out.String())
			}
			if level == slog.LevelInfo && out.Len() > 0 {
				t.Errorf("%s is logged: %q", reason, out.String())
			}
		}
	}
}
