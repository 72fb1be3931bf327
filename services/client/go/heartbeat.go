package muster

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster.example/services/client/go/reasons"
)

// Phase is the activity of a sender in its heartbeats.
type Phase int32

// The phases; the client sets those of deliveries.
const (
	PhaseChecking      Phase = iota + 1 // checks before the work
	PhaseWorking                        // the usual phase
	PhaseWaiting                        // for the plugin's done file
	PhaseDelivering                     // set by the client
	PhaseBlocked                        // waits for an external dependency
	PhaseBackpressured                  // waits because a service asked for it; set by the client
)

// Check is a check before the work.
type Check int32

// The checks, in their order.
const (
	CheckNameResolution Check = iota + 1
	CheckConnection
	CheckTLS
	CheckClock
	CheckAuthorisation
)

// Fault is a fault that prevents the work.
type Fault struct {
	Check Check
	// Address is "host:port".
	Address string
	// Message states what failed, NextStep what to do; each is truncated to 1024 bytes.
	Message, NextStep string
}

// Heartbeats report to the fleet that the sender is running, so that a crash is detected within minutes. Safe
// for concurrent use; a nil *Heartbeats does nothing.
type Heartbeats struct {
	client   *Client
	onChange func(error)
	cancel   context.CancelFunc
	ended    chan struct{}
	wake     chan struct{} // there are changes

	mu        sync.Mutex
	activity  activity
	err       error
	lost      bool // the last state reported to onChange
	duplicate bool // that state is DUPLICATE_AGENT
	offset    *time.Duration
}

// activity is the content of the next heartbeat.
type activity struct {
	phase    Phase
	message  string
	fault    *Fault
	progress *Progress // a report that failed to be sent separately
	version  int64     // increments with each change
	reported int64     // the version when progress was set
}

// These are per process: two clients in one process are one sender.
var (
	instanceID        = rand.Text()
	started           = time.Now()
	heartbeatSequence atomic.Int64
	bootID            = sync.OnceValue(func() string {
		text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // may be empty
		return strings.TrimSpace(string(text))
	})
)

