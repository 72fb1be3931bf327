package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	"muster.example/services/client/go/peer"
)

// requestRate is the limit of the requests of an identity.
type requestRate struct {
	interval   time.Duration // between two requests, after those of a burst
	inProgress int
	streamCost int // requests as which one with a stream of a service counts
}

// burst is the time whose requests an identity may send together. They delay those of others by the time that the
// processors need for them.
const burst = time.Second / 5

// rateOf returns the limit of a role. Many machines may send with the credential of a plugin, and operators run scripts.
// The end of a stream may be a reset, of which a service accepts few from the gateway.
func rateOf(id peer.Identity) requestRate {
	switch id.Kind {
	case peer.Node, peer.PluginNode, peer.Viewer:
		return requestRate{time.Second / time.Duration(limits.RequestsOfNode), limits.RequestsInProgressOfNode, limits.RequestsOfStream}
	case peer.User:
		return requestRate{time.Second / time.Duration(limits.RequestsOfOther), limits.RequestsInProgressOfOther, 1}
	}
	return requestRate{time.Second / time.Duration(limits.RequestsOfOther), limits.RequestsInProgressOfOther, limits.RequestsOfStream}
}

// Requests bounds the requests of each identity: those that begin in a second, and those in progress. Requests above the
// rate wait. Safe for concurrent use.
type Requests struct {
	metrics *inspect.Metrics

	mu      sync.Mutex
	callers map[string]*requester
	sweepAt int // callers
}

type requester struct {
	inProgress int
	next       time.Time // the earliest begin of the next request
}

// NewRequests returns one without requests.
func NewRequests(metrics *inspect.Metrics) *Requests {
	return &Requests{metrics: metrics, callers: map[string]*requester{}, sweepAt: limits.RequestCallers}
}

// count counts a request in progress, and returns the time for which it has to wait; false: there are too many.
func (q *Requests) count(holder string, rate requestRate, cost int, now time.Time) (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.callers[holder]
	if c == nil {
		q.sweep(now)
		c = &requester{}
		q.callers[holder] = c
	}
	if c.inProgress >= rate.inProgress {
		return 0, false
	}
	c.inProgress++
	if earliest := now.Add(-burst); c.next.Before(earliest) {
		c.next = earliest
	}
	c.next = c.next.Add(time.Duration(cost) * rate.interval)
	// Requests that were reset while they waited do not delay later ones.
	if latest := now.Add(time.Duration(rate.inProgress) * rate.interval); c.next.After(latest) {
		c.next = latest
	}
	return c.next.Sub(now), true
}

// sweep forgets the callers without recent requests, if there are many. The lock is held.
func (q *Requests) sweep(now time.Time) {
	if len(q.callers) < q.sweepAt {
		return
	}
	for holder, c := range q.callers {
		if c.inProgress == 0 && now.Sub(c.next) >= burst {
			delete(q.callers, holder)
		}
	}
	q.sweepAt = max(limits.RequestCallers, 2*len(q.callers))
}

func (q *Requests) end(holder string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.callers[holder].inProgress--
}

// Begin waits until a request of the identity in its context may begin; `end` ends it. If there are too many in progress,
// it answers and returns false. A request with a stream is in progress only while it waits: Watches bounds their number.
func (q *Requests) Begin(w http.ResponseWriter, r *http.Request, stream bool) (end func(), ok bool) {
	id, _ := fleet.IdentityOf(r.Context())
	rate, holder, cost := rateOf(id), fleet.HolderOf(r.Context()), 1
	if stream {
		cost = rate.streamCost
	}
	wait, ok := q.count(holder, rate, cost, time.Now())
	if !ok {
		q.metrics.LimitRefusals.WithLabelValues("requests").Inc()
		w.Header().Set("Retry-After", "1")
		AnswerProblem(w, http.StatusTooManyRequests, TooManyRequests(int64(rate.inProgress)))
		return nil, false
	}
	if wait > 0 && !sleep(r.Context(), wait) {
		q.end(holder)
		AnswerError(w, endOf(r.Context(), status.FromContextError(r.Context().Err()).Err()))
		return nil, false
	}
	if stream {
		q.end(holder)
		return func() {}, true
	}
	return func() { q.end(holder) }, true
}

// sleep waits, and reports whether the context did not end before.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
