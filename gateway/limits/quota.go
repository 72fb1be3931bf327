package limits

import "sync"

// Quota bounds what all callers hold together, and what each of them holds. Safe for concurrent use.
type Quota struct {
	// All and Each are the bounds.
	All, Each int64

	mu    sync.Mutex
	total int64
	held  map[string]int64
}

// Acquire adds n to what a caller holds, unless a bound would be exceeded.
func (q *Quota) Acquire(caller string, n int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n == 0 {
		return true
	}
	if q.total+n > q.All || q.held[caller]+n > q.Each {
		return false
	}
	if q.held == nil {
		q.held = map[string]int64{}
	}
	q.total += n
	q.held[caller] += n
	return true
}

// Release subtracts n from what a caller holds.
func (q *Quota) Release(caller string, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n == 0 {
		return
	}
	q.total -= n
	if q.held[caller] -= n; q.held[caller] == 0 {
		delete(q.held, caller)
	}
}

// Held returns what all callers hold.
func (q *Quota) Held() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// Largest returns the caller that holds most; "": none holds anything.
func (q *Quota) Largest() (caller string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for other, n := range q.held {
		if n > q.held[caller] {
			caller = other
		}
	}
	return caller
}
