package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// httpScenarios are those of further limits of the gateway, by the text of their row.
var httpScenarios = map[string]scenario{
	"head of a request": {service: fleet.Gateway, exhaust: func(w *limited) string {
		return w.repeated(4, func(ctx context.Context, i int) error {
			return w.request(ctx, w.https("Operator"), "GET", "/api/v1/runs?x="+strings.Repeat("x", 40<<10), "")
		})
	}},
	"JSON of any other request": {service: fleet.Gateway, exhaust: func(w *limited) string {
		client := w.https("Operator")
		return w.repeated(20, func(ctx context.Context, i int) error {
			return w.request(ctx, client, "POST", "/api/v1/runs/"+w.run+"/viewers", `{"csr_pem":"`+strings.Repeat("x", 1<<20)+`"}`)
		})
	}},
	"HTTP/2 streams":                 {service: fleet.Gateway, exhaust: (*limited).openManyStreams},
	"header block as it is sent":     ofGateway("long_headers", writeLargeHeaders),
	"open connections of an address": {service: fleet.Gateway, exhaust: (*limited).connectFromOneAddress},
	"JSON of a new run, job or deployment (operators)": {service: fleet.Gateway, exhaust: func(w *limited) string {
		client := w.https("Operator")
		return w.repeated(1, func(ctx context.Context, i int) error {
			return w.request(ctx, client, "POST", "/api/v1/runs", strings.Repeat(" ", 16<<20+1))
		})
	}},
	"requests in progress of another identity, without watches and event streams": {service: fleet.Gateway, exhaust: func(w *limited) string {
		return w.leaveRequestsOf("Operator", 17, "/api/v1/runs")
	}},
	"downloads of results and archives, of an identity":                          {service: fleet.Gateway, exhaust: (*limited).leaveDownloadsUnread},
	"time in which new connections of a source with too many frames are refused": {service: fleet.Gateway, exhaust: (*limited).connectAfterFlood},
	"time in which the rest of a refused body is read":                           {service: fleet.Gateway, exhaust: (*limited).leaveRefusedBodyUnfinished},
	"bytes of a file name": {service: fleet.Gateway, exhaust: func(w *limited) string {
		stored := w.putWith("r0", "x", "Content-Disposition", "attachment;filename="+strings.Repeat("n", 2000))
		if len(stored.GetFileName()) != 1024 {
			return ""
		}
		return "a shortened name"
	}},
	"bytes of a media type": {service: fleet.Gateway, exhaust: func(w *limited) string {
		stored := w.putWith("r1", "x", "Content-Type", strings.Repeat("t", 256))
		if stored == nil || stored.MediaType != "" {
			return ""
		}
		return "no media type"
	}},
	"error report of an old worker": {service: fleet.Gateway, exhaust: func(w *limited) string {
		stored := w.putWith("r2", `{"error":"`+strings.Repeat("x", 64<<10)+`"}`, "Content-Type", "application/gzip")
		if stored == nil || stored.Error != "" {
			return ""
		}
		return "stored as a result"
	}},
}

// writeLargeHeaders writes one frame with headers that do not end.
func writeLargeHeaders(f *http2.Framer, i uint32) error {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + openHeaders, BlockFragment: make([]byte, 64<<10+1)})
}

// openManyStreams opens one request more than the settings of a connection permit: a library would wait.
func (w *limited) openManyStreams() string {
	const streams = 64
	conn, framer := w.http2To(gatewayListener, w.node)
	defer conn.Close()
	check(w.t, settle(framer))
	calls := newCallWriter(framer)
	var last uint32
	for range streams + 1 {
		last = must(calls.begin("/api/v1/runs/" + w.run + "/heartbeats/p0/n1"))(w.t)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			w.t.Logf("the connection ends: %v", err)
			return ""
		}
		if reset, is := frame.(*http2.RSTStreamFrame); is {
			if reset.StreamID != last {
				w.t.Logf("the stream %d is reset: %v", reset.StreamID, reset.ErrCode)
				return ""
			}
			return "a wait of the client"
		}
	}
}

// connectFromOneAddress opens more silent connections from an address, which no other client has, than it may have.
func (w *limited) connectFromOneAddress() string {
	const count = 1100 // the limit is 1,024
	closed := func() float64 {
		return counted(w.t, w.fleet, "gateway", `muster_gateway_refused_handshakes_total{listener="main",reason="address_limit"}`)
	}
	before := closed()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	for range count {
		conn, err := dialer.DialContext(w.ctx, "tcp", w.callers.listeners[gatewayListener])
		check(w.t, err)
		defer conn.Close()
	}
	until(w.t, "connections over the limit are closed", func() bool { return closed() > before })
	return "a closed connection"
}

