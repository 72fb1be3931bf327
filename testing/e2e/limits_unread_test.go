package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// leaveAnswersUnread asks for a large run again and again, and grants no window for the answers.
func (w *limited) leaveAnswersUnread() string {
	conn, framer := w.http2To(aggregatorListener, w.callers.operator, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	defer conn.Close()
	check(w.t, settle(framer))
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	calls, request := newCallWriter(framer), &musterv1.GetRunRequest{Run: w.large()}
	for i := range 500 {
		id, err := calls.write("/muster.v1.RunService/GetRun", request)
		check(w.t, err)
		head := must(headOfStream(framer, id))(w.t)
		for _, field := range head.RegularFields() {
			if field.Name == "grpc-message" && field.Value != "" {
				w.t.Logf("the call %d was refused: %s", i+1, field.Value)
				return reasonInText.FindString(field.Value)
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
	open := opening(w.dial(aggregatorListener, "Operator"), "/muster.v1.ResultService/ReadResult",
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

// burstOfRequests sends more requests together than begin in a second and may wait.
func (w *limited) burstOfRequests() string {
	client := w.https("Node")
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true // 64 streams on a connection
	const count = 1200
	refusals := make(chan error, count)
	var requests sync.WaitGroup
	for range count {
		requests.Go(func() { refusals <- w.request(w.ctx, client, "GET", "/api/v1/runs/"+w.run, "") })
	}
	requests.Wait()
	close(refusals)
	for err := range refusals {
		if why := refusalOf(err); why != "" {
			return why
		}
	}
	return ""
}

// leaveBodiesUnfinished sends two large bodies almost to their ends, and another one.
func (w *limited) leaveBodiesUnfinished() string {
	const most, identity = 16 << 20, 2
	client := w.https("Operator")
	body := `{"title":"` + strings.Repeat("x", most-100)
	for range identity {
		conn := must(tls.Dial("tcp", w.callers.listeners[gatewayListener], client.Transport.(*http.Transport).TLSClientConfig))(w.t)
		defer conn.Close()
		check(w.t, conn.SetDeadline(time.Now().Add(soon)))
		_, err := fmt.Fprintf(conn, "POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", most, body)
		check(w.t, err)
	}
	until(w.t, "the bodies were read", func() bool {
		return counted(w.t, w.fleet, "gateway", "muster_gateway_body_bytes") >= float64(identity*(len(body)-4096)) // the end may be buffered
	})
	return refusalOf(w.request(w.ctx, client, "POST", "/api/v1/runs", body))
}
