package app_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
)

// event is a server-sent event.
type event struct{ kind, id, data string }

// events sends the events of a stream to a channel and closes it with the stream.
func (w *testGateway) events(client *http.Client, path string) <-chan event {
	w.t.Helper()
	return w.eventsUntil(context.Background(), client, path)
}

func (w *testGateway) eventsUntil(ctx context.Context, client *http.Client, path string) <-chan event {
	w.t.Helper()
	request, _ := http.NewRequestWithContext(ctx, "GET", w.page(path), nil)
	request.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" || response.Header.Get("Cache-Control") != "no-store" {
		w.t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	sent := make(chan event, 1000)
	go func() {
		defer close(sent)
		var e event
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.kind = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				if e.kind != "" {
					sent <- e
				}
				e = event{}
			}
		}
	}()
	return sent
}

func next(t *testing.T, from <-chan event) (e event, open bool) {
	t.Helper()
	select {
	case e, open = <-from:
		return e, open
	case <-time.After(20 * time.Second):
		t.Fatal("no event")
		return event{}, false
	}
}

func completed(t *testing.T, e event) int64 {
	t.Helper()
	var got struct {
		Plugins []struct{ Progress struct{ Completed int64 } }
	}
	if err := json.Unmarshal([]byte(e.data), &got); err != nil || e.kind != "status" || len(got.Plugins) < 2 {
		t.Fatalf("%v in %v", err, e)
	}
	return got.Plugins[1].Progress.Completed
}

// With HTTP/2 and HTTP/1.1: every change is sent, simultaneous changes only as the newest, and the stream ends after
// the end of the run.
func TestEventStreamSendsEachChangeUntilRunEnds(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		w, _ := startWithStatus(t)
		client := w.statusClient(viewer(w.runA))
		client.Transport.(*http.Transport).ForceAttemptHTTP2 = http2
		sent := w.events(client, "/status")
		first, _ := next(t, sent)
		if completed(t, first) != 5 || !strings.HasPrefix(first.id, `W/"`) {
			t.Fatalf("%v", first)
		}
		const changes = 300
		status := progressOf(runA)
		for i := range int64(changes) {
			status.Pairs[1].Progress.Completed = 6 + i
			w.aggregator.SetStatus(status)
		}
		count := 0
		for last := int64(5); last != 5+changes; count++ {
			e, open := next(t, sent)
			now := int64(0)
			if open {
				now = completed(t, e)
			}
			if now <= last {
				t.Fatalf("after %d: got event %v", last, e)
			}
			last = now
		}
		if count > changes/10 {
			t.Errorf("%d events for %d changes", count, changes)
		}
		status.State = musterv1.RunState_RUN_STATE_COMPLETE
		w.aggregator.SetStatus(status)
		if e, _ := next(t, sent); !strings.Contains(e.data, `"status":"complete"`) {
			t.Errorf("%v", e)
		}
		if e, _ := next(t, sent); e.kind != "end" {
			t.Errorf("%v", e)
		}
		if e, open := next(t, sent); open {
			t.Errorf("after the end: %v", e)
		}
		mustertest.Await(t, "no watch is open", func() bool { return w.aggregator.Watchers() == 0 && w.metric("event_streams", "") == 0 })
	}
}

func TestEventStreamOfEndedRunHasTwoEvents(t *testing.T) {
	w, _ := startWithStatus(t)
	status := progressOf(runA)
	status.State = musterv1.RunState_RUN_STATE_FAILED
	w.aggregator.SetStatus(status)
	sent := w.events(w.statusClient(viewer(w.runA)), "/status?only=attention")
	first, _ := next(t, sent)
	second, _ := next(t, sent)
	if _, open := next(t, sent); open || !strings.Contains(first.data, `"status":"failed"`) || second.kind != "end" {
		t.Errorf("%v %v", first, second)
	}
}

func TestRefusedEventStreamHasErrorResponse(t *testing.T) {
	w, _ := startWithStatus(t)
	user := w.fleet.Intermediate.Leaf(alice)
	a := call(t, w.statusClient(user), "GET", w.page("/status?run=0000000000000000"), nil, "Accept", "text/event-stream")
	if a.code != 404 || a.header.Get("Content-Type") != "application/json" || decode(t, a.body)["reason"] != "RUN_NOT_FOUND" {
		t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
}

// A client with many streams must not cost the status service as much as many clients.
func TestEventStreamsOfAClientShareOneWatch(t *testing.T) {
	w, _ := startWithStatus(t)
	one := viewer(w.runA)
	ctx, end := context.WithCancel(context.Background())
	var streams []<-chan event
	for _, leaf := range []tls.Certificate{one, one, one, viewer(w.runA)} {
		streams = append(streams, w.eventsUntil(ctx, w.statusClient(leaf), "/status"))
		next(t, streams[len(streams)-1])
	}
	mustertest.Await(t, "two watches are open", func() bool { return w.aggregator.Watchers() == 2 })
	status := progressOf(runA)
	status.Pairs[1].Progress.Completed = 6
	w.aggregator.SetStatus(status)
	for i, sent := range streams {
		if e, _ := next(t, sent); completed(t, e) != 6 {
			t.Errorf("stream %d: %v", i, e)
		}
	}
	if watchers := w.aggregator.Watchers(); watchers != 2 { // all of them have certainly been opened
		t.Errorf("%d watches are open", watchers)
	}
	end()
	mustertest.Await(t, "no watch is open", func() bool { return w.aggregator.Watchers() == 0 })
}

// A client that requests events and does not read them must not block others.
func TestEventStreamWithoutReaderDoesNotBlockOthers(t *testing.T) {
	w, _ := startWithStatus(t)
	leaf := viewer(w.runA)
	conn, err := tls.Dial("tcp", w.gateway.Addresses.Status, &tls.Config{RootCAs: w.fleet.Root.Pool(), Certificates: []tls.Certificate{leaf}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request("GET", "/status", "Accept: text/event-stream\r\n", ""))); err != nil {
		t.Fatal(err)
	}
	mustertest.Await(t, "the stream is open", func() bool { return w.aggregator.Watchers() == 1 })
	sent := w.events(w.statusClient(leaf), "/status")
	next(t, sent)
	status := progressOf(runA)
	status.Pairs[1].Detail = strings.Repeat("x", 200_000)
	for i := range int64(5) {
		status.Pairs[1].Progress.Completed = 6 + i
		w.aggregator.SetStatus(status)
		if e, _ := next(t, sent); completed(t, e) != 6+i {
			t.Fatalf("event %d has %d", i, completed(t, e))
		}
	}
}
