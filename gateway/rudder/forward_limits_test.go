package rudder

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

// startBelow starts a relay whose policy server is this handler. Nil: it accepts connections and answers nothing.
func startBelow(t *testing.T, policyServer http.HandlerFunc) *testRelay {
	t.Helper()
	s := start(t, "r1", "127.0.0.2", 0, listOf("n-c c.example r1", "n-d d.example r1"), extended, withUpstream("root", "127.0.0.1"),
		withCertificates("n-c", "n-d"))
	port := mustertest.ReservePort(t, "127.0.0.1", s.config.HTTPSPort)
	socket, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	if policyServer != nil {
		server := &http.Server{Handler: policyServer, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
		t.Cleanup(func() { server.Close() })
		go server.Serve(tls.NewListener(socket, &tls.Config{Certificates: []tls.Certificate{identityOf("root").certificate}}))
	}
	return s
}

func TestForwardingToSilentPolicyServerEnds(t *testing.T) {
	before := limits.Forwarding
	limits.Forwarding = 50 * time.Millisecond
	t.Cleanup(func() { limits.Forwarding = before }) // after the relay has ended
	s := startBelow(t, nil)
	u := s.uploadOf(s.share("n-e", "n-c", "file", content))
	mustertest.Await(t, "there was a retry", func() bool { return s.awaitState(u.ID, statePending).Tries > 1 })
	if why := s.awaitState(u.ID, statePending).Reason; !strings.Contains(why, "deadline exceeded") {
		t.Error(why)
	}
}

func TestReasonOfPolicyServerIsCut(t *testing.T) {
	long := strings.Repeat("x", 10*int(limits.PeerReason))
	for code, state := range map[int]string{http.StatusInternalServerError: statePending, http.StatusBadRequest: stateRefused} {
		s := startBelow(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Error(w, long, code)
		})
		id := s.uploadOf(s.share("n-e", "n-c", "file", content)).ID
		var u *upload
		mustertest.Await(t, "there is a reason", func() bool {
			u = s.awaitState(id, state)
			return u.Reason != ""
		})
		if count := strings.Count(u.Reason, "x"); count != int(limits.PeerReason) {
			t.Errorf("%d: %d bytes of %q", code, count, u.Reason)
		}
		s.stop()
	}
}

func TestReasonOfChildRelayIsCut(t *testing.T) {
	child := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("x", 10*int(limits.PeerReason)), http.StatusInternalServerError)
	}))
	t.Cleanup(child.Close)
	s := start(t, "root", "127.0.0.1", 0, listOf("n-a a.example root"))
	request, err := http.NewRequestWithContext(t.Context(), "POST", child.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = s.server.ask(child.Client(), request, &remoteRun{}, limits.RunLine, func([]byte) bool { return true })
	if err == nil || strings.Count(err.Error(), "x") != int(limits.PeerReason) {
		t.Error(err)
	}
}

// An upload waits for its turn; without one it is not forwarded.
func TestUploadsAndRequestsOfOutcomesWaitForTheirTurn(t *testing.T) {
	s := start(t, "r1", "127.0.0.2", 0, listOf("n-c c.example r1"), extended)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		upload *upload
		turns  chan struct{}
		limit  int
	}{{&upload{}, s.server.senders, limits.Senders}, {&upload{UpstreamID: "u1"}, s.server.askers, limits.Askers}} {
		for range c.limit {
			select {
			case c.turns <- struct{}{}:
			default:
				t.Fatalf("fewer than %d turns", c.limit)
			}
		}
		if s.server.forward(ended, c.upload) || c.upload.Tries != 0 {
			t.Errorf("it is forwarded although %d others are: %+v", c.limit, c.upload)
		}
		for range c.limit {
			<-c.turns
		}
	}
}

// meter counts the bytes of an endless body that are read.
type meter int64

func (m *meter) Read(into []byte) (int, error) {
	*m += meter(len(into))
	return len(into), nil
}

func TestRefusedUploadIsReadUpToItsLimit(t *testing.T) {
	s := start(t, "r1", "127.0.0.2", 0, listOf("n-c c.example r1"))
	var read meter
	s.server.drain(httptest.NewRecorder(), httptest.NewRequest("PUT", "/", &read))
	if int64(read) != limits.RudderDrain {
		t.Errorf("%d bytes are read", read)
	}
}
