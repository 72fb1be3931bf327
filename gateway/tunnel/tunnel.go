// Package tunnel serves tunnels of bytes over WebSocket to fixed listeners of the fleet, for agents and relays behind
// proxies that pass no HTTP/2. The mutual TLS of gRPC runs inside: the gateway sees ciphertext, and needs no identity of
// the client.
package tunnel

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
)

// Prefix is the start of the paths that the server serves.
const Prefix = "/tunnel/"

// Subprotocol names the content of the messages: binary ones, each with the next bytes of the connection.
const Subprotocol = "muster.tunnel.v1"

// Settings of the server. A client never names an address.
type Settings struct {
	// Relay and Join are the addresses to which /tunnel/relay and /tunnel/join lead: the gRPC listener of the root relay, and
	// the listener for machines without a certificate. Empty: the path answers NO_TUNNELS.
	Relay, Join string
	// All and Each bound the tunnels of the gateway, and of one address of a client (IPv6: one network /64).
	All, Each int
}

// Server is an http.Handler. Safe for concurrent use.
type Server struct {
	settings Settings
	metrics  *inspect.Metrics
	log      *slog.Logger
	open     limits.Quota
	times    times

	context context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	stopped bool
	serving sync.WaitGroup
}

// times are limits; tests use shorter ones.
type times struct{ connect, first, idle time.Duration }

// New creates a server. Close ends it.
func New(settings Settings, metrics *inspect.Metrics, log *slog.Logger) *Server {
	s := &Server{settings: settings, metrics: metrics, log: log, open: limits.Quota{All: int64(settings.All), Each: int64(settings.Each)},
		times: times{limits.TunnelConnect, limits.TunnelFirst, limits.TunnelIdle}}
	s.context, s.cancel = context.WithCancel(context.Background())
	metrics.Sample("tunnels", "Open tunnels of agents and relays.", func() float64 { return float64(s.open.Held()) })
	return s
}

// Route passes requests below Prefix to the server, and all others to `others`.
func (s *Server) Route(others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, Prefix) {
			s.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// Close ends all tunnels, and waits for them. Their clients connect again.
func (s *Server) Close() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
	s.serving.Wait()
}

// begin registers a tunnel that Close waits for.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.serving.Add(1)
	}
	return !s.stopped
}

// ServeHTTP implements http.Handler: it returns at the end of the tunnel.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, known := map[string]string{Prefix + "relay": s.settings.Relay, Prefix + "join": s.settings.Join}[r.URL.Path]
	switch {
	case !known:
		rest.AnswerProblem(w, http.StatusNotFound, rest.PathNotFound(r.URL.Path, "Tunnels are at /tunnel/relay and /tunnel/join."))
	case target == "":
		rest.AnswerProblem(w, http.StatusServiceUnavailable, rest.NoTunnels())
	case !isUpgrade(r):
		w.Header().Set("Upgrade", "websocket")
		rest.AnswerProblem(w, http.StatusUpgradeRequired, rest.TunnelExpected())
	case !s.begin():
		rest.AnswerProblem(w, http.StatusServiceUnavailable, rest.GatewayStopping())
	default:
		defer s.serving.Done()
		s.serve(w, r, target)
	}
}

// isUpgrade returns whether a request is the first one of a WebSocket with this subprotocol.
func isUpgrade(r *http.Request) bool {
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	for _, list := range r.Header.Values("Sec-WebSocket-Protocol") {
		for _, name := range strings.Split(list, ",") {
			if strings.TrimSpace(name) == Subprotocol {
				return true
			}
		}
	}
	return false
}

// networkOf returns what is counted together: an address, or a network /64 of IPv6.
func networkOf(remote string) string {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	return listen.NetworkOf(address.Addr()).String()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, target string) {
	client := networkOf(r.RemoteAddr)
	if !s.open.Acquire(client, 1) {
		s.metrics.RefusedByLimit(s.log, "tunnels", client, r.RemoteAddr)
		w.Header().Set("Retry-After", "10")
		rest.AnswerProblem(w, http.StatusTooManyRequests, rest.TooManyTunnels(int64(s.settings.Each), int64(s.settings.All)))
		return
	}
	defer s.open.Release(client, 1)
	dialer := net.Dialer{Timeout: s.times.connect}
	relay, err := dialer.DialContext(s.context, "tcp", target)
	if err != nil {
		s.closed("unreachable", r, err)
		rest.AnswerProblem(w, http.StatusServiceUnavailable, rest.TunnelTargetUnreachable())
		return
	}
	defer relay.Close()
	// Programs send no Origin, and a page of another site is refused. Ciphertext does not compress.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		s.closed("refused", r, err)
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1) // a message is passed on as it arrives
	why := s.pass(conn, relay)
	s.closed(why.reason, r, why.err)
}

