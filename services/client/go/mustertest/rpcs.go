package mustertest

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/url"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordCall records the identity and the metadata of a call. The lock is held.
func (a *Aggregator) recordCall(ctx context.Context) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	a.Callers = append(a.Callers, fmt.Sprint(incoming.Get("muster-forwarded-identity")))
	a.Certificates = append(a.Certificates, fmt.Sprint(incoming.Get("muster-forwarded-certificate")))
	a.MetadataNames = append(a.MetadataNames, slices.Collect(maps.Keys(incoming)))
}

// SubmitResult implements the API.
func (a *Aggregator) SubmitResult(ctx context.Context, r *musterv1.SubmitResultRequest) (*musterv1.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	key := keyOf(r.Description.Key)
	if a.SpoolCount > 0 {
		return nil, fault(codes.Unavailable, reasons.RelayCutOff, "disconnected").Err()
	}
	if err := a.admit(key); err != nil {
		return nil, err
	}
	digest := sha256.Sum256(r.Body)
	if crc32.Checksum(r.Body, castagnoli) != r.Crc32C || (len(r.Sha256) > 0 && string(r.Sha256) != string(digest[:])) {
		return nil, fault(codes.DataLoss, reasons.CrcMismatch, "damaged").Err()
	}
	return a.commit(key, &Committed{Data: r.Body, Size: int64(len(r.Body)), SHA256: digest[:], Named: r.Sha256,
		Description: r.Description, Signature: r.Signature, crc32c: r.Crc32C})
}

// OpenUpload implements the API.
func (a *Aggregator) OpenUpload(ctx context.Context, r *musterv1.OpenUploadRequest) (*musterv1.OpenUploadResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	key := keyOf(r.Description.Key)
	a.Opened[key]++
	if err := a.admit(key); err != nil {
		return nil, err
	}
	if old := a.Results[key]; old != nil && !old.Description.GetIsError() && !r.Description.IsError {
		if (r.Size != nil && *r.Size != old.Size) || (len(r.Sha256) > 0 && string(r.Sha256) != string(old.SHA256)) {
			return nil, fault(codes.AlreadyExists, reasons.ResultConflict, "another result is committed").Err()
		}
		return &musterv1.OpenUploadResponse{Committed: a.result(key)}, nil
	}
	u := a.uploads[key]
	if u != nil && u.attempt > r.Description.Attempt {
		return nil, staleAttempt(u.attempt)
	}
	if u == nil || u.attempt < r.Description.Attempt {
		u = newUpload(fmt.Sprintf("%032x", len(a.uploads)+len(a.Callers)), r)
		a.uploads[key] = u
	}
	u.epoch++
	return &musterv1.OpenUploadResponse{UploadId: u.id, Epoch: u.epoch, Offset: u.size, ChunkMax: a.ChunkMax, Window: a.Window}, nil
}

func (a *Aggregator) find(start *musterv1.UploadRequest_Start) (Key, *upload, int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, u := range a.uploads {
		if u.id == start.GetUploadId() && u.epoch == start.GetEpoch() {
			return key, u, u.epoch
		}
	}
	return Key{}, nil, 0
}

// Upload implements the API.
func (a *Aggregator) Upload(stream grpc.BidiStreamingServer[musterv1.UploadRequest, musterv1.UploadResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	key, u, epoch := a.find(first.GetStart())
	if u == nil {
		return fault(codes.NotFound, reasons.UploadNotFound, "no such upload").Err()
	}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if finish := message.GetFinish(); finish != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			digest := u.digest.Sum(nil)
			if len(finish.Sha256) > 0 && string(digest) != string(finish.Sha256) {
				return fault(codes.DataLoss, reasons.DigestMismatch, "damaged").Err()
			}
			if u.size != finish.Size || u.crc != finish.Crc32C {
				return fault(codes.DataLoss, reasons.SizeMismatch, fmt.Sprintf("%d of %d bytes", u.size, finish.Size)).Err()
			}
			if a.SpoolCount > 0 {
				a.SpoolCount--
				spooled := &musterv1.Spooled{Relay: "r1", ExpireTime: timestamppb.Now()}
				return stream.Send(&musterv1.UploadResponse{Message: &musterv1.UploadResponse_Spooled{Spooled: spooled}})
			}
			result, err := a.commit(key, &Committed{Data: u.data, Size: u.size, SHA256: digest, Named: finish.Sha256,
				Description: u.request.Description, Signature: finish.Signature, crc32c: u.crc})
			if err != nil {
				return err
			}
			delete(a.uploads, key)
			return stream.Send(&musterv1.UploadResponse{Message: &musterv1.UploadResponse_Committed{Committed: result}})
		}
		ack, err := a.writeChunk(key, u, epoch, message.GetChunk())
		if err != nil {
			return err
		}
		if err := stream.Send(&musterv1.UploadResponse{Message: &musterv1.UploadResponse_Ack_{
			Ack: &musterv1.UploadResponse_Ack{Written: ack}}}); err != nil {
			return err
		}
	}
}

