package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"muster.example/gateway/inspect"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
	"muster.example/services/client/go/mustertest"
)

// echo is a listener that sends back what it receives.
func echo(t *testing.T) (address string) {
	return accept(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
}

// accept calls serve with each connection, and then closes it.
func accept(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

type served struct {
	*Server
	t       *testing.T
	url     string
	metrics *inspect.Metrics
}

func serve(t *testing.T, settings Settings, change ...func(*Server)) *served {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	metrics := inspect.NewMetrics()
	if settings.All == 0 {
		settings.All, settings.Each = 100, 100
	}
	s := New(settings, metrics, log)
	for _, c := range change {
		c(s)
	}
	// With the pace and the deadlines of the real listener.
	server := httptest.NewUnstartedServer(nil)
	server.Config = listen.NewServer(s.Route(http.NotFoundHandler()), nil, log)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(s.Close)
	return &served{s, t, server.URL, metrics}
}

func (s *served) dial(path string, protocols ...string) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if protocols == nil {
		protocols = []string{Subprotocol}
	}
	return websocket.Dial(ctx, s.url+path, &websocket.DialOptions{Subprotocols: protocols})
}

func (s *served) tunnel(path string) *websocket.Conn {
	s.t.Helper()
	conn, _, err := s.dial(path)
	if err != nil {
		s.t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	s.t.Cleanup(func() { conn.CloseNow() })
	return conn
}

// ended reads until the end of a tunnel.
func ended(t *testing.T, conn *websocket.Conn) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		if _, _, err := conn.Read(ctx); err != nil {
			if ctx.Err() != nil {
				t.Error("the tunnel does not end")
			}
			return err
		}
	}
}

func TestBytesPassInBothDirections(t *testing.T) {
	s := serve(t, Settings{Relay: echo(t), Join: accept(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "join") })})
	content := make([]byte, 3<<20)
	_, _ = rand.Read(content)
	ctx := t.Context()
	conn := s.tunnel("/tunnel/relay")
	go func() {
		rest := content
		for _, size := range []int{1, 0, 7, 2 << 20} { // a message may have any size
			_ = conn.Write(ctx, websocket.MessageBinary, rest[:size])
			rest = rest[size:]
		}
		_ = conn.Write(ctx, websocket.MessageBinary, rest)
	}()
	got := make([]byte, len(content))
	if _, err := io.ReadFull(websocket.NetConn(ctx, conn, websocket.MessageBinary), got); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the content differs: %v", err)
	}
	if _, text, err := s.tunnel("/tunnel/join").Read(ctx); err != nil || string(text) != "join" {
		t.Errorf("the other path: %q, %v", text, err)
	}
}

func TestRequestsThatAreNoTunnelsAreAnswered(t *testing.T) {
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	unreachable := closed.Addr().String()
	closed.Close()
	s := serve(t, Settings{Relay: unreachable})
	for _, c := range []struct {
		path      string
		protocols []string
		code      int
		reason    string
	}{
		{"/tunnel/127.0.0.1:22", nil, 404, "PATH_NOT_FOUND"},
		{"/tunnel/relay/", nil, 404, "PATH_NOT_FOUND"},
		{"/tunnel/join", nil, 503, "NO_TUNNELS"},
		{"/tunnel/relay", nil, 503, "TUNNEL_TARGET_UNREACHABLE"},
		{"/tunnel/relay", []string{"other"}, 426, "TUNNEL_EXPECTED"},
	} {
		_, response, err := s.dial(c.path, c.protocols...)
		if err == nil || response == nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		var problem rest.Problem
		_ = json.NewDecoder(response.Body).Decode(&problem)
		if response.StatusCode != c.code || problem.Reason != c.reason {
			t.Errorf("%s: %d %+v, want %d %s", c.path, response.StatusCode, problem, c.code, c.reason)
		}
	}
	response, err := http.Get(s.url + "/tunnel/relay")
	if err != nil || response.StatusCode != http.StatusUpgradeRequired || response.Header.Get("Upgrade") != "websocket" {
		t.Errorf("without an upgrade: %v %v", response, err)
	}
}