// closed counts a tunnel that has ended, and logs why.
func (s *Server) closed(reason string, r *http.Request, err error) {
	s.metrics.TunnelsClosed.WithLabelValues(reason).Inc()
	level := slog.LevelInfo
	if reason == "unreachable" {
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, "tunnel closed", "path", r.URL.Path, "remote", r.RemoteAddr, "reason", reason, "cause", err)
}

var (
	errSilent   = errors.New("no byte was sent in either direction for too long")
	errStopping = errors.New("the gateway is stopping")
	errText     = errors.New("the client sent a message that is not binary")
	errRelay    = errors.New("the relay has closed the connection")
)

// end is the end of one direction, or of both: "client", "relay", "protocol", "silent" or "stopping".
type end struct {
	reason string
	err    error
}

// pass copies in both directions until one of them ends, and returns why.
func (s *Server) pass(conn *websocket.Conn, relay net.Conn) end {
	// A context that ends closes the connection without a close frame.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	silent := make(chan struct{}, 1)
	silence := time.AfterFunc(s.times.first, func() { silent <- struct{}{} })
	defer silence.Stop()
	alive := func() {
		if silence.Stop() {
			silence.Reset(s.times.idle)
		}
	}
	ends := make(chan end, 2)
	go func() { ends <- s.receive(ctx, conn, relay, alive) }()
	go func() { ends <- s.send(ctx, conn, relay, alive) }()
	var first end
	left := 2
	select {
	case first = <-ends:
		left = 1
	case <-silent:
		first = end{"silent", errSilent}
	case <-s.context.Done():
		first = end{"stopping", errStopping}
	}
	s.close(conn, first)
	cancel()
	conn.CloseNow()
	relay.Close() // ends a write that waits
	for range left {
		<-ends
	}
	return first
}

// close sends the client a close frame with the reason, unless its connection is broken.
func (s *Server) close(conn *websocket.Conn, why end) {
	switch why.reason {
	case "silent":
		conn.Close(websocket.StatusPolicyViolation, errSilent.Error())
	case "stopping":
		conn.Close(websocket.StatusGoingAway, errStopping.Error())
	case "protocol":
		conn.Close(websocket.StatusUnsupportedData, errText.Error())
	case "relay":
		conn.Close(websocket.StatusNormalClosure, errRelay.Error())
	}
}

// receive passes on what the client sends. Its messages may have any size.
func (s *Server) receive(ctx context.Context, conn *websocket.Conn, relay io.Writer, alive func()) end {
	buffer := make([]byte, limits.TunnelBuffer)
	for {
		kind, message, err := conn.Reader(ctx)
		if err != nil {
			return end{"client", err}
		}
		if kind != websocket.MessageBinary {
			return end{"protocol", errText}
		}
		for {
			n, err := message.Read(buffer)
			if n > 0 {
				if _, err := relay.Write(buffer[:n]); err != nil {
					return end{"relay", err}
				}
				s.metrics.TunnelBytes.WithLabelValues("received").Add(float64(n))
				alive()
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return end{"client", err}
			}
		}
	}
}

// send passes on what the relay sends: each read is a message.
func (s *Server) send(ctx context.Context, conn *websocket.Conn, relay io.Reader, alive func()) end {
	buffer := make([]byte, limits.TunnelBuffer)
	for {
		n, err := relay.Read(buffer)
		if n > 0 {
			if err := conn.Write(ctx, websocket.MessageBinary, buffer[:n]); err != nil {
				return end{"client", err}
			}
			s.metrics.TunnelBytes.WithLabelValues("sent").Add(float64(n))
			alive()
		}
		if err != nil {
			return end{"relay", err}
		}
	}
}
