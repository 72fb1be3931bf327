package muster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/grpc"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/channel"
	"muster.example/services/client/go/reasons"
)

const (
	callTimeout   = 30 * time.Second // of a unary call
	ackTimeout    = 90 * time.Second // without any acknowledgement
	commitTimeout = 5 * time.Minute  // from finish to committed
	maxChunk      = 4 << 20          // whatever a server announces, as the next
	minChunk      = 4 << 10
)

// errStalled is the error for a server that accepts bytes but does not acknowledge them.
var errStalled error = &Error{Code: "UNAVAILABLE", Message: "the server sends no acknowledgements"}

// upload carries one delivery to its commit, over as many streams as necessary.
type upload struct {
	rpc      musterv1.ResultServiceClient
	delivery *Delivery
	source   source
	sign     signer
	share    func() int64 // of the client's memory, in bytes
	reached  int64        // the highest offset that the server has acknowledged
	// renumber is true until the upload is open, if the client has chosen the number of the attempt.
	renumber bool
}

// once opens the upload and sends the missing bytes. The boolean reports whether it advanced.
func (u *upload) once(ctx context.Context) (*Result, bool, error) {
	opened, err := u.open(ctx)
	if err != nil {
		return nil, false, err
	}
	if opened.Committed != nil {
		if sum, ok := u.source.whole(); ok {
			result, err := u.checked(opened.Committed, sum)
			return result, err == nil, err
		}
		// A result is committed already. The end of the body shows if it is the same one.
		u.source.addDigest()
		if err := u.source.finish(); err != nil {
			return nil, false, err
		}
		if opened, err = u.open(ctx); err != nil {
			return nil, true, err
		}
		if opened.Committed != nil {
			sum, _ := u.source.whole()
			result, err := u.checked(opened.Committed, sum)
			return result, true, err
		}
	}
	if opened.ChunkMax <= 0 || opened.Window <= 0 || opened.Offset < 0 {
		return nil, false, fmt.Errorf("invalid OpenUpload response for upload %q: chunk_max %d, window %d, offset %d",
			opened.UploadId, opened.ChunkMax, opened.Window, opened.Offset)
	}
	before := u.reached
	u.note(opened.Offset)
	result, err := u.stream(ctx, opened)
	return result, err == nil || u.reached > before, err
}

// checked returns a committed result whose size the server has compared, and its SHA-256 if `sum` has one. Without one,
// the checksum decides whether it is this delivery: if not, a new delivery computes its SHA-256 from the start.
func (u *upload) checked(committed *musterv1.Result, sum summary) (*Result, error) {
	if len(sum.sha256) == 0 && committed.Crc32C != sum.crc32c {
		return nil, &LostError{Wanted: 0, Kept: sum.size}
	}
	return u.delivery.confirmed(committed, sum)
}

func (u *upload) open(ctx context.Context) (*musterv1.OpenUploadResponse, error) {
	request := &musterv1.OpenUploadRequest{Description: u.delivery.description()}
	if sum, ok := u.source.whole(); ok {
		request.Size, request.Sha256 = &sum.size, sum.sha256
	}
	opened, err := u.call(ctx, request)
	// The clock of an earlier sender may be ahead. Once the upload is open, a higher number is that of a later sender.
	if newest := newestAttempt(err); u.renumber && newest > 0 && newest < math.MaxInt64 {
		u.delivery.Attempt = newest + 1
		request.Description = u.delivery.description()
		opened, err = u.call(ctx, request)
	}
	u.renumber = u.renumber && err != nil
	return opened, err
}

func (u *upload) call(ctx context.Context, request *musterv1.OpenUploadRequest) (*musterv1.OpenUploadResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return u.rpc.OpenUpload(ctx, request)
}

// newestAttempt returns the attempt by which the one of a failed open was refused, or 0.
func newestAttempt(err error) int64 {
	if err == nil {
		return 0
	}
	answer := AsError(err)
	if answer.Reason != reasons.TakenOver {
		return 0
	}
	return answer.NewestAttempt
}

// note records the server's progress and releases acknowledged bytes.
func (u *upload) note(written int64) {
	u.reached = max(u.reached, written)
	u.source.written(written)
}

// ending is how a stream ended, as its receiver saw it.
type ending struct {
	committed *musterv1.Result
	err       error
}

