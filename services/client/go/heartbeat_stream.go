package muster

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

const (
	goodbyeLimit   = 2 * time.Second
	maxBeatText    = 1024
	maxProgressMsg = 4096
	maxNames       = 100 // the newest
)

// clean truncates a text and replaces invalid UTF-8, which would make the whole message invalid.
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

// heartbeatStream is one connection.
type heartbeatStream struct {
	h        *Heartbeats
	rpc      musterv1.HeartbeatService_StreamHeartbeatsClient
	schedule *heartbeatSchedule
	first    bool
	version  int64 // the newest that was sent
	sequence int64 // the heartbeat with that version
}

// incoming forwards the messages of a stream, and then its end, until the context is done.
func incoming[T any](ctx context.Context, next func() (T, error)) (<-chan T, <-chan error) {
	items, ended := make(chan T), make(chan error, 1)
	go func() {
		for {
			item, err := next()
			if err != nil {
				ended <- err
				return
			}
			select {
			case items <- item:
			case <-ctx.Done():
			}
		}
	}()
	return items, ended
}

// stream runs one heartbeat stream to its end.
func (h *Heartbeats) stream(ctx context.Context, wait *reconnect) error {
	// The stream outlives the caller's context for the farewell.
	withGrace, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	rpc, err := h.client.heartbeats.StreamHeartbeats(withGrace)
	if err != nil {
		return fromRPC(err)
	}
	answers, ended := incoming(withGrace, rpc.Recv)
	s := &heartbeatStream{h: h, rpc: rpc, schedule: newHeartbeatSchedule(time.Now()), first: true}
	for {
		now := time.Now()
		due := s.schedule.due(now, s.first || h.get().version != s.version)
		patience := s.schedule.answerTimeout(now)
		if due <= 0 {
			if s.send(false) != nil {
				return endOf(await(answers, ended))
			}
			continue
		}
		if patience <= 0 {
			return errHeartbeatsUnanswered()
		}
		timer := time.NewTimer(min(due, patience))
		select {
		case <-timer.C:
		case <-h.wake:
		case answer := <-answers:
			s.receive(answer, wait)
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

// await returns a stream's end, and drops the messages before it.
func await[T any](items <-chan T, ended <-chan error) error {
	for {
		select {
		case <-items:
		case err := <-ended:
			return err
		}
	}
}

// endOf returns why a stream ended; never nil.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return errHeartbeatsEnded()
	}
	return fromRPC(err)
}

func (s *heartbeatStream) send(goodbye bool) error {
	now, key := time.Now(), s.h.client.key(Key{})
	heartbeat := &musterv1.StreamHeartbeatsRequest{
		Sequence: heartbeatSequence.Add(1), Uptime: durationpb.New(time.Since(started)), Time: timestamppb.New(now), Goodbye: goodbye,
	}
	if s.first {
		heartbeat.Node, heartbeat.InstanceId, heartbeat.BootId = key.Node, instanceID, bootID()
	}
	a := s.h.get()
	news := s.first || a.version != s.version
	if news {
		heartbeat.Activities = []*musterv1.Activity{a.proto(key)}
		s.version, s.sequence = a.version, heartbeat.Sequence
	}
	s.first = false
	s.schedule.sent(now, news)
	return s.rpc.Send(heartbeat)
}

func (s *heartbeatStream) receive(answer *musterv1.StreamHeartbeatsResponse, wait *reconnect) {
	if answer.GetTime() != nil {
		s.h.setServerTime(answer.GetTime().AsTime())
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
		s.h.markReported(s.version)
	}
	wait.reset()
	s.h.note(nil)
}

func (s *heartbeatStream) goodbye(answers <-chan *musterv1.StreamHeartbeatsResponse, ended <-chan error) {
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
