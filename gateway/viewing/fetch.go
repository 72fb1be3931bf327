package viewing

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// fetch requests and encodes a run's status: with all pairs, or only with those that need attention.
func (s *Server) fetch(ctx context.Context, of view) (result *snapshot, err error) {
	result = &snapshot{}
	if of.attention {
		result.answer, err = s.fetchAttention(ctx, of.run)
	} else {
		result.answer, err = s.fetchAll(ctx, of.run)
	}
	if err == nil {
		result.pieces, result.tag, err = encode(result.answer)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	for _, piece := range result.pieces {
		result.size += int64(len(piece))
	}
	return result, err
}

// fetchAll requests a run's status with all pairs.
func (s *Server) fetchAll(ctx context.Context, run string) (*Answer, error) {
	first, err := s.fetchPage(ctx, &musterv1.GetStatusRequest{Run: run, PageSize: int32(limits.SmallRun)})
	if err != nil {
		return nil, err
	}
	var status musterv1.RunStatus
	if err := proto.Unmarshal(first.summary, &status); err != nil {
		return nil, err
	}
	if first.next == "" {
		plugins, err := appendPairs(nil, first.pairs)
		return newAnswer(&status, [][]byte{plugins}), err
	}
	return s.fetchLarge(ctx, status.Run)
}

// fetchLarge requests page after page, from the beginning, so that all pairs have the same form. It encodes one page as
// JSON while it waits for the next.
func (s *Server) fetchLarge(ctx context.Context, run string) (*Answer, error) {
	var status musterv1.RunStatus
	var pieces []*[]byte
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	request := &musterv1.GetStatusRequest{Run: run, PageSize: int32(limits.PageSize)}
	for {
		page, err := s.fetchPage(ctx, request)
		if err == nil && len(pieces) == 0 {
			err = proto.Unmarshal(page.summary, &status)
		}
		if err != nil {
			_ = work.Wait()
			return nil, err
		}
		piece := new([]byte)
		if len(pieces) > 0 {
			*piece = []byte{','}
		}
		pieces = append(pieces, piece)
		work.Go(func() (err error) {
			*piece, err = appendPairs(*piece, page.pairs)
			return err
		})
		if request.PageToken = page.next; page.next == "" {
			break
		}
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	plugins := make([][]byte, 0, len(pieces))
	for _, piece := range pieces {
		plugins = append(plugins, *piece)
	}
	return newAnswer(&status, plugins), nil
}

// statusPage is a page of a run's status of which only the outline was parsed.
type statusPage struct {
	pairs   [][]byte // each encoded as protobuf
	summary []byte   // the encoded status without pairs
	next    string   // the token of the next page
}

// fetchPage requests one page.
func (s *Server) fetchPage(ctx context.Context, request *musterv1.GetStatusRequest) (*statusPage, error) {
	var content []byte
	err := s.connection.Invoke(ctx, musterv1.StatusService_GetStatus_FullMethodName, request, &content, grpc.ForceCodec(rawAnswers{}))
	if err != nil {
		return nil, err
	}
	return outline(content)
}

var (
	statusFields = (&musterv1.RunStatus{}).ProtoReflect().Descriptor().Fields()
	pairsField   = statusFields.ByName("pairs").Number()
	nextField    = statusFields.ByName("next_page_token").Number()
)

// outline finds the pairs of an encoded status, and the token of the next page.
func outline(content []byte) (*statusPage, error) {
	page := &statusPage{}
	for rest := content; len(rest) > 0; {
		number, kind, tag := protowire.ConsumeTag(rest)
		size := tag
		if size >= 0 {
			size = protowire.ConsumeFieldValue(number, kind, rest[tag:])
		}
		if size < 0 {
			return nil, fmt.Errorf("cannot parse the status service's response: %w", protowire.ParseError(size))
		}
		field, value := rest[:tag+size], rest[tag:tag+size]
		rest = rest[tag+size:]
		switch {
		case number == pairsField && kind == protowire.BytesType:
			pair, _ := protowire.ConsumeBytes(value)
			page.pairs = append(page.pairs, pair)
		case number == nextField && kind == protowire.BytesType:
			token, _ := protowire.ConsumeBytes(value)
			page.next = string(token)
		default:
			page.summary = append(page.summary, field...)
		}
	}
	return page, nil
}

// rawAnswers is a codec that leaves a response encoded.
type rawAnswers struct{}

func (rawAnswers) Name() string                  { return "proto" }
func (rawAnswers) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }
func (rawAnswers) Unmarshal(content []byte, v any) error {
	*v.(*[]byte) = content
	return nil
}

// fetchAttention returns stragglers, and the first pairs with an error, a time-out, or progress.
func (s *Server) fetchAttention(ctx context.Context, run string) (*Answer, error) {
	status, err := s.status.GetStatus(ctx, &musterv1.GetStatusRequest{Run: run})
	if err != nil {
		return nil, err
	}
	pairs := slices.DeleteFunc(status.Stragglers, func(p *musterv1.PairStatus) bool {
		return p.Reason == musterv1.Reason_REASON_NOT_STARTED // asked for below
	})
	requests := []*musterv1.GetStatusRequest{{Reasons: []musterv1.Reason{musterv1.Reason_REASON_RUNNING}}}
	if slices.ContainsFunc(status.Reasons, func(r *musterv1.ReasonCount) bool { return r.Reason == musterv1.Reason_REASON_NOT_STARTED }) {
		requests = append(requests, &musterv1.GetStatusRequest{Reasons: []musterv1.Reason{musterv1.Reason_REASON_NOT_STARTED}})
	}
	if status.Counts.GetErrors() > 0 {
		requests = append(requests, &musterv1.GetStatusRequest{Outcome: musterv1.Outcome_OUTCOME_ERROR})
	}
	if status.Counts.GetTimedOut() > 0 {
		requests = append(requests, &musterv1.GetStatusRequest{Outcome: musterv1.Outcome_OUTCOME_TIMED_OUT})
	}
	for _, request := range requests {
		request.Run, request.PageSize = status.Run, int32(limits.Shown)
		page, err := s.status.GetStatus(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, pair := range page.Pairs {
			// A running pair without progress has nothing to show.
			if pair.Reason != musterv1.Reason_REASON_RUNNING || pair.Progress != nil {
				pairs = append(pairs, pair)
			}
		}
	}
	var plugins []byte
	for i, pair := range pairs {
		if i > 0 {
			plugins = append(plugins, ',')
		}
		plugins = appendPair(plugins, pair)
	}
	return newAnswer(status, [][]byte{plugins}), nil
}