func (u *upload) stream(ctx context.Context, opened *musterv1.OpenUploadResponse) (*Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	rpc, err := u.rpc.Upload(ctx)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	acks, done := make(chan int64, 1), make(chan ending, 1)
	watch := time.AfterFunc(ackTimeout, func() { cancel(errStalled) })
	defer watch.Stop()
	go func() {
		committed, err := receive(rpc, acks, func() { watch.Reset(ackTimeout) })
		done <- ending{committed, err}
	}()
	flow := &flow{acked: opened.Offset, sent: opened.Offset, window: max(opened.Window, minChunk), acks: acks, progress: u.note, share: u.share}
	sendErr := u.send(ctx, rpc, opened, flow, func() { watch.Reset(ackTimeout) })
	if sendErr == nil {
		watch.Reset(commitTimeout)
	} else if !errors.Is(sendErr, io.EOF) {
		cancel(sendErr)
	}
	end := <-done
	cause := context.Cause(ctx)
	cancel(nil)
	flow.drain()
	switch {
	case end.committed != nil:
		sum, _ := u.source.whole()
		return u.delivery.confirmed(end.committed, sum)
	case sendErr != nil && !errors.Is(sendErr, io.EOF):
		return nil, sendErr
	case errors.Is(cause, errStalled):
		return nil, cause
	}
	return nil, end.err
}

// receive runs until the stream ends. It calls `alive` for each message.
func receive(rpc grpc.BidiStreamingClient[musterv1.UploadRequest, musterv1.UploadResponse], acks chan int64,
	alive func()) (*musterv1.Result, error) {
	defer close(acks)
	for {
		response, err := rpc.Recv()
		if err == io.EOF {
			return nil, &Error{Code: "UNAVAILABLE", Message: "the stream ended before the result was committed"}
		}
		if err != nil {
			return nil, err
		}
		if committed := response.GetCommitted(); committed != nil {
			return committed, nil
		}
		if spooled := response.GetSpooled(); spooled != nil {
			return nil, &SpooledError{Relay: spooled.GetRelay(), Until: spooled.GetExpireTime().AsTime()}
		}
		if ack := response.GetAck(); ack != nil {
			alive()
			select { // only the newest one counts
			case <-acks:
			default:
			}
			acks <- ack.GetWritten()
		}
	}
}

// send sends everything from the opened offset to the end. io.EOF means that the stream has ended and its
// receiver has the error.
func (u *upload) send(ctx context.Context, rpc grpc.BidiStreamingClient[musterv1.UploadRequest, musterv1.UploadResponse],
	opened *musterv1.OpenUploadResponse, flow *flow, busy func()) error {
	start := &musterv1.UploadRequest_Start{UploadId: opened.UploadId, Epoch: opened.Epoch}
	if err := rpc.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Start_{Start: start}}); err != nil {
		return err
	}
	limit := int(min(max(opened.ChunkMax, minChunk), flow.window, maxChunk))
	for {
		// Wait for the whole chunk, so that no unsendable bytes are read.
		if err := flow.wait(ctx, int64(limit)); err != nil {
			return err
		}
		piece, err := u.source.chunk(flow.sent, limit)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		busy()
		chunk := &musterv1.UploadRequest_Chunk{Offset: flow.sent, RawSize: int64(len(piece.data)), Crc32C: piece.crc32c}
		flow.sent += chunk.RawSize
		if err := sendChunk(rpc, chunk, piece); err != nil {
			return err
		}
	}
	sum, _ := u.source.whole()
	finish := &musterv1.UploadRequest_Finish{Size: sum.size, Crc32C: sum.crc32c, Sha256: sum.sha256}
	signature, err := u.sign.result(u.delivery, sum)
	if err != nil {
		return err
	}
	finish.Signature = signature
	if err := rpc.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Finish_{Finish: finish}}); err != nil {
		return err
	}
	return rpc.CloseSend()
}

// sendChunk sends lasting bytes without a copy.
func sendChunk(rpc grpc.BidiStreamingClient[musterv1.UploadRequest, musterv1.UploadResponse], chunk *musterv1.UploadRequest_Chunk,
	piece piece) error {
	if piece.lasting {
		return rpc.SendMsg(&channel.Chunk{Header: chunk, Data: piece.data})
	}
	chunk.Data = piece.data
	return rpc.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Chunk_{Chunk: chunk}})
}
