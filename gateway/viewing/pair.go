package viewing

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// appendPairs appends the JSON of protobuf-encoded pairs, separated by commas. A run may have a hundred thousand: they
// are not decoded as a whole.
func appendPairs(to []byte, pairs [][]byte) ([]byte, error) {
	const usual = 160 // bytes of a pair
	to = slices.Grow(to, len(pairs)*usual)
	var pair musterv1.PairStatus
	for i, encoded := range pairs {
		if err := proto.Unmarshal(encoded, &pair); err != nil {
			return nil, err
		}
		if i > 0 {
			to = append(to, ',')
		}
		to = appendPair(to, &pair)
	}
	return to, nil
}

// appendPair writes one expected result. The first five fields are those of the original design: they keep their names
// and meaning. docs/status.md lists all.
func appendPair(to []byte, p *musterv1.PairStatus) []byte {
	to = appendText(append(to, `{"name":`...), p.Plugin)
	node := p.Node
	if node == "global" {
		node = "" // for a plugin that runs once
	}
	to = appendText(append(to, `,"node":`...), node)
	to = appendText(append(to, `,"status":`...), pairWord(p))
	if p.HeartbeatAge != nil {
		to = strconv.AppendInt(append(to, `,"last-heartbeat":`...), p.HeartbeatAge.Seconds, 10)
	}
	to = appendField(to, "state", presenceWords[p.Presence])
	to = appendField(to, "reason", reasonWords[p.Reason])
	to = appendTime(to, "since", p.ReasonSince)
	to = appendField(to, "detail", p.Detail)
	to = appendField(to, "next", p.Next)
	to = appendField(to, "message", p.Progress.GetMessage())
	to = appendField(to, "error", p.Error)
	if p.Size != 0 {
		to = strconv.AppendInt(append(to, `,"size":`...), p.Size, 10)
	}
	to = appendField(to, "phase", phaseWords[p.Phase])
	if p.Progress != nil {
		to = appendProgress(append(to, `,"progress":`...), p.Progress)
	}
	if p.Fault != nil {
		to = appendJSON(append(to, `,"fault":`...), &fault{Check: checkWords[p.Fault.Check], Address: p.Fault.Address,
			Message: p.Fault.Message, NextStep: p.Fault.NextStep})
	}
	return append(to, '}')
}

// fault is what an agent found in its checks.
type fault struct {
	Check    string `json:"check,omitempty"`
	Address  string `json:"address,omitempty"`
	Message  string `json:"message,omitempty"`
	NextStep string `json:"next_step,omitempty"`
}

func appendProgress(to []byte, p *musterv1.Progress) []byte {
	to = strconv.AppendInt(append(to, `{"total":`...), p.Total, 10)
	to = strconv.AppendInt(append(to, `,"completed":`...), p.Completed, 10)
	if len(p.Failures) > 0 {
		to = appendJSON(append(to, `,"failures":`...), p.Failures)
	}
	if len(p.Errors) > 0 {
		to = appendJSON(append(to, `,"errors":`...), p.Errors)
	}
	if p.OmittedFailures != 0 {
		to = strconv.AppendInt(append(to, `,"omitted_failures":`...), p.OmittedFailures, 10)
	}
	if p.OmittedErrors != 0 {
		to = strconv.AppendInt(append(to, `,"omitted_errors":`...), p.OmittedErrors, 10)
	}
	return append(to, '}')
}

// appendField appends a field unless it is empty.
func appendField(to []byte, name, text string) []byte {
	if text == "" {
		return to
	}
	return appendText(append(append(append(to, `,"`...), name...), `":`...), text)
}

func appendTime(to []byte, name string, t *timestamppb.Timestamp) []byte {
	if isUnset(t) {
		return to
	}
	to = append(append(append(to, `,"`...), name...), `":"`...)
	return append(t.AsTime().AppendFormat(to, time.RFC3339Nano), '"')
}

// appendText appends a string as encoding/json does; most need no escapes.
func appendText(to []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return appendJSON(to, text)
		}
	}
	return append(append(append(to, '"'), text...), '"')
}

func appendJSON(to []byte, value any) []byte {
	content, err := json.Marshal(value)
	if err != nil { // impossible: strings and lists of strings
		return append(to, "null"...)
	}
	return append(to, content...)
}

func pairWord(p *musterv1.PairStatus) string {
	switch p.Outcome {
	case musterv1.Outcome_OUTCOME_GENUINE:
		return "complete"
	case musterv1.Outcome_OUTCOME_ERROR:
		return "failed"
	case musterv1.Outcome_OUTCOME_TIMED_OUT:
		return "timed_out"
	}
	if p.Reason == musterv1.Reason_REASON_RUN_ENDED {
		return "no_outcome"
	}
	return "running"
}

var (
	presenceWords = words[musterv1.Presence]("PRESENCE_")
	reasonWords   = words[musterv1.Reason]("REASON_")
	phaseWords    = words[musterv1.Phase]("PHASE_")
	checkWords    = words[musterv1.Fault_Check]("CHECK_")
)

// words caches word for all values of an enum.
func words[E interface {
	~int32
	protoreflect.Enum
}](prefix string) map[E]string {
	all := map[E]string{}
	var zero E
	values := zero.Descriptor().Values()
	for i := range values.Len() {
		all[E(values.Get(i).Number())] = word(string(values.Get(i).Name()), prefix)
	}
	return all
}

// word returns "not-started" for "REASON_NOT_STARTED", and nothing for the unspecified value.
func word(name, prefix string) string {
	name = strings.TrimPrefix(name, prefix)
	if name == "UNSPECIFIED" {
		return ""
	}
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

func isUnset(t *timestamppb.Timestamp) bool { return t == nil || t.Seconds == 0 && t.Nanos == 0 }

func instant(t *timestamppb.Timestamp) string {
	if isUnset(t) {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}