func (a *Aggregator) writeChunk(key Key, u *upload, epoch int64, chunk *musterv1.UploadRequest_Chunk) (int64, error) {
	a.mu.Lock()
	onChunk := a.onChunk
	a.mu.Unlock()
	if onChunk != nil {
		if err := onChunk(key, chunk); err != nil {
			return 0, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case u.epoch != epoch:
		return 0, fault(codes.Aborted, reasons.TakenOver, "another stream").Err()
	case chunk.Offset > u.size:
		return 0, fault(codes.OutOfRange, reasons.OffsetTooHigh, fmt.Sprint("expected ", u.size)).Err()
	case chunk.RawSize != int64(len(chunk.Data)) || chunk.RawSize > a.ChunkMax || chunk.RawSize == 0:
		return 0, fault(codes.InvalidArgument, reasons.ChunkTooLarge, fmt.Sprint(chunk.RawSize)).Err()
	case crc32.Checksum(chunk.Data, castagnoli) != chunk.Crc32C:
		return 0, fault(codes.DataLoss, reasons.CrcMismatch, "chunk").Err()
	case chunk.Offset < u.size:
		return u.size, nil
	}
	u.digest.Write(chunk.Data)
	u.crc = crc32.Update(u.crc, castagnoli, chunk.Data)
	if !a.Forget {
		u.data = append(u.data, chunk.Data...)
	}
	u.size += chunk.RawSize
	return u.size, nil
}

// GetResult implements the API.
func (a *Aggregator) GetResult(ctx context.Context, r *musterv1.GetResultRequest) (*musterv1.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	if a.Results[keyOf(r.Key)] == nil {
		return &musterv1.Result{Key: r.Key, Outcome: musterv1.Outcome_OUTCOME_PENDING}, nil
	}
	return a.result(keyOf(r.Key)), nil
}

// ReadResult implements the API.
func (a *Aggregator) ReadResult(r *musterv1.ReadResultRequest, stream grpc.ServerStreamingServer[musterv1.FileChunk]) error {
	return a.read(a.Get(keyOf(r.Key)).Data, r.Offset, stream)
}

// GetArchive implements the API.
func (a *Aggregator) GetArchive(ctx context.Context, r *musterv1.GetArchiveRequest) (*musterv1.Archive, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	content, ok := a.Archives[r.Run]
	if !ok {
		return nil, fault(codes.FailedPrecondition, reasons.ArchiveNotReady, "not complete").Err()
	}
	digest := sha256.Sum256(content)
	return &musterv1.Archive{Run: r.Run, FileName: r.Run + ".tar.gz", Size: int64(len(content)), Sha256: digest[:]}, nil
}

// ReadArchive implements the API.
func (a *Aggregator) ReadArchive(r *musterv1.ReadArchiveRequest, stream grpc.ServerStreamingServer[musterv1.FileChunk]) error {
	return a.read(a.Archives[r.Run], r.Offset, stream)
}

func (a *Aggregator) read(content []byte, offset int64, stream grpc.ServerStreamingServer[musterv1.FileChunk]) error {
	const piece = 1000
	for at := offset; at < int64(len(content)); at += piece {
		data := content[at:min(at+piece, int64(len(content)))]
		chunk := &musterv1.FileChunk{Offset: at, Crc32C: crc32.Checksum(data, castagnoli), Data: data}
		if a.Damage && at > offset {
			chunk.Crc32C++
		}
		if err := stream.Send(chunk); err != nil {
			return err
		}
	}
	return nil
}

// SignListenerCertificate implements the API.
func (a *Aggregator) SignListenerCertificate(ctx context.Context, r *musterv1.SignListenerCertificateRequest) (*musterv1.SignListenerCertificateResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	state := a.runs[r.Run]
	if state == nil {
		return nil, fault(codes.NotFound, reasons.RunNotFound, "no run").Err()
	}
	if state.signing != nil {
		a.mu.Unlock()
		select {
		case <-state.signing:
		case <-ctx.Done():
		}
		a.mu.Lock()
	}
	leaf, err := state.run.SelfSigned.SignRequest(r.CsrPem, state.run.URI("listener"), func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if state.host != "" {
			c.IPAddresses, c.DNSNames = nil, []string{state.host}
		}
	})
	return &musterv1.SignListenerCertificateResponse{CertificatePem: leaf, RunCaPem: state.run.SelfSigned.PEM(),
		Port: state.port, ServerName: state.host}, err
}

