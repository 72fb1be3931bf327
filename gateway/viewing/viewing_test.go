package viewing

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
)

// Links expire after a minute, sessions after half a day or with the certificate of their operator.
func TestLinksAndSessionsExpire(t *testing.T) {
	now := time.Now()
	s := NewSessions("https://h:1/")
	s.now = func() time.Time { return now }
	open := func(notAfter time.Time, wait time.Duration) string {
		address, life := s.New(&x509.Certificate{NotAfter: notAfter}, peer.Identity{})
		link, err := url.Parse(address)
		if err != nil || life != time.Minute || !strings.HasPrefix(address, "https://h:1/login?token=") {
			t.Fatal(address, life, err)
		}
		now = now.Add(wait)
		return s.Open(link.Query().Get("token"))
	}
	holds := func(session string) bool {
		request := httptest.NewRequest("GET", "/", nil)
		request.AddCookie(&http.Cookie{Name: cookieName, Value: session})
		return s.of(request) != nil
	}
	if open(now.Add(24*time.Hour), time.Minute+time.Second) != "" {
		t.Error("a link older than a minute is accepted")
	}
	long := open(now.Add(24*time.Hour), time.Minute-time.Second)
	short := open(now.Add(time.Hour), time.Second)
	if !holds(long) || !holds(short) {
		t.Error("no sessions")
	}
	now = now.Add(time.Hour)
	if !holds(long) || holds(short) {
		t.Error("a session outlives the certificate, or ends with another's")
	}
	now = now.Add(11 * time.Hour)
	if holds(long) {
		t.Error("a session lasts for more than half a day")
	}
}

// silentStatus is a status service whose calls fail, or never return.
type silentStatus struct {
	grpc.ClientConnInterface
	failure error
}

func (s silentStatus) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	if s.failure != nil {
		return s.failure
	}
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func TestSilentStatusServiceIsReported(t *testing.T) {
	for _, c := range []struct {
		query, message, reason string
		failure                error
	}{
		{"", "the status service is slow: no answer within 15s", "STATUS_SLOW", nil},
		{"?only=attention", "the status service is slow: no answer within 15s", "STATUS_SLOW", nil},
		{"", "the gateway has no answer of the status service: handshake failed", "STATUS_UNREACHABLE", status.Error(codes.Unavailable, "handshake failed")},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Settings{}, silentStatus{failure: c.failure}, nil, nil, rest.NewWatches(inspect.NewMetrics()), nil, nil, inspect.NewMetrics(), slog.New(slog.DiscardHandler))
			answer := httptest.NewRecorder()
			s.serveStatus(answer, httptest.NewRequest("GET", "/status"+c.query, nil), "")
			if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), c.message) ||
				!strings.Contains(answer.Body.String(), c.reason) {
				t.Error(c, answer.Code, answer.Body)
			}
		})
	}
}

func TestNumberOfLinksIsBounded(t *testing.T) {
	s := NewSessions("https://h")
	for i := range limits.Sessions {
		s.links[fmt.Sprint(i)] = caller{until: s.now().Add(time.Hour + time.Duration(i))}
	}
	s.New(&x509.Certificate{}, peer.Identity{})
	if _, first := s.links["0"]; len(s.links) != limits.Sessions || first {
		t.Errorf("%d links are kept, the oldest too: %v", len(s.links), first)
	}
}

// busy is a status service with one run of many pairs that changes continuously.
type busy struct {
	musterv1.StatusServiceClient
	status *musterv1.RunStatus
	ended  chan struct{}     // closed when a watch ends
	pages  map[string][]byte // encoded, by size and token
}

