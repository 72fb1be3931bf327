package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

const (
	aNode      = "spiffe://" + mustertest.Domain + "/node/n1"
	anOperator = "spiffe://" + mustertest.Domain + "/user/alice"
)

// beginFor begins a request of an identity.
func beginFor(q *Requests, uri string, stream bool, ctx context.Context) (end func(), ok bool, answer *httptest.ResponseRecorder) {
	answer = httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil).WithContext(fleet.WithIdentity(ctx, uri))
	end, ok = q.Begin(answer, r, stream)
	return end, ok, answer
}

func TestRequestsAboveRateWait(t *testing.T) {
	for uri, rate := range map[string]int{aNode: limits.RequestsOfNode, anOperator: limits.RequestsOfOther} {
		synctest.Test(t, func(t *testing.T) {
			q, started := NewRequests(inspect.NewMetrics()), time.Now()
			for range 4 * rate { // those of a burst are not delayed
				end, ok, _ := beginFor(q, uri, false, t.Context())
				if !ok {
					t.Fatal("a request is refused")
				}
				end()
			}
			if took := time.Since(started); took != 4*time.Second-burst {
				t.Errorf("%s: %v", uri, took)
			}
			if end, ok, _ := beginFor(q, uri+"2", false, t.Context()); !ok || time.Since(started) != 4*time.Second-burst {
				t.Error("another identity waits")
			} else {
				end()
			}
		})
	}
}

func TestStreamsCountAsSeveralRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, started := NewRequests(inspect.NewMetrics()), time.Now()
		for range 2 * limits.RequestsOfNode / limits.RequestsOfStream {
			beginFor(q, aNode, true, t.Context())
		}
		if took := time.Since(started); took != 2*time.Second-burst {
			t.Errorf("%v", took)
		}
	})
}

func TestRequestsInProgressAreBounded(t *testing.T) {
	for uri, most := range map[string]int{aNode: limits.RequestsInProgressOfNode, anOperator: limits.RequestsInProgressOfOther} {
		q := NewRequests(inspect.NewMetrics())
		var end func()
		for range most {
			var ok bool
			if end, ok, _ = beginFor(q, uri, false, t.Context()); !ok {
				t.Fatal("a request is refused")
			}
		}
		_, ok, answer := beginFor(q, uri, false, t.Context())
		if ok || answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", uri, answer.Code, answer.Body)
		}
		end()
		if _, ok, _ := beginFor(q, uri, false, t.Context()); !ok {
			t.Error("an ended request counts")
		}
	}
}

// A flood of requests that are reset delays later ones of the identity for a bounded time.
func TestResetRequestsDelayLaterOnesBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewRequests(inspect.NewMetrics())
		reset, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 * limits.RequestsOfNode {
			if end, ok, _ := beginFor(q, aNode, false, reset); ok {
				end()
			}
		}
		started := time.Now()
		end, ok, _ := beginFor(q, aNode, false, t.Context())
		if took := time.Since(started); !ok || took > time.Second {
			t.Errorf("%v %v", ok, took)
		} else {
			end()
		}
		if q.callers[aNode].inProgress != 0 {
			t.Error("reset requests are in progress")
		}
	})
}

func TestCallersWithoutRequestsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewRequests(inspect.NewMetrics())
		for i := range 3 * limits.RequestCallers {
			end, _, _ := beginFor(q, aNode+strconv.Itoa(i), false, t.Context())
			end()
			time.Sleep(2 * burst / time.Duration(limits.RequestCallers))
		}
		if len(q.callers) > 2*limits.RequestCallers {
			t.Errorf("%d callers", len(q.callers))
		}
	})
}
