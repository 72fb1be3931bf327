package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"muster.example/testing/fleet"
)

// reasonInText finds the reason in the error lines of a program.
var reasonInText = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)

// http2To opens a connection to send frames that no library sends; `as` nil: without a certificate.
func (w *limited) http2To(listener string, as *fleet.Operator, settings ...http2.Setting) (net.Conn, *http2.Framer) {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	if as != nil {
		config.Certificates = []tls.Certificate{must(tls.X509KeyPair([]byte(as.Certificate), []byte(as.Key)))(w.t)}
	}
	conn := must(tls.Dial("tcp", w.callers.listeners[listener], config))(w.t)
	w.t.Cleanup(func() { conn.Close() })
	_, err := conn.Write([]byte(http2.ClientPreface))
	framer := http2.NewFramer(conn, conn)
	check(w.t, errors.Join(err, framer.WriteSettings(settings...), conn.SetDeadline(time.Now().Add(soon))))
	return conn, framer
}

// settle returns when each side has acknowledged the settings of the other.
func settle(framer *http2.Framer) error {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = errors.Join(framer.WriteSettingsAck(), framer.WritePing(false, [8]byte{}))
			}
		case *http2.PingFrame:
			if frame.IsAck() { // the server has read our acknowledgement
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// floodStreams opens more streams on one connection than the settings allow.
func (w *limited) floodStreams() string {
	_, framer := w.http2To(joinListener, nil)
	check(w.t, settle(framer))
	calls := newCallWriter(framer)
	for range 64 {
		if _, err := calls.begin("/muster.v1.JoinService/Join"); err != nil {
			break
		}
	}
	for {
		frame, err := framer.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return ""
		} else if err != nil {
			return "connection closed"
		} else if _, is := frame.(*http2.GoAwayFrame); is {
			return "connection closed"
		}
	}
}

// closes reports whether the server closes a connection within a time.
func closes(conn net.Conn, within time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	buffer := make([]byte, 1<<12)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// floodConnections opens more connections from one address than it may have, and leaves them silent.
func (w *limited) floodConnections() string {
	const count, limit = 300, 256
	closed := func() float64 {
		return counted(w.t, w.fleet, "aggregator", `muster_rpc_closed_connections_total{reason="too_many"}`)
	}
	before := closed()
	for range count {
		conn, err := net.Dial("tcp", w.callers.listeners[joinListener])
		if err != nil {
			return ""
		}
		w.t.Cleanup(func() { conn.Close() })
	}
	until(w.t, "the connections over the limit are closed", func() bool { return closed() >= before+count-limit })
	return "connection closed"
}

// connections counts the connections of a gRPC client.
type connections struct {
	stats.Handler
	begun atomic.Int32
}

func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c *connections) HandleRPC(context.Context, stats.RPCStats)                         {}
func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *connections) HandleConn(_ context.Context, event stats.ConnStats) {
	if _, begins := event.(*stats.ConnBegin); begins {
		c.begun.Add(1)
	}
}

// startSlow starts the scenarios that are refused by time, beside the others.
func (w *limited) startSlow() map[string]chan string {
	slow := map[string]chan string{}
	start := func(row string, wait func() string) {
		ended := make(chan string, 1)
		slow[row] = ended
		go func() { ended <- wait() }()
	}
	silent := func(address, refusal string) func() string {
		conn := must(net.Dial("tcp", address))(w.t)
		w.t.Cleanup(func() { conn.Close() })
		return func() string {
			if !closes(conn, 2*soon) {
				return ""
			}
			return refusal
		}
	}
	start("TLS handshake", silent(w.callers.listeners[aggregatorListener], "connection closed"))
	gateway := w.callers.listeners[gatewayListener]
	start("time to a client's first TLS message", silent(gateway, "a closed connection"))
	head := must(tls.Dial("tcp", gateway, w.https("Operator").Transport.(*http.Transport).TLSClientConfig))(w.t)
	w.t.Cleanup(func() { head.Close() })
	_, err := head.Write([]byte("GET /api/v1/runs HTTP/1.1\r\nHost: x\r\n"))
	check(w.t, err)
	start("time of a request's head", func() string {
		if !closes(head, 2*soon) {
			return ""
		}
		return "a closed connection"
	})
	start("time of a TLS handshake", w.stalledHandshake(gateway))
	start("stalled upload stream", w.stallUpload())
	idle, _ := w.http2To(joinListener, nil)
	start("idle connection", func() string {
		if !closes(idle, 2*soon) {
			return ""
		}
		return "the connection is closed"
	})
	upload := opening(w.dialNode(aggregatorListener), "/muster.v1.ResultService/Upload", func(int) proto.Message { return nil })
	start("first message of a stream", func() string {
		stream, err := upload(w.ctx, 0)
		if err == nil {
			err = stream.RecvMsg(&[]byte{})
		}
		return refusalOf(err)
	})
	counted := &connections{}
	busy := must(w.callers.operator.Dial(w.callers.listeners[joinListener], "", "", grpc.WithStatsHandler(counted)))(w.t)
	w.t.Cleanup(func() { busy.Close() })
	start("age of a connection without a certificate", func() string {
		for end := time.Now().Add(2 * soon); time.Now().Before(end); time.Sleep(time.Second) {
			_ = busy.Invoke(w.ctx, "/grpc.health.v1.Health/Check", &[]byte{}, &[]byte{}, grpc.ForceCodec(rawCodec{}))
			if counted.begun.Load() > 1 {
				return "the connection is closed"
			}
		}
		return ""
	})
	return slow
}

// https returns a client of the gateway of a role.
func (w *limited) https(role string) *http.Client {
	client := must(w.callers.operator.HTTP())(w.t)
	chain, key := w.callers.issue(w.t, role)
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{must(tls.X509KeyPair([]byte(chain), []byte(key)))(w.t)}
	w.t.Cleanup(client.CloseIdleConnections)
	return client
}

// httpRefusal is the refusal of an HTTP request.
type httpRefusal string

func (r httpRefusal) Error() string { return string(r) }

func errorOfCode(code int, err error) error {
	if err == nil && code >= 300 {
		err = httpRefusal(fmt.Sprint(code))
	}
	return err
}

// request sends a request to the gateway.
func (w *limited) request(ctx context.Context, client *http.Client, method, path, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, w.callers.operator.Gateway[0]+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return refusalOfResponse(response)
}

// refusalOfResponse reads a response; a refusal is its reason, or its code.
func refusalOfResponse(response *http.Response) error {
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body) // a connection with an unread body would be closed
	if err != nil {
		return err
	}
	var answer struct{ Reason string }
	if json.Unmarshal(content, &answer) == nil && answer.Reason != "" {
		return httpRefusal(answer.Reason)
	}
	return errorOfCode(response.StatusCode, nil)
}
