package muster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/gateway/gen/muster/v1"
)

const (
	goodbyeLimit   = 2 * time.Second
	maxBeatText    = 1024
	maxProgressMsg = 4096
	maxNames       = 100 // the newest
)

// clean cuts a text and replaces what is not UTF-8: it would make the whole message unreadable.
func clean(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
}

func cleanNames(names []string) []string {
	kept := make([]string, 0, len(names))
	for _, name := range names {
		kept = append(kept, clean(name, maxBeatText))
	}
	return kept
}

func newest(names []string) []string { return cleanNames(names[max(len(names)-maxNames, 0):]) }

func (p *Progress) proto(key Key) *musterv1.ReportProgressRequest {
	return &musterv1.ReportProgressRequest{
		Key:     &musterv1.ResultKey{Run: key.Run, Plugin: key.Plugin, Node: key.Node},
		Message: clean(p.Message, maxProgressMsg), Total: p.Total, Completed: p.Completed,
		Failures: newest(p.Failures), Errors: newest(p.Errors), AppendTotals: p.AppendTotals,
		AppendCompleted: p.AppendCompleted, AppendFailing: cleanNames(p.AppendFailing),
	}
}

func (a *activity) proto(key Key) *musterv1.Activity {
	said := &musterv1.Activity{
		Key:   &musterv1.ResultKey{Run: key.Run, Plugin: key.Plugin, Node: key.Node},
		Phase: musterv1.Phase(a.phase), Message: clean(a.message, maxBeatText),
	}
	if a.progress != nil {
		said.Progress = a.progress.proto(key)
	}
	if f := a.fault; f != nil {
		said.Fault = &musterv1.Fault{
			Check: musterv1.Fault_Check(f.Check), Address: clean(f.Address, maxBeatText),
			Message: clean(f.Message, maxBeatText), NextStep: clean(f.NextStep, maxBeatText),
		}
	}
	return said
}

// beatStream is one connection.
type beatStream struct {
	h        *Heartbeats
	rpc      musterv1.HeartbeatService_BeatClient
	schedule *beatSchedule
	first    bool
	version  int64 // the newest that was sent
	sequence int64 // with which beat
}

// stream keeps one Beat stream, to its end.
func (h *Heartbeats) stream(ctx context.Context, wait *reconnect) error {
	// It outlives the caller's wish to stop by a goodbye.
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	rpc, err := h.client.heartbeats.Beat(lasting)
	if err != nil {
		return fromRPC(err)
	}
	answers, ended := make(chan *musterv1.BeatResponse), make(chan error, 1)
	go func() {
		for {
			answer, err := rpc.Recv()
			if err != nil {
				ended <- err
				return
			}
			select {
			case answers <- answer:
			case <-lasting.Done():
			}
		}
	}()
	s := &beatStream{h: h, rpc: rpc, schedule: newBeatSchedule(time.Now()), first: true}
	for {
		now := time.Now()
		news := s.first || h.get().version != s.version
		if s.schedule.due(now, news) <= 0 {
			if err := s.send(false); err != nil {
				return endOf(<-ended)
			}
			continue
		}
		if s.schedule.patience(now) <= 0 {
			return &Error{Code: "UNAVAILABLE", Reason: "HEARTBEATS_LOST", Message: "the status service does not answer heartbeats",
				NextStep: "Check that muster-status runs and that status_targets leads to it."}
		}
		timer := time.NewTimer(min(s.schedule.due(now, news), s.schedule.patience(now)))
		select {
		case <-timer.C:
		case <-h.wake:
		case answer := <-answers:
			s.take(answer, wait)
		case err := <-ended:
			timer.Stop()
			return endOf(err)
		case <-ctx.Done():
			timer.Stop()
			s.goodbye(answers, ended)
			return ctx.Err()
		}
		timer.Stop()
	}
}

// endOf says why a stream ended; never nil.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return &Error{Code: "UNAVAILABLE", Reason: "HEARTBEATS_LOST", Message: "the status service ended the stream of heartbeats"}
	}
	return fromRPC(err)
}

func (s *beatStream) send(goodbye bool) error {
	now, key := time.Now(), s.h.client.key(Key{})
	beat := &musterv1.BeatRequest{
		Node: key.Node, InstanceId: instanceID, BootId: bootID(), Sequence: beatSequence.Add(1),
		Uptime: durationpb.New(time.Since(started)), Time: timestamppb.New(now), Goodbye: goodbye,
	}
	a := s.h.get()
	news := s.first || a.version != s.version
	if news {
		beat.Activities = []*musterv1.Activity{a.proto(key)}
		s.version, s.sequence = a.version, beat.Sequence
	}
	s.first = false
	s.schedule.sent(now, news)
	return s.rpc.Send(beat)
}

func (s *beatStream) take(answer *musterv1.BeatResponse, wait *reconnect) {
	if answer.GetTime() != nil {
		s.h.heard(answer.GetTime().AsTime())
	}
	if answer.GetProbe() {
		s.schedule.probed = true
		return
	}
	var interval time.Duration
	if answer.GetInterval() != nil {
		interval = max(answer.GetInterval().AsDuration(), shortestInterval)
	}
	s.schedule.answered(interval)
	if answer.GetSequence() >= s.sequence {
		s.h.told(s.version)
	}
	wait.reset()
	s.h.note(nil)
}

func (s *beatStream) goodbye(answers <-chan *musterv1.BeatResponse, ended <-chan error) {
	if s.send(true) != nil || s.rpc.CloseSend() != nil {
		return
	}
	limit := time.NewTimer(goodbyeLimit)
	defer limit.Stop()
	for {
		select {
		case <-answers:
		case <-ended:
			return
		case <-limit.C:
			return
		}
	}
}

// listener beats to a run's listener for old clients, until that fails.
func (h *Heartbeats) listener(ctx context.Context, wait *reconnect) error {
	for {
		interval, err := h.client.old.health(ctx, h)
		if err != nil {
			return err
		}
		wait.reset()
		h.note(nil)
		if err := pause(ctx, spread(interval)); err != nil {
			return err
		}
	}
}

// health says once that somebody is at work, and gives the time until the next.
func (l *listener) health(ctx context.Context, h *Heartbeats) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.path("health", h.client.key(Key{})), nil)
	if err != nil {
		return 0, err
	}
	response, err := l.http.Do(request)
	if err != nil {
		return 0, &Error{Code: "UNAVAILABLE", Message: err.Error()}
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed: // older than heartbeats
		return 0, &Error{Code: "UNIMPLEMENTED", Message: fmt.Sprintf("%s: %s", request.URL, response.Status)}
	default:
		return 0, answerOf(request, response, text)
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		h.heard(date)
	}
	var answer struct {
		Seconds float64 `json:"interval_seconds"`
	}
	if json.Unmarshal(text, &answer) != nil || !(answer.Seconds > 0) || answer.Seconds > longestInterval.Seconds() {
		return firstInterval, nil
	}
	return max(time.Duration(answer.Seconds*float64(time.Second)), shortestInterval), nil
}
