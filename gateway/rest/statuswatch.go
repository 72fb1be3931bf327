package rest

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/proto"

	"muster.example/gateway/fleet"
	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// estimate returns about the size of the JSON of a message. It contains the names of all fields of each pair.
func estimate(message *musterv1.WatchStatusResponse) int64 {
	const perMessage, perPair = 1 << 10, 512
	return perMessage + perPair*int64(len(message.Pairs)) + 2*int64(proto.Size(message))
}

// statusWatch is what one watch of a status occupies. It prepares the messages of a snapshot in turn with other watches
// of its client; a slow reader does not keep its turn. Not safe for concurrent use: the goroutine of the request uses it.
type statusWatch struct {
	ctx     context.Context // of the watch
	cancel  context.CancelCauseFunc
	load    *StatusLoad
	client  string
	refused func(*UnreadError) // counts a refusal

	end    func() // of the preparation; nil: there is none
	more   bool   // the last message is followed by others of the same snapshot
	unread int64  // of the message that is being sent
	fault  error  // of the preparation of the next message
}

// beginStatusWatch begins the preparation of the first message.
func (s *Server) beginStatusWatch(ctx context.Context, remote string) (*statusWatch, error) {
	w := &statusWatch{load: s.watches.load, client: fleet.HolderOf(ctx), refused: func(e *UnreadError) {
		s.metrics.RefusedByLimit(s.log, "snapshots", e.Holder, remote)
	}}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	err := w.begin()
	if err != nil {
		w.cancel(nil)
	}
	return w, err
}

// begin waits for the turn to prepare a message. A service that does not send it within the time of a fetch ends the watch.
func (w *statusWatch) begin() error {
	end, err := w.load.BeginWatch(w.ctx, w.client)
	if err != nil {
		return err
	}
	late := time.AfterFunc(limits.FetchTime, func() { w.cancel(ErrLate) })
	w.end = func() {
		late.Stop()
		end()
	}
	return nil
}

// prepared ends the preparation.
func (w *statusWatch) prepared() {
	if w.end != nil {
		w.end()
		w.end = nil
	}
}

// encodeStatus implements runtime.ForwardResponseRewriter: it encodes the messages of watches of a status in the form
// of grpc-gateway, and counts their bytes.
func encodeStatus(ctx context.Context, message proto.Message) (any, error) {
	held, _ := ctx.Value(watchKey{}).(*watchWriter)
	status, ok := message.(*musterv1.WatchStatusResponse)
	if !ok || held == nil || held.status == nil {
		return message, nil
	}
	text, err := held.status.encode(status)
	if err != nil {
		return nil, err
	}
	return &httpbody.HttpBody{ContentType: "application/json", Data: text}, nil
}

// encode returns the JSON of a message, whose bytes the client occupies until it is sent.
func (w *statusWatch) encode(message *musterv1.WatchStatusResponse) ([]byte, error) {
	defer w.prepared()
	if w.fault != nil {
		return nil, w.fault
	}
	// Many watches may encode at the same time, as after a change of a run that all of them show.
	reserved := estimate(message)
	if err := w.load.Reserve(reserved); err != nil {
		return nil, w.refuse(err)
	}
	text, err := w.marshal(message)
	if err != nil {
		w.load.Hold(-reserved)
		return nil, err
	}
	w.unread = int64(cap(text))
	w.load.Hold(w.unread - reserved)
	w.more = message.Cursor == "" || len(message.Pairs) >= limits.WatchPairs
	return text, nil
}

// marshal returns the JSON of a message, whose bytes count against the client's limit.
func (w *statusWatch) marshal(message *musterv1.WatchStatusResponse) ([]byte, error) {
	text, err := jsonFormat.MarshalAppend([]byte(`{"result":`), message)
	if err != nil {
		return nil, err
	}
	text = append(text, '}')
	if err := w.load.Acquire(w.client, int64(cap(text))); err != nil {
		return nil, w.refuse(err)
	}
	return text, nil
}

// refuse counts a refusal.
func (w *statusWatch) refuse(err error) error {
	if unread := (*UnreadError)(nil); errors.As(err, &unread) {
		w.refused(unread)
	}
	return err
}

// sent releases the bytes of the message, and begins the preparation of the next one of a snapshot.
func (w *statusWatch) sent() {
	w.release()
	if w.more {
		w.fault = w.begin()
	}
}

func (w *statusWatch) release() {
	w.load.Release(w.client, w.unread)
	w.load.Hold(-w.unread)
	w.unread = 0
}

// close ends the watch.
func (w *statusWatch) close() {
	w.prepared()
	w.release()
	w.cancel(nil)
}
