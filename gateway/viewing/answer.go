package viewing

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/gateway/gen/muster/v1"
)

// Answer is what GET /status says. Its first three fields, and the first five of a pair, are those of the
// original design: they keep their names and meaning. docs/status.md lists all.
type Answer struct {
	Status   string  `json:"status"`
	Percent  float64 `json:"percent_complete"`
	Plugins  []Pair  `json:"plugins"`
	Run      string  `json:"run"`
	State    string  `json:"state"`
	Reason   string  `json:"state_reason,omitempty"`
	Created  string  `json:"created_at,omitempty"`
	Deadline string  `json:"deadline,omitempty"`
	Ended    string  `json:"ended_at,omitempty"`
	Time     string  `json:"time,omitempty"`
	FeedTime string  `json:"feed_time,omitempty"`
	Counts   *Counts `json:"counts,omitempty"`
	aggregate
	Doubt   string   `json:"doubt,omitempty"`
	Summary []Plugin `json:"summary,omitempty"`
}

// Pair is one expected result.
type Pair struct {
	Name      string    `json:"name"`
	Node      string    `json:"node"` // "" for a plugin that runs once
	Status    string    `json:"status"`
	Heartbeat *int64    `json:"last-heartbeat,omitempty"` // whole seconds
	State     string    `json:"state,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Since     string    `json:"since,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	Next      string    `json:"next,omitempty"`
	Message   string    `json:"message,omitempty"`
	Error     string    `json:"error,omitempty"`
	Size      int64     `json:"size,omitempty"`
	Phase     string    `json:"phase,omitempty"`
	Progress  *Progress `json:"progress,omitempty"`
	Fault     *Fault    `json:"fault,omitempty"`
}

// Progress is what a plugin reported.
type Progress struct {
	Total     int64    `json:"total"`
	Completed int64    `json:"completed"`
	Failures  []string `json:"failures,omitempty"`
	Errors    []string `json:"errors,omitempty"`
}

// Fault is what an agent found before its work.
type Fault struct {
	Check    string `json:"check,omitempty"`
	Address  string `json:"address,omitempty"`
	Message  string `json:"message,omitempty"`
	NextStep string `json:"next_step,omitempty"`
}

// Counts are results by outcome.
type Counts struct {
	Planned  int64 `json:"planned"`
	Pending  int64 `json:"pending"`
	Genuine  int64 `json:"genuine"`
	Errors   int64 `json:"errors"`
	TimedOut int64 `json:"timed_out"`
}

// Plugin is all pairs of one plugin together.
type Plugin struct {
	Name    string  `json:"name"`
	Once    bool    `json:"once"`
	Percent float64 `json:"percent_complete"`
	Counts  *Counts `json:"counts,omitempty"`
	aggregate
}

type aggregate struct {
	Reasons  map[string]int64 `json:"reasons,omitempty"`
	Estimate *Estimate        `json:"estimate,omitempty"`
}

// Estimate is when the last pair may be through.
type Estimate struct {
	Earliest string `json:"earliest"`
	Latest   string `json:"latest"`
}

// newAnswer says what a status says, with these pairs.
func newAnswer(status *musterv1.RunStatus, pairs []*musterv1.PairStatus) *Answer {
	a := &Answer{
		Status: word(status.State.String(), "RUN_STATE_"), Percent: status.PercentComplete, Plugins: make([]Pair, 0, len(pairs)),
		Run: status.Run, State: word(status.State.String(), "RUN_STATE_"), Reason: status.StateReason,
		Created: instant(status.CreateTime), Deadline: instant(status.Deadline), Ended: instant(status.EndTime),
		Time: instant(status.Time), FeedTime: instant(status.FeedTime), Counts: counts(status.Counts),
		aggregate: newAggregate(status.Reasons, status.Estimate), Doubt: status.Doubt,
	}
	if status.State == musterv1.RunState_RUN_STATE_PLANNED {
		a.Status = "running" // the design knows no planned runs
	}
	for _, pair := range pairs {
		a.Plugins = append(a.Plugins, newPair(pair))
	}
	for _, plugin := range status.Plugins {
		a.Summary = append(a.Summary, Plugin{Name: plugin.Plugin, Once: plugin.Once, Percent: plugin.PercentComplete,
			Counts: counts(plugin.Counts), aggregate: newAggregate(plugin.Reasons, plugin.Estimate)})
	}
	return a
}

var pairWords = map[musterv1.Outcome]string{
	musterv1.Outcome_OUTCOME_GENUINE:   "complete",
	musterv1.Outcome_OUTCOME_ERROR:     "failed",
	musterv1.Outcome_OUTCOME_TIMED_OUT: "timed_out",
}

func newPair(p *musterv1.PairStatus) Pair {
	pair := Pair{
		Name: p.Plugin, Node: p.Node, Status: pairWords[p.Outcome], State: word(p.Presence.String(), "PRESENCE_"),
		Reason: word(p.Reason.String(), "REASON_"), Since: instant(p.ReasonSince), Detail: p.Detail, Next: p.Next,
		Message: p.Progress.GetMessage(), Error: p.Error, Size: p.Size, Phase: word(p.Phase.String(), "PHASE_"),
	}
	if p.Node == "global" {
		pair.Node = ""
	}
	if pair.Status == "" {
		pair.Status = "running"
	}
	if p.HeartbeatAge != nil {
		seconds := p.HeartbeatAge.Seconds
		pair.Heartbeat = &seconds
	}
	if g := p.Progress; g != nil {
		pair.Progress = &Progress{Total: g.Total, Completed: g.Completed, Failures: g.Failures, Errors: g.Errors}
	}
	if f := p.Fault; f != nil {
		pair.Fault = &Fault{Check: word(f.Check.String(), "CHECK_"), Address: f.Address, Message: f.Message, NextStep: f.NextStep}
	}
	return pair
}

func counts(c *musterv1.ResultCounts) *Counts {
	if c == nil {
		return nil
	}
	return &Counts{Planned: c.Planned, Pending: c.Pending, Genuine: c.Genuine, Errors: c.Errors, TimedOut: c.TimedOut}
}

func newAggregate(reasons []*musterv1.ReasonCount, estimate *musterv1.Estimate) aggregate {
	var a aggregate
	for _, reason := range reasons {
		if a.Reasons == nil {
			a.Reasons = map[string]int64{}
		}
		a.Reasons[word(reason.Reason.String(), "REASON_")] = reason.Count
	}
	if estimate != nil {
		a.Estimate = &Estimate{instant(estimate.Earliest), instant(estimate.Latest)}
	}
	return a
}

// word makes "not-started" of "REASON_NOT_STARTED", and nothing of the value that says nothing.
func word(name, prefix string) string {
	name = strings.TrimPrefix(name, prefix)
	if name == "UNSPECIFIED" {
		return ""
	}
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

func instant(t *timestamppb.Timestamp) string {
	if t == nil || t.Seconds == 0 && t.Nanos == 0 {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}
