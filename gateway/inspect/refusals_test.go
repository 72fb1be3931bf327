package inspect

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	"muster.example/gateway/logs"
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
		time.Sleep(logs.Interval) // of the fake clock of synctest
		note("other_authority", 1)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "count=1000") {
			t.Errorf("a minute later: %q", got)
		}
	})
}

// A stale client does not hide others.
func TestRefusedCertificatesAreLoggedEach(t *testing.T) {
	var out bytes.Buffer
	m := NewMetrics()
	log := slog.New(slog.NewTextHandler(&out, nil))
	refused := m.RefusedHandshake("run", log)
	remote := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}
	for _, subject := range []string{"spiffe://f/run/a", "spiffe://f/run/b"} {
		for range 2 {
			refused("expired", remote, &listen.RefusedPeer{Subject: subject, Err: errors.New("it has expired")})
			m.RefusedIdentity("run", log, subject, remote.String(), errors.New("it was revoked"))
		}
		for _, want := range []string{"error=\"" + subject + ": it has expired", "msg=\"identity refused\" uri=" + subject} {
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("%q is not logged once:\n%s", want, out.String())
			}
		}
	}
	for i := range 2 * limits.LogCauses {
		m.RefusedIdentity("run", log, strconv.Itoa(i), remote.String(), errors.New("why"))
	}
	// Two of handshakes, one of each distinguished identity, and one of all others.
	if lines := strings.Count(out.String(), "\n"); lines != 2+limits.LogCauses+1 {
		t.Errorf("%d lines", lines)
	}
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
