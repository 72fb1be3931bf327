package viewing

import (
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// Answer is the body of GET /status: the head, the pairs, and the rest. Head and pairs are the fields of the original
// design: they keep their names and meaning. docs/status.md lists all.
type Answer struct {
	head
	plugins [][]byte // encoded as JSON (appendPair), in pieces: commas separate all pairs
	about
}

type head struct {
	Status  string  `json:"status"`
	Percent float64 `json:"percent_complete"`
}

// about is the part after the pairs.
type about struct {
	Run      string  `json:"run"`
	Title    string  `json:"title,omitempty"`
	State    string  `json:"state"`
	Reason   string  `json:"state_reason,omitempty"`
	Created  string  `json:"create_time,omitempty"`
	Deadline string  `json:"deadline,omitempty"`
	Ended    string  `json:"end_time,omitempty"`
	Counts   *Counts `json:"counts,omitempty"`
	aggregate
	Damaged int64    `json:"damaged_results,omitempty"`
	Doubt   string   `json:"doubt,omitempty"`
	Summary []Plugin `json:"summary,omitempty"`
	times
}

// times differ between otherwise equal answers.
type times struct {
	Time     string `json:"time,omitempty"`
	FeedTime string `json:"feed_time,omitempty"`
}

// silence is the time without a message from the aggregator that clients report. It sends one every few seconds.
const silence = 15 * time.Second

// showSilence reports whether the aggregator was silent for longer.
func (t times) showSilence() bool {
	now, err := time.Parse(time.RFC3339Nano, t.Time)
	if err != nil {
		return false
	}
	last, err := time.Parse(time.RFC3339Nano, t.FeedTime)
	return err == nil && now.Sub(last) > silence
}

// Counts are results by outcome.
type Counts struct {
	Planned  int64 `json:"planned"`
	Pending  int64 `json:"pending"`
	Genuine  int64 `json:"genuine"`
	Errors   int64 `json:"errors"`
	TimedOut int64 `json:"timed_out"`
}

// Plugin summarises all pairs of one plugin.
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

// Estimate is when the last pair may end.
type Estimate struct {
	Earliest string `json:"earliest"`
	Latest   string `json:"latest"`
}

// newAnswer converts a status with these pairs.
func newAnswer(status *musterv1.RunStatus, plugins [][]byte) *Answer {
	state := word(status.State.String(), "RUN_STATE_")
	a := &Answer{head: head{Status: state, Percent: status.PercentComplete}, plugins: plugins, about: about{
		Run: status.Run, Title: status.Title, State: state, Reason: status.StateReason,
		Created: instant(status.CreateTime), Deadline: instant(status.Deadline), Ended: instant(status.EndTime),
		Counts: counts(status.Counts), aggregate: newAggregate(status.Reasons, status.Estimate),
		Damaged: status.DamagedResults, Doubt: status.Doubt,
		times: times{Time: instant(status.Time), FeedTime: instant(status.FeedTime)},
	}}
	if status.State == musterv1.RunState_RUN_STATE_PLANNED {
		a.Status = "running" // the design has no planned runs
	}
	for _, plugin := range status.Plugins {
		a.Summary = append(a.Summary, Plugin{Name: plugin.Plugin, Once: plugin.Once, Percent: plugin.PercentComplete,
			Counts: counts(plugin.Counts), aggregate: newAggregate(plugin.Reasons, plugin.Estimate)})
	}
	return a
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
		a.Reasons[reasonWords[reason.Reason]] = reason.Count
	}
	if estimate != nil {
		a.Estimate = &Estimate{instant(estimate.Earliest), instant(estimate.Latest)}
	}
	return a
}
