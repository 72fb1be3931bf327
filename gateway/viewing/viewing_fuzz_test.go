package viewing

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// The answer to any response of the status service is an error, or valid JSON with every pair.
func FuzzStatusIsJSONOrRefused(f *testing.F) {
	status := &musterv1.RunStatus{Run: "00000000000000aa", Title: "\u2028<&>", NextPageToken: "logs/n1", PercentComplete: 12.5,
		Reasons: []*musterv1.ReasonCount{{Reason: musterv1.Reason_REASON_RUNNING, Count: 1}},
		Pairs: []*musterv1.PairStatus{
			{Plugin: "logs", Node: "global", Size: 1, Detail: "\x00\"\\", ReasonSince: timestamppb.New(time.Unix(1e9, 5)), Error: "ü"},
			{Plugin: "e2e", Node: "n1", HeartbeatAge: durationpb.New(time.Second), Fault: &musterv1.Fault{Message: "m"},
				Progress: &musterv1.Progress{Total: 2, Failures: []string{"a"}}},
		}}
	seed, err := proto.Marshal(status)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{0x0b, 0x0c}) // a group
	f.Fuzz(func(t *testing.T, content []byte) {
		var whole, summary musterv1.RunStatus
		fault := proto.Unmarshal(content, &whole)
		page, err := outline(content)
		if err == nil {
			err = proto.Unmarshal(page.summary, &summary)
		}
		var pairs []byte
		if err == nil {
			pairs, err = appendPairs(nil, page.pairs)
		}
		if fault == nil && err != nil {
			t.Fatalf("a valid status: %v", err)
		}
		if err != nil {
			return
		}
		pieces, _, err := encode(newAnswer(&summary, [][]byte{pairs}))
		if err != nil {
			if _, err := json.Marshal(summary.PercentComplete); err == nil {
				t.Fatal(err)
			}
			return // NaN is not JSON
		}
		var text []byte
		for _, piece := range pieces {
			text = append(text, piece...)
		}
		var answer struct {
			Plugins []struct{ Name, Node *string }
		}
		if err := json.Unmarshal(text, &answer); err != nil || !utf8.Valid(text) || len(answer.Plugins) != len(page.pairs) {
			t.Fatalf("%d pairs: %s: %v", len(page.pairs), text, err)
		}
		for i, pair := range answer.Plugins {
			var sent musterv1.PairStatus
			if err := proto.Unmarshal(page.pairs[i], &sent); err != nil || pair.Name == nil || *pair.Name != sent.Plugin || pair.Node == nil {
				t.Fatalf("pair %d: %s: %v", i, text, err)
			}
		}
	})
}
