package rest

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// bulk serves the bytes of results and archives. Safe for concurrent use.
type bulk struct {
	results  musterv1.ResultServiceClient
	archives musterv1.ArchiveServiceClient
	metrics  *inspect.Metrics
	log      *slog.Logger
	open     limits.Quota // downloads in progress: each holds up to limits.DownloadWindow and two chunks in memory
}

func newBulk(results musterv1.ResultServiceClient, archives musterv1.ArchiveServiceClient, metrics *inspect.Metrics, log *slog.Logger) *bulk {
	b := &bulk{results: results, archives: archives, metrics: metrics, log: log,
		open: limits.Quota{All: int64(limits.Downloads), Each: int64(limits.DownloadsOfIdentity)}}
	metrics.Sample("downloads", "Downloads of results and archives in progress.", func() float64 { return float64(b.open.Held()) })
	return b
}

// stored is a file that can be read from any offset.
type stored struct {
	size      int64
	sha256    []byte // may be missing
	mediaType string
	name      string
	read      func(ctx context.Context, offset int64) (grpc.ServerStreamingClient[musterv1.FileChunk], error)
}

// archive answers with the bytes of a run's archive.
func (b *bulk) archive(w http.ResponseWriter, r *http.Request, names map[string]string) {
	archive, err := b.archives.GetArchive(r.Context(), &musterv1.GetArchiveRequest{Run: names["run"]})
	if err != nil {
		AnswerError(w, err)
		return
	}
	b.serve(w, r, &stored{
		size: archive.Size, sha256: archive.Sha256, mediaType: "application/gzip", name: archive.FileName,
		read: func(ctx context.Context, offset int64) (grpc.ServerStreamingClient[musterv1.FileChunk], error) {
			return b.archives.ReadArchive(ctx, &musterv1.ReadArchiveRequest{Run: names["run"], Offset: offset})
		},
	})
}

// result answers with the bytes of one result.
func (b *bulk) result(w http.ResponseWriter, r *http.Request, names map[string]string) {
	key := &musterv1.ResultKey{Run: names["run"], Plugin: names["plugin"], Node: names["node"]}
	result, err := b.results.GetResult(r.Context(), &musterv1.GetResultRequest{Key: key})
	if err != nil {
		AnswerError(w, err)
		return
	}
	if result.Outcome != musterv1.Outcome_OUTCOME_GENUINE && result.Size == 0 {
		AnswerProblem(w, http.StatusNotFound, ResultHasNoContent(key.Plugin, key.Node, result.Error))
		return
	}
	mediaType := result.MediaType
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	b.serve(w, r, &stored{
		size: result.Size, sha256: result.Sha256, mediaType: mediaType, name: result.FileName,
		read: func(ctx context.Context, offset int64) (grpc.ServerStreamingClient[musterv1.FileChunk], error) {
			return b.results.ReadResult(ctx, &musterv1.ReadResultRequest{Key: key, Offset: offset, Generation: result.Generation})
		},
	})
}

// serve sends a file or the requested part of it, unless the client has it already. An error after the first byte
// aborts the connection.
func (b *bulk) serve(w http.ResponseWriter, r *http.Request, file *stored) {
	etag := describe(w.Header(), file)
	if etag != "" && Matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	part, code := whole(file.size), http.StatusOK
	if text := r.Header.Get("Range"); text != "" && (r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == etag) {
		asked, result := parseRange(text, file.size)
		switch result {
		case rangeOutside:
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", file.size))
			AnswerProblem(w, http.StatusRequestedRangeNotSatisfiable, RangeOutside(text, file.size))
			return
		case rangeGood:
			part, code = asked, http.StatusPartialContent
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.first, part.first+part.length-1, file.size))
		}
	}
	w.Header().Set("Content-Length", strconv.FormatInt(part.length, 10))
	if r.Method == http.MethodHead || part.length == 0 {
		w.WriteHeader(code)
		return
	}
	holder := fleet.HolderOf(r.Context())
	if !b.open.Acquire(holder, 1) {
		b.metrics.RefusedByLimit(b.log, "downloads", holder, r.RemoteAddr)
		w.Header().Set("Retry-After", "1")
		AnswerProblem(w, http.StatusTooManyRequests, TooManyDownloads(int64(limits.DownloadsOfIdentity), int64(limits.Downloads)))
		return
	}
	defer b.open.Release(holder, 1)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	opened, err := file.read(ctx, part.first)
	if err != nil {
		AnswerError(w, err)
		return
	}
	stream := &chunks{from: opened, stall: time.AfterFunc(limits.ReadStall, func() { cancel(errSilent) })}
	defer stream.stall.Stop()
	chunk, err := stream.next(part.first) // an error before the first byte still gets its own answer
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errShort
		}
		AnswerError(w, err)
		return
	}
	w.WriteHeader(code)
	if err := b.copy(w, stream, chunk, part); err != nil {
		b.metrics.BrokenReads.Inc()
		b.log.Warn("download aborted", "path", r.URL.Path, "error", err)
		// The client must not treat what it has as the whole file.
		panic(http.ErrAbortHandler)
	}
}

// describe sets the headers of the whole file, and returns its ETag.
func describe(header http.Header, file *stored) (etag string) {
	header.Set("Content-Type", file.mediaType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Accept-Ranges", "bytes")
	if disposition := mime.FormatMediaType("attachment", map[string]string{"filename": file.name}); disposition != "" {
		header.Set("Content-Disposition", disposition)
	}
	if len(file.sha256) == 0 {
		return ""
	}
	digest := base64.StdEncoding.EncodeToString(file.sha256)
	header.Set("Digest", "sha-256="+digest)           // RFC 3230
	header.Set("Repr-Digest", "sha-256=:"+digest+":") // RFC 9530
	etag = `"` + hex.EncodeToString(file.sha256) + `"`
	header.Set("ETag", etag)
	return etag
}

var (
	errShort   = errors.New("the file is truncated")
	errSilent  = status.Error(codes.Unavailable, "the service stopped sending")
	errDamaged = errors.New("bytes were damaged in transit")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunks are the chunks of a download.
type chunks struct {
	from  grpc.ServerStreamingClient[musterv1.FileChunk]
	stall *time.Timer // ends the call if the service is silent
}

// next receives one chunk and checks it.
func (c *chunks) next(offset int64) (*musterv1.FileChunk, error) {
	c.stall.Reset(limits.ReadStall)
	chunk, err := c.from.Recv()
	c.stall.Stop() // the client has its own limit
	if err != nil {
		if errors.Is(context.Cause(c.from.Context()), errSilent) {
			return nil, errSilent
		}
		return nil, err
	}
	if chunk.Offset != offset {
		return nil, fmt.Errorf("got byte %d instead of %d", chunk.Offset, offset)
	}
	if crc32.Checksum(chunk.Data, castagnoli) != chunk.Crc32C {
		return nil, errDamaged
	}
	return chunk, nil
}

// copy writes a part, beginning with `chunk`. The listener disconnects a client that does not read it.
func (b *bulk) copy(w http.ResponseWriter, stream *chunks, chunk *musterv1.FileChunk, part span) error {
	offset, left := part.first, part.length
	for {
		data := chunk.Data[:min(int64(len(chunk.Data)), left)]
		offset += int64(len(chunk.Data))
		left -= int64(len(data))
		n, err := w.Write(data)
		b.metrics.ReadBytes.Add(float64(n))
		if err != nil || left == 0 {
			return err
		}
		if chunk, err = stream.next(offset); errors.Is(err, io.EOF) {
			return errShort
		} else if err != nil {
			return err
		}
	}
}
