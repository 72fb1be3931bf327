package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// leaveAnswersUnread asks for the status of a large run again and again, and grants no window for the answers.
func (w *limited) leaveAnswersUnread() string {
	request := &musterv1.GetStatusRequest{Run: w.large(), PageSize: 10_000}
	statuses := musterv1.NewStatusServiceClient(w.dial(statusListener, "Operator"))
	until(w.t, "the large run is known", func() bool {
		status, err := statuses.GetStatus(w.ctx, request)
		return err == nil && status.NextPageToken != ""
	})
	chain, key := w.callers.issue(w.t, "Operator") // not the one whose latency is measured
	conn, framer := w.http2To(statusListener, &fleet.Operator{Certificate: chain, Key: key}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	defer conn.Close()
	check(w.t, settle(framer))
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	calls := newCallWriter(framer)
	for i := range 500 {
		id, err := calls.write("/muster.v1.StatusService/GetStatus", request)
		check(w.t, err)
		head := must(headOfStream(framer, id))(w.t)
		for _, field := range head.RegularFields() {
			if field.Name == "grpc-status-details-bin" {
				w.t.Logf("the call %d was refused", i+1)
				return string(reasonInText.Find(must(base64.RawStdEncoding.DecodeString(field.Value))(w.t)))
			}
		}
	}
	return ""
}

// leaveStreamsUnread reads a result again and again, on many streams, and takes only the first message of each.
func (w *limited) leaveStreamsUnread() string {
	const plugin = "p66"
	code, err := put(w.t, must(w.fleet.Export(w.run, plugin, "n1"))(w.t), "n1", strings.Repeat("x", 1<<20))
	check(w.t, errorOfCode(code, err))
	connection := w.dial(aggregatorListener, "Operator", grpc.WithInitialWindowSize(1<<16)) // it would grow, so that the result fits
	defer connection.Close()
	open := opening(connection, "/muster.v1.ResultService/ReadResult",
		func(int) proto.Message { return &musterv1.ReadResultRequest{Key: w.key(plugin)} })
	for i := range 65 {
		stream, err := open(w.ctx, i)
		if err == nil {
			err = stream.RecvMsg(&[]byte{})
		}
		if err != nil {
			w.t.Logf("the stream %d was refused: %v", i+1, err)
			return refusalOf(err)
		}
	}
	return ""
}

// leaveRequestsUnfinished begins more requests than a node may have in progress, and sends no byte of their bodies.
func (w *limited) leaveRequestsUnfinished() string {
	return w.leaveRequestsOf("Node", 5, "/api/v1/runs/"+w.run+"/heartbeats/p0/n1")
}

// leaveBodiesUnfinished sends two large bodies almost to their ends, and another one.
func (w *limited) leaveBodiesUnfinished() string {
	const most, bodies = 16 << 20, 2
	client := w.https("Operator")
	body := `{"title":"` + strings.Repeat("x", most-100)
	for range bodies {
		conn := must(tls.Dial("tcp", w.callers.listeners[gatewayListener], client.Transport.(*http.Transport).TLSClientConfig))(w.t)
		defer conn.Close()
		check(w.t, conn.SetDeadline(time.Now().Add(soon)))
		_, err := fmt.Fprintf(conn, "POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", most, body)
		check(w.t, err)
	}
	until(w.t, "the bodies were read", func() bool {
		return counted(w.t, w.fleet, "gateway", "muster_gateway_body_bytes") >= float64(bodies*(len(body)-4096)) // the end may be buffered
	})
	return refusalOf(w.request(w.ctx, client, "POST", "/api/v1/runs", body))
}
