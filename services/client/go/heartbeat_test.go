package muster_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/mustertest"
)

// watcher records the calls of onChange.
type watcher struct {
	mu       sync.Mutex
	reported []error
}

func (w *watcher) onChange(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reported = append(w.reported, err)
}

func (w *watcher) all() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]error(nil), w.reported...)
}

func received(a *mustertest.Aggregator, what func(*musterv1.Activity) bool) bool {
	for _, heartbeat := range a.ReceivedHeartbeats() {
		for _, activity := range heartbeat.Activities {
			if what(activity) {
				return true
			}
		}
	}
	return false
}

func phase(p musterv1.Phase) func(*musterv1.Activity) bool {
	return func(a *musterv1.Activity) bool { return a.Phase == p }
}

func TestHeartbeatsHaveIdentityActivityAndFarewell(t *testing.T) {
	w := start(t)
	client := w.client()
	heartbeats := client.StartHeartbeats(nil)
	if client.StartHeartbeats(nil) != heartbeats {
		t.Error("a second one was started")
	}
	heartbeats.SetPhase(muster.PhaseBlocked, "for \xff")
	heartbeats.SetFault(&muster.Fault{Check: muster.CheckTLS, Address: "h:1", Message: "refused", NextStep: "Ask."})
	mustertest.Await(t, "the change", func() bool {
		return received(w.aggregator, func(a *musterv1.Activity) bool {
			return a.Phase == musterv1.Phase_PHASE_BLOCKED && a.Message == "for \uFFFD" &&
				a.Fault.GetCheck() == musterv1.Fault_CHECK_TLS && a.Fault.NextStep == "Ask." && a.Key.Node == "n1"
		})
	})
	first := w.aggregator.ReceivedHeartbeats()[0]
	if first.Node != "n1" || first.InstanceId == "" || first.BootId == "" || first.Sequence < 1 || first.Uptime == nil || first.Time == nil {
		t.Errorf("the first heartbeat is %v", first)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	all := w.aggregator.ReceivedHeartbeats()
	if !all[len(all)-1].Goodbye {
		t.Error("no goodbye")
	}
}

func TestHeartbeatsFollowServerIntervalAndProbes(t *testing.T) {
	w := start(t, func(w *fixture) { w.aggregator.Interval = 250 * time.Millisecond })
	heartbeats := w.client().StartHeartbeats(nil)
	mustertest.Await(t, "five heartbeats", func() bool { return len(w.aggregator.ReceivedHeartbeats()) >= 5 })
	heartbeats.Stop()
	all := w.aggregator.ReceivedHeartbeats()
	for i := range all[1:] {
		if all[i+1].Sequence <= all[i].Sequence || len(all[i+1].Activities) != 0 {
			t.Errorf("heartbeat %d is %v", i+1, all[i+1])
		}
	}

	w = start(t)
	heartbeats = w.client().StartHeartbeats(nil)
	mustertest.Await(t, "the first answer", func() bool { _, ok := heartbeats.ClockOffset(); return ok })
	w.aggregator.Probe()
	mustertest.Await(t, "the answer to a probe", func() bool { return len(w.aggregator.ReceivedHeartbeats()) == 2 })
}

func TestManyChangesAreSentInFewHeartbeats(t *testing.T) {
	w := start(t)
	heartbeats := w.client().StartHeartbeats(nil)
	for range 1000 {
		heartbeats.SetPhase(muster.PhaseWorking, "early")
	}
	heartbeats.SetPhase(muster.PhaseWorking, "last")
	mustertest.Await(t, "the last", func() bool {
		return received(w.aggregator, func(a *musterv1.Activity) bool { return a.Message == "last" })
	})
	if count := len(w.aggregator.ReceivedHeartbeats()); count > 20 {
		t.Errorf("%d heartbeats", count)
	}
}

func TestHeartbeatsReconnect(t *testing.T) {
	w, seen := start(t), &watcher{}
	heartbeats := w.client().StartHeartbeats(seen.onChange)
	mustertest.Await(t, "the first answer", func() bool { _, ok := heartbeats.ClockOffset(); return ok })
	w.aggregator.CloseHeartbeats()
	mustertest.Await(t, "another stream", func() bool { return len(seen.all()) == 2 })
	all := w.aggregator.ReceivedHeartbeats()
	if all[1].InstanceId != all[0].InstanceId || len(all[1].Activities) != 1 || all[1].Sequence <= all[0].Sequence {
		t.Errorf("%v after %v", all[1], all[0])
	}
	if reported := seen.all(); reported[0] == nil || reported[1] != nil || heartbeats.Err() != nil {
		t.Errorf("onChange got %v", reported)
	}
}

func duplicateAgent(t *testing.T) error {
	t.Helper()
	s, err := status.New(codes.Aborted, "another process sends heartbeats").WithDetails(&musterv1.ErrorDetail{Reason: "DUPLICATE_AGENT"})
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

func TestHeartbeatsResumeWhenTheYoungerAgentHasEnded(t *testing.T) {
	refusal, seen := duplicateAgent(t), &watcher{}
	var alone atomic.Bool
	w := start(t, func(w *fixture) {
		w.aggregator.CheckHeartbeat = func(*musterv1.StreamHeartbeatsRequest) error {
			if alone.Load() {
				return nil
			}
			return refusal
		}
	})
	client := w.client()
	client.StartHeartbeats(seen.onChange)
	mustertest.Await(t, "the rejection", func() bool { return len(seen.all()) == 1 })
	var answer *muster.Error
	if !errors.As(seen.all()[0], &answer) || answer.Reason != "DUPLICATE_AGENT" {
		t.Error(seen.all())
	}
	if _, err := client.Submit(t.Context(), &muster.Delivery{Body: strings.NewReader("x")}); err != nil {
		t.Error(err)
	}
	alone.Store(true)
	mustertest.Await(t, "accepted heartbeats", func() bool { return len(seen.all()) == 2 })
	if err := seen.all()[1]; err != nil {
		t.Error(err)
	}
}

func TestServiceWithoutHeartbeatsIsRarelyRetried(t *testing.T) {
	w, seen := start(t, func(w *fixture) { w.aggregator.NoHeartbeats = true }), &watcher{}
	client := w.client()
	client.StartHeartbeats(seen.onChange)
	if _, err := client.Submit(t.Context(), &muster.Delivery{Body: strings.NewReader("x")}); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil || len(seen.all()) != 0 {
		t.Error(err, seen.all())
	}
}

func TestHeartbeatsHavePhasesOfDelivery(t *testing.T) {
	w := start(t)
	w.aggregator.Refuse(run, codes.ResourceExhausted, "TOO_MANY_UPLOADS")
	client := w.client()
	client.StartHeartbeats(nil)
	waiting := make(chan error, 1)
	go func() {
		_, err := client.WaitAndDeliver(t.Context())
		waiting <- err
	}()
	mustertest.Await(t, "waiting", func() bool { return received(w.aggregator, phase(musterv1.Phase_PHASE_WAITING)) })
	w.file("done", []byte(w.file("r", []byte("result"))))
	mustertest.Await(t, "backpressured", func() bool { return received(w.aggregator, phase(musterv1.Phase_PHASE_BACKPRESSURED)) })
	w.aggregator.Admit(run)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

func TestFailedReportIsSentWithNextHeartbeat(t *testing.T) {
	w := start(t)
	w.aggregator.Refuse(run, codes.Unavailable, "STATUS_NOT_READY")
	client := w.client()
	client.StartHeartbeats(nil)
	if err := client.ReportProgress(t.Context(), muster.Key{}, muster.Progress{Message: "half", Completed: 5}); err == nil {
		t.Error("the report succeeded")
	}
	mustertest.Await(t, "the report", func() bool {
		return received(w.aggregator, func(a *musterv1.Activity) bool { return a.GetProgress().GetCompleted() == 5 })
	})
}

func TestReportWithInvalidTextIsSanitized(t *testing.T) {
	w := start(t)
	progress := muster.Progress{Message: "\xff" + strings.Repeat("m", 1<<20), Failures: make([]string, 1000)}
	if err := w.client().ReportProgress(t.Context(), muster.Key{}, progress); err != nil {
		t.Fatal(err)
	}
	if got := w.aggregator.Reports[0]; len(got.Message) > 4100 || !strings.HasPrefix(got.Message, "\uFFFDmm") || len(got.Failures) != 100 {
		t.Errorf("%d bytes, %d failures", len(got.Message), len(got.Failures))
	}
}

// legacyListener is a run's listener for legacy clients that answers with the given codes, then with 200.
func (w *fixture) legacyListener(codes ...int) *requests {
	w.t.Helper()
	seen := &requests{answers: codes}
	server := httptest.NewUnstartedServer(seen)
	authority := w.run.SelfSigned
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{authority.Leaf(w.run.URI("listener"))},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool(),
	}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	chain, key := mustertest.PEM(authority.Leaf(w.run.URI("plugin/p/node/n1")))
	delete(w.config, "grpc_targets")
	delete(w.config, "status_targets")
	w.config["aggregator_url"], w.config["ca_cert"] = server.URL, authority.PEM()
	w.config["client_cert"], w.config["client_key"] = chain, key
	return seen
}

type requests struct {
	mu      sync.Mutex
	answers []int
	paths   []string
}

func (r *requests) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths = append(r.paths, request.Method+" "+request.URL.Path)
	if len(r.answers) > 0 {
		code := r.answers[0]
		r.answers = r.answers[1:]
		http.Error(w, "because", code)
		return
	}
	_, _ = io.WriteString(w, `{"interval_seconds":0.3}`) // the client may have disconnected
}

func (r *requests) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.paths...)
}