// StartHeartbeats sends heartbeats until Stop or the end of the client, over one stream, at the interval that
// the fleet asks for. They never fail or delay a delivery. Without StatusTargets they are requests to
// AggregatorURL; without either, and for a client of Dial, there are none: it returns nil. A second call
// returns the first one's.
//
// `onChange`, which may be nil, is called with an error when heartbeats begin to fail (once for each outage),
// and with nil when they succeed again. An *Error with the reason DUPLICATE_AGENT means that they are rejected
// while a younger process sends heartbeats with the same identity for the same node. onChange must not block.
func (c *Client) StartHeartbeats(onChange func(error)) *Heartbeats {
	if c.config == nil || (c.legacy == nil && c.heartbeats == nil) {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &Heartbeats{
		client: c, onChange: onChange, cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		activity: activity{phase: PhaseWorking, version: 1},
	}
	if !c.currentHeartbeats.CompareAndSwap(nil, h) {
		cancel()
		return c.currentHeartbeats.Load()
	}
	go h.run(ctx)
	return h
}

// Stop sends a farewell, so that the sender is not reported as lost; it takes at most 2 s.
func (h *Heartbeats) Stop() {
	if h == nil {
		return
	}
	h.cancel()
	<-h.ended
	h.client.currentHeartbeats.CompareAndSwap(h, nil)
}

// Err returns nil while heartbeats succeed, or before the first attempt.
func (h *Heartbeats) Err() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// ClockOffset returns the fleet's wall clock minus the local one, by the newest answer; false before the
// first.
func (h *Heartbeats) ClockOffset() (time.Duration, bool) {
	if h == nil {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.offset == nil {
		return 0, false
	}
	return *h.offset, true
}

// SetPhase sets the phase and what it waits for; a change is sent soon, at most 4 times a second.
func (h *Heartbeats) SetPhase(phase Phase, message string) {
	h.change(func(a *activity) { a.phase, a.message = phase, message })
}

// SetFault sets the fault that prevents the work; nil: none.
func (h *Heartbeats) SetFault(fault *Fault) { h.change(func(a *activity) { a.fault = fault }) }

func (h *Heartbeats) change(change func(*activity)) {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.activity.version++
	change(&h.activity)
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *Heartbeats) get() activity {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.activity
}

// scope sets a phase, and returns a function that restores the previous one.
func (h *Heartbeats) scope(phase Phase) func() {
	if h == nil {
		return func() {}
	}
	before := h.get()
	h.SetPhase(phase, "")
	return func() { h.SetPhase(before.phase, before.message) }
}

// waiting sets why a delivery waits before its next attempt; nil: it is retrying.
func (c *Client) waiting(why *Error) {
	h := c.currentHeartbeats.Load()
	switch {
	case h == nil:
	case why == nil:
		h.SetPhase(PhaseDelivering, "")
	case why.Code == "RESOURCE_EXHAUSTED" || why.RetryAfter > 0:
		h.SetPhase(PhaseBackpressured, why.Message)
	default:
		h.SetPhase(PhaseDelivering, why.Message)
	}
}

const maxCount = 1_000_000_000_000 // the status service's limit

// saveReport saves a failed report for the next heartbeat, unless it has the append form, which might be counted
// twice, or no service would accept it. A nil error: a newer report succeeded.
func (h *Heartbeats) saveReport(p Progress, err error) {
	if h == nil {
		return
	}
	if err == nil {
		h.mu.Lock()
		h.activity.progress = nil
		h.mu.Unlock()
		return
	}
	code := AsError(err).Code
	appends := p.AppendTotals || p.AppendCompleted != 0 || len(p.AppendFailing) > 0
	counts := min(p.Total, p.Completed) >= 0 && max(p.Total, p.Completed) <= maxCount
	if appends || !counts || (code != "UNAVAILABLE" && code != "DEADLINE_EXCEEDED") {
		return
	}
	h.change(func(a *activity) { a.progress, a.reported = &p, a.version })
}

// markReported drops a report that the fleet has received.
func (h *Heartbeats) markReported(version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.activity.reported <= version {
		h.activity.progress = nil
	}
}

// setServerTime records the time of an answer.
func (h *Heartbeats) setServerTime(server time.Time) {
	offset := time.Until(server)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offset = &offset
}

// note records the state of the heartbeats, and reports a change.
func (h *Heartbeats) note(err error) {
	h.mu.Lock()
	duplicate := isDuplicateAgent(err)
	changed := h.lost != (err != nil) || h.duplicate != duplicate
	h.err, h.lost, h.duplicate = err, err != nil, duplicate
	h.mu.Unlock()
	if changed && h.onChange != nil {
		h.onChange(err)
	}
}

func isDuplicateAgent(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Reason == reasons.DuplicateAgent
}

// run keeps a connection until Stop.
func (h *Heartbeats) run(ctx context.Context) {
	defer close(h.ended)
	live, wait := h.stream, reconnect{}
	if h.client.legacy != nil {
		live = h.listener
	}
	for ctx.Err() == nil {
		err := live(ctx, &wait)
		if ctx.Err() != nil {
			return
		}
		answer := AsError(err)
		pauseFor := wait.next(answer.RetryAfter)
		switch answer.Code {
		case "UNIMPLEMENTED": // a server without heartbeats is not a fault
			pauseFor = wait.unserved()
			h.mu.Lock()
			h.err = err
			h.mu.Unlock()
		case "PERMISSION_DENIED", "INVALID_ARGUMENT":
			pauseFor = wait.unserved()
			h.note(err)
		default:
			h.note(err)
		}
		if pause(ctx, pauseFor) != nil {
			return
		}
	}
}
