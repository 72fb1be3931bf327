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

// Phase is what a sender is at, as its heartbeats tell it.
type Phase int32

// The phases; those of deliveries are told by themselves.
const (
	PhaseChecking      Phase = iota + 1 // checks before the work
	PhaseWorking                        // the usual one
	PhaseWaiting                        // for the plugin's done file
	PhaseDelivering                     // told by itself
	PhaseBlocked                        // waits for something that is not the plugin's own
	PhaseBackpressured                  // the fleet told it to wait; told by itself
)

// Check is one of those before the work.
type Check int32

// The checks, in their order.
const (
	CheckNameResolution Check = iota + 1
	CheckConnection
	CheckTLS
	CheckClock
	CheckAuthorisation
)

// Fault is what was found to stand in the way of the work.
type Fault struct {
	Check Check
	// Address is "host:port".
	Address string
	// Message says what went wrong, NextStep what to do; at most 1024 bytes each count.
	Message, NextStep string
}

// Heartbeats tell the fleet that somebody is at work, so that one who ends without a word is missed
// within minutes. Safe for concurrent use; the nil one does nothing.
type Heartbeats struct {
	client   *Client
	onChange func(error)
	cancel   context.CancelFunc
	ended    chan struct{}
	wake     chan struct{} // there is news

	mu       sync.Mutex
	activity activity
	err      error
	lost     bool // as it was told last
	offset   *time.Duration
}

// activity is what is to be said.
type activity struct {
	phase    Phase
	message  string
	fault    *Fault
	progress *Progress // a report that did not get through by itself
	version  int64     // higher with each change
	reported int64     // the version when progress was kept
}

// Of the process: two clients in it are one sender.
var (
	instanceID   = rand.Text()
	started      = time.Now()
	beatSequence atomic.Int64
	bootID       = sync.OnceValue(func() string {
		text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // may be empty
		return strings.TrimSpace(string(text))
	})
)

// StartHeartbeats tells the fleet from now on that somebody is at work, until Stop or the end of the
// client, over a stream that is kept, at the pace that the fleet asks for. They never fail or delay a
// delivery. Without StatusTargets they go to AggregatorURL, as a bare sign of life; without either, and
// for a client made by Dial, there are none: it returns nil. A second call returns the first one's.
//
// `onChange`, which may be nil, hears how they fare: an error when they do not get through any more
// (each such time once), nil when they do again, and an *Error with the reason DUPLICATE_AGENT when they
// have ended for good, since a younger process beats with the same identity for the same node. It must
// not block.
func (c *Client) StartHeartbeats(onChange func(error)) *Heartbeats {
	if c.config == nil || (c.old == nil && c.heartbeats == nil) {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &Heartbeats{
		client: c, onChange: onChange, cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		activity: activity{phase: PhaseWorking, version: 1},
	}
	if !c.beats.CompareAndSwap(nil, h) {
		cancel()
		return c.beats.Load()
	}
	go h.run(ctx)
	return h
}

// Stop says goodbye, so that nobody is missed; it takes at most 2 s.
func (h *Heartbeats) Stop() {
	if h == nil {
		return
	}
	h.cancel()
	<-h.ended
	h.client.beats.CompareAndSwap(h, nil)
}

// Err is nil while heartbeats get through, or none was tried yet.
func (h *Heartbeats) Err() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// ClockOffset is the fleet's wall clock minus ours, by the newest answer; false before the first.
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

// SetPhase says what is done, and what is waited for; sent soon if it is news, at most 4 times a second.
func (h *Heartbeats) SetPhase(phase Phase, message string) {
	h.change(func(a *activity) { a.phase, a.message = phase, message })
}

// SetFault says what stands in the way of the work; nil: nothing does.
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

// scope sets a phase, and gives what brings back the one before.
func (h *Heartbeats) scope(phase Phase) func() {
	if h == nil {
		return func() {}
	}
	before := h.get()
	h.SetPhase(phase, "")
	return func() { h.SetPhase(before.phase, before.message) }
}

// waiting says why a delivery waits before its next try; nil: it tries again.
func (c *Client) waiting(why *Error) {
	h := c.beats.Load()
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

const maxCount = 1_000_000_000_000 // as the status service has it

// keep lets a report that did not get through go with the next beat; none of the append form, since it
// might be counted twice, nor one that no service would take. A nil error: a newer one got through.
func (h *Heartbeats) keep(p Progress, err error) {
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

// told lets go of a report that the fleet knows.
func (h *Heartbeats) told(version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.activity.reported <= version {
		h.activity.progress = nil
	}
}

// heard notes an answer's time.
func (h *Heartbeats) heard(server time.Time) {
	offset := time.Until(server)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offset = &offset
}

// note keeps how it goes, and tells of a change.
func (h *Heartbeats) note(err error) {
	h.mu.Lock()
	changed := h.lost != (err != nil) || isDuplicateAgent(err)
	h.err, h.lost = err, err != nil
	h.mu.Unlock()
	if changed && h.onChange != nil {
		h.onChange(err)
	}
}

func isDuplicateAgent(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Reason == reasons.DuplicateAgent
}

// run keeps a connection until it is stopped.
func (h *Heartbeats) run(ctx context.Context) {
	defer close(h.ended)
	live, wait := h.stream, reconnect{}
	if h.client.old != nil {
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
		case "UNIMPLEMENTED": // a server that is older than heartbeats is no fault to hear of
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
		if isDuplicateAgent(err) || pause(ctx, pauseFor) != nil {
			return
		}
	}
}