func TestHeartbeatsToListenerAreGETs(t *testing.T) {
	w, seen := start(t), &watcher{}
	listener := w.legacyListener()
	heartbeats := w.client().StartHeartbeats(seen.onChange)
	mustertest.Await(t, "three", func() bool { return len(listener.all()) >= 3 })
	if path := listener.all()[2]; path != "GET /api/v1/health/by-node/n1/p" {
		t.Error(path)
	}
	if _, ok := heartbeats.ClockOffset(); !ok || heartbeats.Err() != nil || len(seen.all()) != 0 {
		t.Error(heartbeats.Err(), seen.all())
	}
	heartbeats.Stop()
}

func TestOldListenerIsRarelyRetriedAndRefusalIsReported(t *testing.T) {
	w, seen := start(t), &watcher{}
	listener := w.legacyListener(404)
	client := w.client()
	client.StartHeartbeats(seen.onChange)
	mustertest.Await(t, "one", func() bool { return len(listener.all()) == 1 })
	if err := client.Close(); err != nil || len(seen.all()) != 0 {
		t.Error(err, seen.all())
	}
	w = start(t)
	w.legacyListener(403)
	w.client().StartHeartbeats(seen.onChange)
	mustertest.Await(t, "the refusal", func() bool { return len(seen.all()) == 1 })
	var answer *muster.Error
	if !errors.As(seen.all()[0], &answer) || answer.Reason != "NOT_YOURS" {
		t.Error(seen.all())
	}
}
