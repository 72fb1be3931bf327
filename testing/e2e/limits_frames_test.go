package e2e

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"muster.example/testing/fleet"
)

// writeFrame writes one of many frames.
type writeFrame func(framer *http2.Framer, i uint32) error

const (
	firstStream = 1 // of a request whose body is not sent
	openHeaders = 3 // of a request whose headers do not end
)

// ofGateway is the scenario of a limit of frames at the gateway. The reason is that of its metric.
func ofGateway(reason string, write writeFrame) scenario {
	return scenario{service: fleet.Gateway, exhaust: func(w *limited) string {
		return w.flood(gatewayListener, "gateway", `muster_gateway_closed_connections_total{listener="main",reason="`+reason+`"}`, "a closed connection", write)
	}}
}

// ofAggregator is the scenario of a limit of frames at the aggregator.
func ofAggregator(write writeFrame) scenario {
	return scenario{service: fleet.Aggregator, exhaust: func(w *limited) string {
		return w.flood(aggregatorListener, "aggregator", `muster_rpc_closed_connections_total{reason="too_many_frames"}`, "connection closed", write)
	}}
}

// newNode returns a certificate of a node that has made no calls.
func (w *limited) newNode() *fleet.Operator {
	chain, key, err := w.callers.authority.Issue("spiffe://"+w.callers.operator.Fleet+"/node/flood-"+strings.ToLower(rand.Text()),
		time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
	check(w.t, err)
	return &fleet.Operator{Certificate: chain, Key: key}
}

// flood writes frames until the server closes the connection, and returns the refusal if the server has counted why. The
// gateway refuses the identity of a flood for some time, so each is of another node.
func (w *limited) flood(listener, service, series, refusal string, write writeFrame) string {
	before := counted(w.t, w.fleet, service, series)
	conn, framer := w.http2To(listener, w.newNode())
	defer conn.Close()
	check(w.t, settle(framer))
	go func() { _, _ = io.Copy(io.Discard, conn) }() // the answers; until the connection is closed
	framer.AllowIllegalWrites = true
	check(w.t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: firstStream, BlockFragment: headOfRequest, EndHeaders: true}))
	var err error
	for i := range uint32(1_000_000) {
		if err = write(framer, i); err != nil {
			break
		}
	}
	if err == nil {
		w.t.Error("the connection is open")
		return ""
	}
	until(w.t, "the closed connection is counted", func() bool { return counted(w.t, w.fleet, service, series) > before })
	return refusal
}

func writeSettings(f *http2.Framer, _ uint32) error { return f.WriteSettings() }

func writePing(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{}) }

func writeReset(f *http2.Framer, i uint32) error {
	id := 2*i + openHeaders
	return errors.Join(f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headOfRequest, EndHeaders: true}),
		f.WriteRSTStream(id, http2.ErrCodeCancel))
}

func writeHeaders(f *http2.Framer, i uint32) error {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + openHeaders, EndStream: true, EndHeaders: true})
}

func writeSmallData(f *http2.Framer, _ uint32) error { return f.WriteData(firstStream, false, nil) }

func writeWindowUpdate(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1) }

func writePriority(f *http2.Framer, _ uint32) error {
	return f.WritePriority(firstStream, http2.PriorityParam{Weight: 1})
}

// writeContinuation writes empty parts of the headers of a call that never begins.
func writeContinuation(f *http2.Framer, i uint32) error {
	if i == 0 {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: openHeaders, BlockFragment: headOfRequest})
	}
	return f.WriteContinuation(openHeaders, false, nil)
}

// headOfRequest are the headers of a call. The fields are never indexed, so one block serves every connection.
var headOfRequest = func() []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range headersOf("/grpc.health.v1.Health/Check") {
		field.Sensitive = true
		_ = encoder.WriteField(field)
	}
	return block.Bytes()
}()
