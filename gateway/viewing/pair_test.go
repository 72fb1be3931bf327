package viewing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// documented is a pair as docs/status.md documents it.
type documented struct {
	Name      string `json:"name"`
	Node      string `json:"node"`
	Status    string `json:"status"`
	Heartbeat *int64 `json:"last-heartbeat,omitempty"`
	State     string `json:"state,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Since     string `json:"since,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Next      string `json:"next,omitempty"`
	Message   string `json:"message,omitempty"`
	Error     string `json:"error,omitempty"`
	Size      int64  `json:"size,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Progress  *struct {
		Total     int64    `json:"total"`
		Completed int64    `json:"completed"`
		Failures  []string `json:"failures,omitempty"`
		Errors    []string `json:"errors,omitempty"`

		OmittedFailures int64 `json:"omitted_failures,omitempty"`
		OmittedErrors   int64 `json:"omitted_errors,omitempty"`
	} `json:"progress,omitempty"`
	Fault *fault `json:"fault,omitempty"`
}

// The output is byte for byte that of encoding/json for the documented form.
func TestPairIsEncodedAsDocumented(t *testing.T) {
	odd := "<b>\"\\\n\u2028\x7f\x1bé&"
	for _, test := range []struct {
		pair *musterv1.PairStatus
		want string
	}{
		{&musterv1.PairStatus{Plugin: "p", Node: "global"}, `{"name":"p","node":"","status":"running"}`},
		{&musterv1.PairStatus{Plugin: "p", Node: "n", Outcome: musterv1.Outcome_OUTCOME_TIMED_OUT, Error: "late", Size: 7},
			`{"name":"p","node":"n","status":"timed_out","error":"late","size":7}`},
		{&musterv1.PairStatus{Plugin: "p", Node: "n", Outcome: musterv1.Outcome_OUTCOME_PENDING, Reason: musterv1.Reason_REASON_RUN_ENDED},
			`{"name":"p","node":"n","status":"no_outcome","reason":"run-ended"}`},
		{&musterv1.PairStatus{Plugin: odd, Node: odd, Outcome: musterv1.Outcome_OUTCOME_PENDING,
			Presence: musterv1.Presence_PRESENCE_LATE, Reason: musterv1.Reason_REASON_NOT_RESPONDING,
			ReasonSince: &timestamppb.Timestamp{Seconds: 1_800_000_000, Nanos: 5_000_000}, Detail: odd, Next: "later",
			HeartbeatAge: &durationpb.Duration{Seconds: 42, Nanos: 999}, Phase: musterv1.Phase_PHASE_WORKING,
			Progress: &musterv1.Progress{Message: odd, Total: 10, Completed: 3, Failures: []string{"f", odd}, Errors: []string{"e"}, OmittedFailures: 3, OmittedErrors: 2},
			Fault:    &musterv1.Fault{Check: musterv1.Fault_CHECK_TLS, Address: "a:1", Message: odd}}, ""},
	} {
		got := appendPair(nil, test.pair)
		var form documented
		decoder := json.NewDecoder(bytes.NewReader(got))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&form); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		again, err := json.Marshal(form)
		if err != nil || !bytes.Equal(got, again) || test.want != "" && string(got) != test.want {
			t.Errorf("got\n%s\nin the documented form\n%s", got, again)
		}
		if test.want == "" && (form.Name != odd || form.Detail != odd || *form.Heartbeat != 42 || form.Reason != "not-responding" ||
			form.Progress.Failures[1] != odd || form.Progress.OmittedFailures != 3 || form.Fault.Check != "tls" || form.Since != "2027-01-15T08:00:00.005Z") {
			t.Errorf("read back: %+v", form)
		}
	}
}

func TestAnswerHasEveryPairOnce(t *testing.T) {
	for _, count := range []int{0, 1, limits.SmallRun, limits.SmallRun + 1, limits.PageSize, 2*limits.PageSize + 1} {
		s := &Server{connection: &busy{status: manyPairs(count)}}
		answer, err := s.fetch(t.Context(), view{})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Plugins []documented }
		if err := json.Unmarshal(bytes.Join(answer.pieces, nil), &got); err != nil || len(got.Plugins) != count {
			t.Fatalf("%d pairs: %d, %v", count, len(got.Plugins), err)
		}
		for i, pair := range got.Plugins {
			if pair.Node != fmt.Sprintf("node-%06d", i) {
				t.Fatalf("of %d pairs number %d is %s", count, i, pair.Node)
			}
		}
	}
}

func TestInvalidStatusResponseFails(t *testing.T) {
	for _, content := range [][]byte{{0x42}, {0x42, 5, 1}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {0x42, 1, 0x0a}} {
		s := &Server{connection: &busy{pages: map[string][]byte{fmt.Sprint(limits.SmallRun, " "): content}}}
		if answer, err := s.fetch(t.Context(), view{}); err == nil {
			t.Errorf("%x: %+v", content, answer)
		}
	}
}

func TestTagChangesWhenTheAggregatorBecomesSilent(t *testing.T) {
	tag := func(now, feed int64) string {
		status := musterv1.RunStatus{Run: "r", Time: &timestamppb.Timestamp{Seconds: now}, FeedTime: &timestamppb.Timestamp{Seconds: feed}}
		_, tag, err := encode(newAnswer(&status, nil))
		if err != nil {
			t.Fatal(err)
		}
		return tag
	}
	fresh := tag(1_800_000_000, 1_799_999_990)
	if later := tag(1_800_000_005, 1_799_999_999); later != fresh {
		t.Errorf("answers without a silence have the tags %s and %s", fresh, later)
	}
	silent := tag(1_800_000_020, 1_800_000_000)
	if silent == fresh {
		t.Errorf("answers before and after a silence began have the same tag %s", fresh)
	}
	if later := tag(1_800_000_090, 1_800_000_000); later != silent {
		t.Errorf("answers in one silence have the tags %s and %s", silent, later)
	}
}