// ReportListener implements the API.
func (a *Aggregator) ReportListener(_ context.Context, r *musterv1.ReportListenerRequest) (*musterv1.Run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.runs[r.Run]
	if r.Open && state.port != 0 && state.port != r.Port {
		return nil, fault(codes.FailedPrecondition, reasons.PortIsFixed, "another port").Err()
	}
	if !r.Open {
		a.Faults = append(a.Faults, r.Fault)
	}
	if r.Open && state.port == 0 {
		state.port = r.Port
		close(state.reported)
	}
	return state.proto, nil
}

// ReleaseListener implements the API.
func (a *Aggregator) ReleaseListener(_ context.Context, r *musterv1.ReleaseListenerRequest) (*musterv1.ReleaseListenerResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Released = append(a.Released, r.Run)
	return &musterv1.ReleaseListenerResponse{}, nil
}

// FollowChanges implements the API.
func (a *Aggregator) FollowChanges(r *musterv1.FollowChangesRequest, stream grpc.ServerStreamingServer[musterv1.FollowChangesResponse]) error {
	stop := context.AfterFunc(stream.Context(), a.changed.Broadcast)
	defer stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	next := int(r.GetCursor())
	queue := []*musterv1.FollowChangesResponse{{Event: &musterv1.FollowChangesResponse_Heartbeat_{}}}
	if r.Cursor == nil {
		next = len(a.events)
		cursor := int64(next)
		queue = append(queue, &musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_SnapshotBegin_{}})
		for _, state := range a.runs {
			queue = append(queue, &musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Run{Run: state.proto}})
		}
		for _, event := range a.events {
			if event.GetRevoked() != nil {
				queue = append(queue, &musterv1.FollowChangesResponse{Event: event.Event})
			}
		}
		queue = append(queue, &musterv1.FollowChangesResponse{Cursor: &cursor, Event: &musterv1.FollowChangesResponse_SnapshotEnd_{}})
	}
	for stream.Context().Err() == nil {
		queue = append(queue, a.events[next:]...)
		next = len(a.events)
		a.mu.Unlock()
		for _, event := range queue {
			if err := stream.Send(event); err != nil {
				a.mu.Lock()
				return err
			}
		}
		a.mu.Lock()
		queue = nil
		if next == len(a.events) && stream.Context().Err() == nil {
			a.changed.Wait()
		}
	}
	return stream.Context().Err()
}

// Reported returns all progress reports so far.
func (a *Aggregator) Reported() []*musterv1.ReportProgressRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.Reports)
}

// ReportProgress implements the API.
func (a *Aggregator) ReportProgress(ctx context.Context, r *musterv1.ReportProgressRequest) (*musterv1.ReportProgressResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	if err := a.admit(keyOf(r.Key)); err != nil {
		return nil, err
	}
	if r.Completed < 0 {
		return nil, fault(codes.InvalidArgument, reasons.InvalidProgress, "negative").Err()
	}
	a.Reports = append(a.Reports, r)
	return &musterv1.ReportProgressResponse{}, nil
}

// RenewCertificate implements the API, for the gateway.
func (a *Aggregator) RenewCertificate(_ context.Context, r *musterv1.RenewCertificateRequest) (*musterv1.IssuedCertificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Renewals++
	uri := (&url.URL{Scheme: "spiffe", Host: Domain, Path: "/service/gateway/g1"}).String()
	chain, err := a.Fleet.Intermediate.SignRequest(r.CsrPem, uri)
	return &musterv1.IssuedCertificate{Uri: uri, CertificateChainPem: chain}, err
}

// ListRuns implements the API.
func (a *Aggregator) ListRuns(ctx context.Context, _ *musterv1.ListRunsRequest) (*musterv1.ListRunsResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	answer := &musterv1.ListRunsResponse{}
	for _, state := range a.runs {
		answer.Runs = append(answer.Runs, state.proto)
	}
	return answer, nil
}