// A stranger that opens tunnels without end occupies the share of its address.
func TestTunnelsOfAddressAreBounded(t *testing.T) {
	s := serve(t, Settings{Relay: echo(t), All: 10, Each: 2})
	first := s.tunnel("/tunnel/relay")
	s.tunnel("/tunnel/relay")
	_, response, err := s.dial("/tunnel/relay")
	if err == nil || response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
		t.Fatalf("a third tunnel: %v %v", response, err)
	}
	if body, _ := io.ReadAll(response.Body); !strings.Contains(string(body), "TOO_MANY_TUNNELS") {
		t.Errorf("%s", body)
	}
	if !s.open.Acquire("192.0.2.1/32", 2) || s.open.Acquire("192.0.2.1/32", 1) {
		t.Error("another address has no share of its own")
	}
	first.CloseNow()
	mustertest.Await(t, "a tunnel has ended", func() bool { return s.open.Held() == 3 })
	s.tunnel("/tunnel/relay")
}

func TestTunnelsOfAllAreBounded(t *testing.T) {
	s := serve(t, Settings{Relay: echo(t), All: 1, Each: 2})
	s.tunnel("/tunnel/relay")
	if _, response, err := s.dial("/tunnel/relay"); err == nil || response.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("a second tunnel: %v %v", response, err)
	}
}

func TestSilentTunnelIsClosed(t *testing.T) {
	s := serve(t, Settings{Relay: echo(t)}, func(s *Server) { s.times.first = 50 * time.Millisecond })
	if err := ended(t, s.tunnel("/tunnel/relay")); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("a client that sends nothing: %v", err)
	}
}

func TestIdleTunnelIsClosedThoughItsClientSendsPings(t *testing.T) {
	s := serve(t, Settings{Relay: echo(t)}, func(s *Server) { s.times.idle = 100 * time.Millisecond })
	conn := s.tunnel("/tunnel/relay")
	if err := conn.Write(t.Context(), websocket.MessageBinary, []byte("x")); err != nil {
		t.Fatal(err)
	}
	go func() {
		for conn.Ping(t.Context()) == nil {
		}
	}()
	if err := ended(t, conn); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("an idle tunnel: %v", err)
	}
}

// The gateway reads on only after the client has read: it holds one buffer.
func TestSlowReaderStopsTheRelay(t *testing.T) {
	sent := make(chan int64, 1)
	s := serve(t, Settings{Relay: accept(t, func(conn net.Conn) {
		n, _ := io.Copy(conn, io.LimitReader(zeros{}, 1<<30))
		sent <- n
	})}, func(s *Server) { s.times.first, s.times.idle = time.Second, time.Second })
	s.tunnel("/tunnel/relay") // never reads
	select {
	case n := <-sent: // the tunnel was closed as idle
		if n > 64<<20 {
			t.Errorf("the relay could send %d bytes", n)
		}
	case <-time.After(time.Minute):
		t.Error("the tunnel is still open")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestTextEndsTunnel(t *testing.T) {
	s := serve(t, Settings{Relay: echo(t)})
	conn := s.tunnel("/tunnel/relay")
	if err := conn.Write(t.Context(), websocket.MessageText, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, conn); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("after a text: %v", err)
	}
}

func TestEndOfRelayEndsTunnel(t *testing.T) {
	s := serve(t, Settings{Relay: accept(t, func(net.Conn) {})})
	if err := ended(t, s.tunnel("/tunnel/relay")); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("after the end of the relay: %v", err)
	}
}

func TestStopEndsTunnels(t *testing.T) {
	s := serve(t, Settings{Relay: echo(t)})
	conn := s.tunnel("/tunnel/relay")
	result := make(chan error, 1)
	go func() { result <- ended(t, conn) }()
	s.Close()
	if err := <-result; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("after the stop: %v", err)
	}
	if _, response, err := s.dial("/tunnel/relay"); err == nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a tunnel after the stop: %v %v", response, err)
	}
}