// leaveRequestsOf begins requests of a role on some connections, with the most streams of each, and sends no byte of their bodies.
// It returns why another request is refused.
func (w *limited) leaveRequestsOf(role string, connections int, path string) string {
	chain, key := w.callers.issue(w.t, role)
	for range connections {
		conn, framer := w.http2To(gatewayListener, &fleet.Operator{Certificate: chain, Key: key})
		defer conn.Close()
		check(w.t, settle(framer))
		calls := newCallWriter(framer)
		for range 64 {
			_, err := calls.begin(path)
			check(w.t, err)
		}
	}
	client := w.https(role)
	for end := time.Now().Add(soon); time.Now().Before(end); {
		if refusal := refusalOf(w.request(w.ctx, client, "GET", "/api/v1/runs/"+w.run, "")); refusal != "" {
			return refusal
		}
	}
	return ""
}

// leaveDownloadsUnread begins more downloads of a result than an identity may have, and grants no window for their bytes.
func (w *limited) leaveDownloadsUnread() string {
	const plugin, downloads = "r3", 16
	code, err := put(w.t, must(w.fleet.Export(w.second, plugin, "n1"))(w.t), "n1", strings.Repeat("x", 1<<20))
	check(w.t, errorOfCode(code, err))
	path := "/api/v1/runs/" + w.second + "/results/" + plugin + "/n1/content"
	chain, key := w.callers.issue(w.t, "Operator")
	conn, framer := w.http2To(gatewayListener, &fleet.Operator{Certificate: chain, Key: key}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	defer conn.Close()
	check(w.t, settle(framer))
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	calls := newCallWriter(framer)
	for i := range downloads {
		id := must(calls.get(path))(w.t)
		if code := must(headOfStream(framer, id))(w.t).PseudoValue("status"); code != "200" {
			w.t.Logf("the download %d was answered %s", i+1, code)
			return ""
		}
	}
	return refusalOf(w.request(w.ctx, w.https("Operator"), "GET", path, ""))
}

// get writes a request without a body, and returns its stream.
func (c *callWriter) get(path string) (id uint32, err error) {
	c.block.Reset()
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", path}, {":authority", "x"}} {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	id = c.next
	c.next += 2
	return id, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: true})
}

// connectAfterFlood floods a connection, and returns the refusal of the next one.
func (w *limited) connectAfterFlood() string {
	as := w.newNode()
	conn, framer := w.http2To(gatewayListener, as)
	defer conn.Close()
	check(w.t, settle(framer))
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	for writePing(framer, 0) == nil {
	}
	client := w.https("Node")
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{must(tls.X509KeyPair([]byte(as.Certificate), []byte(as.Key)))(w.t)}
	return refusalOf(w.request(w.ctx, client, "GET", "/api/v1/runs/"+w.run, ""))
}

// leaveRefusedBodyUnfinished sends no byte of the body of a request that is refused before its body is read.
func (w *limited) leaveRefusedBodyUnfinished() string {
	conn := must(tls.Dial("tcp", w.callers.listeners[gatewayListener], w.https("Operator").Transport.(*http.Transport).TLSClientConfig))(w.t)
	defer conn.Close()
	_, err := fmt.Fprintf(conn, "POST /api/v1/none HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 1<<20)
	check(w.t, err)
	if !closes(conn, soon) {
		return ""
	}
	return "a closed connection"
}

// putWith delivers a result of n1 as an old worker does, and returns its description as it is stored; nil: it is refused.
func (w *limited) putWith(plugin, body string, header ...string) *musterv1.Result {
	credential := must(w.fleet.Export(w.second, plugin, "n1"))(w.t)
	request := must(http.NewRequestWithContext(w.ctx, "PUT", credential.AggregatorURL+"/api/v1/results/by-node/n1/"+plugin, strings.NewReader(body)))(w.t)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	if code := codeOf(w.t, must(credential.HTTP())(w.t), request); code != http.StatusOK {
		w.t.Logf("the result was answered %d", code)
		return nil
	}
	return operator(w.t, w.fleet).result(w.t, w.second, plugin, "n1")
}

// stalledHandshake sends the first message of TLS, and nothing more.
func (w *limited) stalledHandshake(address string) func() string {
	conn := must(net.Dial("tcp", address))(w.t)
	w.t.Cleanup(func() { conn.Close() })
	stalled := &unread{Conn: conn, closed: make(chan struct{})}
	go func() { _ = tls.Client(stalled, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	w.t.Cleanup(func() { close(stalled.closed) })
	return func() string {
		if !closes(conn, 2*soon) {
			return ""
		}
		return "a closed connection"
	}
}

// unread is a connection whose reads wait until it is closed.
type unread struct {
	net.Conn
	closed chan struct{}
}

// Read implements net.Conn.
func (u *unread) Read([]byte) (int, error) {
	<-u.closed
	return 0, errors.New("closed")
}
