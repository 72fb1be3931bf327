package mustertest

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// ReceivedHeartbeats returns all received heartbeats.
func (a *Aggregator) ReceivedHeartbeats() []*musterv1.StreamHeartbeatsRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.heartbeats)
}

// Probe requests a heartbeat on every stream.
func (a *Aggregator) Probe() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for stream := range a.streams {
		_ = stream.Send(&musterv1.StreamHeartbeatsResponse{Probe: true}) // an ended stream is ignored
	}
}

// CloseHeartbeats ends every stream, as a restart would.
func (a *Aggregator) CloseHeartbeats() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cut := range a.streams {
		cut()
	}
}

// StreamHeartbeats implements the API.
func (a *Aggregator) StreamHeartbeats(stream musterv1.HeartbeatService_StreamHeartbeatsServer) error {
	ctx, cut := context.WithCancel(stream.Context())
	defer cut()
	a.mu.Lock()
	a.streams[stream] = cut
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.streams, stream)
	}()
	ended := make(chan error, 1)
	go func() { ended <- a.receiveHeartbeats(stream) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Aggregator) receiveHeartbeats(stream musterv1.HeartbeatService_StreamHeartbeatsServer) error {
	for {
		heartbeat, err := stream.Recv()
		if err != nil {
			return nil
		}
		a.mu.Lock()
		a.heartbeats = append(a.heartbeats, heartbeat)
		a.mu.Unlock()
		if a.CheckHeartbeat != nil {
			if err := a.CheckHeartbeat(heartbeat); err != nil {
				return err
			}
		}
		a.mu.Lock()
		err = stream.Send(&musterv1.StreamHeartbeatsResponse{
			Sequence: heartbeat.Sequence, Interval: durationpb.New(a.Interval), Time: timestamppb.Now(),
		})
		a.mu.Unlock()
		if err != nil {
			return nil
		}
	}
}
