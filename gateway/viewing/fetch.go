package viewing

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

const (
	fetchTimeout = 20 * time.Second
	// smallRun is up to how many pairs the status service says of each what happens next; of a larger page it
	// leaves out the words that all pairs share.
	smallRun = 1_000
	pageSize = 10_000 // pairs that the status service gives at a time
	shown    = 10     // pairs of a kind, where only those that need attention are asked for
)

// fetch asks for a run's status: with all pairs, or with those only that a person looks at.
func (s *Server) fetch(ctx context.Context, run string, attention bool) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if attention {
		return s.fetchAttention(ctx, run)
	}
	first, err := s.fetchPage(ctx, &musterv1.GetStatusRequest{Run: run, PageSize: smallRun})
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

// fetchLarge asks for page after page, from the beginning, so that all pairs read alike. While the next one is
// on its way those before are turned into JSON.
func (s *Server) fetchLarge(ctx context.Context, run string) (*Answer, error) {
	var status musterv1.RunStatus
	var pieces []*[]byte
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	request := &musterv1.GetStatusRequest{Run: run, PageSize: pageSize}
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

// statusPage is a page of a run's status of which only the outline was read.
type statusPage struct {
	pairs   [][]byte // each as protobuf encodes it
	summary []byte   // the same of a status without pairs
	next    string   // the token of the next page
}

// fetchPage asks for one page.
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
			return nil, fmt.Errorf("the status service's answer cannot be read: %w", protowire.ParseError(size))
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

// rawAnswers is a codec that leaves an answer as it is encoded.
type rawAnswers struct{}

func (rawAnswers) Name() string                  { return "proto" }
func (rawAnswers) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }
func (rawAnswers) Unmarshal(content []byte, v any) error {
	*v.(*[]byte) = content
	return nil
}

// fetchAttention gives stragglers, and the first of those with an error, timed out, or with progress.
func (s *Server) fetchAttention(ctx context.Context, run string) (*Answer, error) {
	status, err := s.status.GetStatus(ctx, &musterv1.GetStatusRequest{Run: run})
	if err != nil {
		return nil, err
	}
	pairs := status.Stragglers
	requests := []*musterv1.GetStatusRequest{{Reasons: []musterv1.Reason{musterv1.Reason_REASON_RUNNING}}}
	if status.Counts.GetErrors() > 0 {
		requests = append(requests, &musterv1.GetStatusRequest{Outcome: musterv1.Outcome_OUTCOME_ERROR})
	}
	if status.Counts.GetTimedOut() > 0 {
		requests = append(requests, &musterv1.GetStatusRequest{Outcome: musterv1.Outcome_OUTCOME_TIMED_OUT})
	}
	for _, request := range requests {
		request.Run, request.PageSize = status.Run, shown
		page, err := s.status.GetStatus(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, pair := range page.Pairs {
			if pair.Outcome != musterv1.Outcome_OUTCOME_PENDING || pair.Progress != nil {
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