// Invoke answers GetStatus in pages as the real service does; the token is the position of the next page.
func (b *busy) Invoke(_ context.Context, method string, request, answer any, _ ...grpc.CallOption) error {
	asked := request.(*musterv1.GetStatusRequest)
	if method != musterv1.StatusService_GetStatus_FullMethodName {
		return fmt.Errorf("%s is called", method)
	}
	key := fmt.Sprint(asked.PageSize, " ", asked.PageToken)
	if page := b.pages[key]; page != nil {
		*answer.(*[]byte) = page
		return nil
	}
	first, _ := strconv.Atoi(asked.PageToken)
	last := min(first+int(asked.PageSize), len(b.status.Pairs))
	page := &musterv1.RunStatus{Run: b.status.Run, State: b.status.State, Pairs: b.status.Pairs[first:last]}
	if last < len(b.status.Pairs) {
		page.NextPageToken = strconv.Itoa(last)
	}
	content, err := proto.Marshal(page)
	if b.pages == nil {
		b.pages = map[string][]byte{}
	}
	b.pages[key] = content
	*answer.(*[]byte) = content
	return err
}

func (b *busy) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("streams come from the client")
}

func (b *busy) WatchStatus(ctx context.Context, _ *musterv1.WatchStatusRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[musterv1.WatchStatusResponse], error) {
	context.AfterFunc(ctx, func() { close(b.ended) })
	return &changing{ctx: ctx}, nil
}

type changing struct {
	grpc.ServerStreamingClient[musterv1.WatchStatusResponse]
	ctx context.Context
}

func (c *changing) Recv() (*musterv1.WatchStatusResponse, error) {
	<-c.ctx.Done()
	return nil, c.ctx.Err()
}

// manyPairs returns a run with all usual fields.
func manyPairs(count int) *musterv1.RunStatus {
	status := &musterv1.RunStatus{Run: "00000000000000aa", State: musterv1.RunState_RUN_STATE_RUNNING}
	for i := range count {
		status.Pairs = append(status.Pairs, &musterv1.PairStatus{Plugin: "hostfacts", Node: fmt.Sprintf("node-%06d", i),
			Outcome: musterv1.Outcome_OUTCOME_PENDING, Presence: musterv1.Presence_PRESENCE_ONLINE,
			Reason: musterv1.Reason_REASON_RUNNING, HeartbeatAge: &durationpb.Duration{Seconds: 7},
			Phase: musterv1.Phase_PHASE_WORKING, Progress: &musterv1.Progress{Message: "reading", Total: 10, Completed: 3}})
	}
	return status
}

// With HTTP/1.1 and HTTP/2, as an answer and as events.
func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			service := &busy{status: manyPairs(100_000), ended: make(chan struct{})}
			s := New(Settings{}, service, nil, nil, rest.NewWatches(inspect.NewMetrics()), nil, nil, inspect.NewMetrics(), slog.New(slog.DiscardHandler))
			s.changes = newChanges(service, slog.New(slog.DiscardHandler))
			gone := make(chan struct{})
			server := httptest.NewUnstartedServer(listen.Paced(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				s.serveStatus(w, r, "")
			}), listen.Pace{Window: 200 * time.Millisecond, Bytes: 1 << 20}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			transport := &http.Transport{ForceAttemptHTTP2: http2, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
			request, _ := http.NewRequest("GET", server.URL, nil)
			request.Header.Set("Accept", accept)
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-gone:
			case <-time.After(30 * time.Second):
				t.Fatalf("HTTP/2 %v, %s: it is served for ever", http2, accept)
			}
			if accept == "text/event-stream" {
				<-service.ended
			}
			if n, err := io.Copy(io.Discard, bufio.NewReader(response.Body)); err == nil {
				t.Errorf("HTTP/2 %v, %s: the response ended without an error after %d bytes", http2, accept, n)
			}
			response.Body.Close()
			transport.CloseIdleConnections()
			server.Close()
		}
	}
}

// From the response of the status service to the bytes of the answer; the goal is 150 ms including the calls.
func BenchmarkStatusOf100000Pairs(b *testing.B) {
	s := &Server{connection: &busy{status: manyPairs(100_000)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.fetch(b.Context(), view{}); err != nil {
			b.Fatal(err)
		}
	}
}
