package e2e

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// relayed attaches the forging relay to the root relay again, sends messages, and returns why its stream ends.
func (w *limited) relayed(change func(*musterv1.AttachRequest_Hello), messages ...*musterv1.AttachRequest) string {
	ctx, cancel := context.WithTimeout(w.ctx, soon)
	defer cancel()
	stream := w.forger.attach(ctx, w.t, change)
	for _, message := range messages {
		_ = stream.Send(message) // a refusal is received
	}
	for {
		if _, err := stream.Recv(); err != nil {
			w.t.Logf("the stream ends: %v", err)
			return refusalOf(err)
		}
	}
}

// topologyOf names descendants of the forging relay.
func topologyOf(count int, statement func(i int) *musterv1.AttachStatement) *musterv1.AttachRequest {
	update := &musterv1.AttachRequest_TopologyUpdate{}
	for i := range count {
		s := statement(i)
		update.Descendants = append(update.Descendants, &musterv1.AttachRequest_TopologyUpdate_Descendant{Relay: "r9",
			Attached: s.Signature != nil, ChangeTime: timestamppb.Now(), Statement: s})
	}
	return &musterv1.AttachRequest{Message: &musterv1.AttachRequest_Topology{Topology: update}}
}

// recordsOf has job records with this much output each.
func recordsOf(count, size int) *musterv1.AttachRequest {
	records := &musterv1.JobRecords{}
	for i := range count {
		records.Records = append(records.Records, &musterv1.JobRecord{Job: "0123456789abcdef", Node: "n9", Sequence: int64(i) + 1,
			Time: timestamppb.Now(), Record: &musterv1.JobRecord_Output_{Output: &musterv1.JobRecord_Output{
				Stream: musterv1.JobStream_JOB_STREAM_STDOUT, Data: make([]byte, size)}}})
	}
	return &musterv1.AttachRequest{Message: &musterv1.AttachRequest_Records{Records: records}}
}

// forgeStatements names descendants by statements that the forging relay signed itself.
func (w *limited) forgeStatements() string {
	var updates []*musterv1.AttachRequest
	for u := range 4 {
		updates = append(updates, topologyOf(400, func(i int) *musterv1.AttachStatement {
			return w.forger.forged(w.t, fmt.Sprintf("forged-%d-%d", u, i))
		}))
	}
	return w.relayed(nil, updates...)
}

func (w *limited) attachWithLongVersion() string {
	return w.relayed(func(hello *musterv1.AttachRequest_Hello) { hello.Version = strings.Repeat("v", 65) })
}

func (w *limited) attachWithLargeStatement() string {
	return w.relayed(func(hello *musterv1.AttachRequest_Hello) {
		hello.Statement.CertificateChainPem += strings.Repeat("#", 5<<10)
	})
}

// commandManyNodes signs a command for more nodes than one may have.
func (w *limited) commandManyNodes() string {
	return w.mustered("exec", "--nodes-file", w.fileOfNodes(50_001), "--detach", "--", "/bin/true")
}
