package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const walkRelay = "r8" // for the scenario of its spool

// startWalkRelay starts a relay that has lost its upstream connection. n3 is attached to it, and may use two of the eight
// results of its spool, and 1 MiB.
func (w *limited) startWalkRelay() {
	r, address := localRelay(w.t, w.fleet, walkRelay, "")
	w.spooler = joinAt(w.t, w.fleet, "n3", address).identity(w.t)
	r.program.End()
	config := string(must(os.ReadFile(r.config()))(w.t)) + "parents: [127.0.0.1:1]\nspool:\n  max_results: 8\n  max_bytes: 4MiB\n"
	check(w.t, os.WriteFile(r.config(), []byte(config), 0o600))
	program := must(w.fleet.Start(nil, nil, fleet.Relay, "--config", r.config()))(w.t)
	w.t.Cleanup(func() { endAndLog(w.t, r.name, program) })
	w.callers.listeners[walkRelay] = address
}

// spoolUploads opens uploads of n3 at a relay without an upstream connection until one is refused, and returns the reason.
func (w *limited) spoolUploads(count int, change func(*musterv1.OpenUploadRequest)) string {
	connection := must(w.spooler.Dial(w.callers.listeners[walkRelay], w.spooler.Certificate, w.spooler.Key))(w.t)
	w.t.Cleanup(func() { connection.Close() })
	for i := range count {
		refusal := ""
		until(w.t, "n3 is attached again", func() bool {
			_, err := w.open(connection, fmt.Sprintf("p%d", i), func(request *musterv1.OpenUploadRequest) {
				request.Description.Key.Node = "n3"
				change(request)
			})
			refusal = refusalOf(err)
			return refusal != "NOT_ATTACHED"
		})
		if refusal != "" {
			return refusal
		}
	}
	return ""
}

// fillSpool opens more uploads than n3 may spool.
func (w *limited) fillSpool() string { return w.spoolUploads(4, func(*musterv1.OpenUploadRequest) {}) }

// fillSpoolBytes opens an upload that is larger than what n3 may spool.
func (w *limited) fillSpoolBytes() string {
	return w.spoolUploads(1, func(request *musterv1.OpenUploadRequest) { request.Size = proto.Int64(1<<20 + 1) })
}

// headersOf are the headers of a call.
func headersOf(path string) (fields []hpack.HeaderField) {
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", path},
		{":authority", "x"}, {"te", "trailers"}, {"content-type", "application/grpc"}} {
		fields = append(fields, hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	return fields
}

// callWriter writes the frames of unary calls.
type callWriter struct {
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   *bytes.Buffer
	next    uint32 // the stream of the next call
}

func newCallWriter(framer *http2.Framer) *callWriter {
	block := &bytes.Buffer{}
	return &callWriter{framer, hpack.NewEncoder(block), block, 1}
}

// begin writes the headers of a call, and returns its stream.
func (c *callWriter) begin(path string) (id uint32, err error) {
	c.block.Reset()
	for _, field := range headersOf(path) {
		_ = c.encoder.WriteField(field)
	}
	id = c.next
	c.next += 2
	return id, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true})
}

// write writes the frames of a call, and returns its stream.
func (c *callWriter) write(method string, request proto.Message) (id uint32, err error) {
	message := make([]byte, 5) // not compressed, and the length
	if request != nil {
		message, _ = proto.MarshalOptions{}.MarshalAppend(message, request)
		binary.BigEndian.PutUint32(message[1:], uint32(len(message)-5))
	}
	id, err = c.begin(method)
	return id, errors.Join(err, c.framer.WriteData(id, true, message))
}

// floodCalls makes calls as a new node until one is refused, faster than a library can: `together` are in progress at a time.
func (w *limited) floodCalls(together int) string {
	conn, framer := w.http2To(aggregatorListener, w.newNode())
	defer conn.Close()
	check(w.t, errors.Join(conn.SetDeadline(time.Now().Add(withinAMinute)), settle(framer)))
	var batch bytes.Buffer
	framer = http2.NewFramer(&batch, conn)
	calls := newCallWriter(framer)
	refusal := ""
	decoder := hpack.NewDecoder(4096, func(field hpack.HeaderField) {
		if field.Name == "grpc-message" && refusal == "" {
			refusal = field.Value
		}
	})
	const most = 200_000
	for calls.next < 2*most {
		for range together {
			_, err := calls.write("/grpc.health.v1.Health/Check", nil)
			check(w.t, err)
		}
		if _, err := io.Copy(conn, &batch); err != nil {
			return reasonInText.FindString(refusal) // the connection of a peer with very many refusals is closed
		}
		for ended := 0; ended < together; {
			frame, err := framer.ReadFrame()
			if err != nil {
				return reasonInText.FindString(refusal)
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = framer.WriteSettingsAck()
				}
			case *http2.DataFrame:
				if length := frame.Header().Length; length > 0 {
					_ = framer.WriteWindowUpdate(0, length)
				}
			case *http2.PingFrame:
				if !frame.IsAck() {
					_ = framer.WritePing(true, frame.Data)
				}
			case *http2.HeadersFrame:
				_, _ = decoder.Write(frame.HeaderBlockFragment())
				if frame.StreamEnded() {
					ended++
				}
			case *http2.RSTStreamFrame:
				ended++
			}
		}
		if refusal != "" {
			w.t.Logf("one of the last of %d calls was refused: %s", calls.next/2, refusal)
			return reasonInText.FindString(refusal)
		}
	}
	return ""
}

// cannotStageBytes returns why stageBytes cannot exceed its limit on this disk.
func (w *limited) cannotStageBytes() string {
	var space syscall.Statfs_t
	check(w.t, syscall.Statfs(w.fleet.Home, &space))
	if free := int64(space.Bavail) * space.Bsize; free/100 > walkUploads/2*(15<<20) {
		return fmt.Sprintf("1 %% of %d GiB is more than %d uploads reserve", free>>30, walkUploads/2)
	}
	return ""
}

// stageBytes leaves unfinished uploads of n1, whose space is reserved in steps of 16 MiB, until their bytes exceed its share
// of the free disk.
func (w *limited) stageBytes() string {
	connection := w.dialNode(aggregatorListener)
	client := musterv1.NewResultServiceClient(connection)
	stage := func(plugin string) error {
		opened, err := w.open(connection, plugin, nil)
		if err != nil || opened.Committed != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(w.ctx, soon)
		defer cancel()
		stream, err := client.Upload(ctx)
		if err != nil {
			return err
		}
		u := uploader{stream, opened}
		_ = stream.Send(&musterv1.UploadRequest{Message: &musterv1.UploadRequest_Start_{
			Start: &musterv1.UploadRequest_Start{UploadId: opened.UploadId, Epoch: opened.Epoch}}})
		for i := range int64(2) { // the second reserves a step
			u.chunk(opened.Offset+i, "x", crc32.Checksum([]byte("x"), castagnoli))
		}
		for {
			response, err := stream.Recv()
			if err != nil {
				return err
			}
			if response.GetAck().GetWritten() >= opened.Offset+2 {
				return nil
			}
		}
	}
	for i := range walkPlugins {
		switch refusal := refusalOf(stage(fmt.Sprintf("p%d", i))); refusal {
		case "", "TOO_MANY_UPLOADS", "RESULT_CONFLICT": // others are open, or it is committed
		default:
			w.t.Logf("the upload %d was refused", i)
			return refusal
		}
	}
	return ""
}

// shareFiles shares more files of n1 than one source may.
func (w *limited) shareFiles() string {
	path, _ := fileOf(w.t, w.n1, 100)
	for i := range 5 {
		if _, stderr, code := w.n1.muster(w.t, nil, "share", path, "--to", "n2", "--id", fmt.Sprintf("f%d", i)); code != 0 {
			return reasonInText.FindString(stderr)
		}
	}
	return ""
}

// share shares a file of n1, and returns why it is refused.
func (w *limited) share(size int) string {
	path, _ := fileOf(w.t, w.n1, size)
	_, stderr, _ := w.n1.muster(w.t, nil, "share", path, "--to", "n2", "--id", "large")
	return reasonInText.FindString(stderr)
}

// openAttachments opens many Attach streams of n1 together. Each ends soon, because a later one takes over.
func (w *limited) openAttachments() string {
	connection := w.dialNode(relayListener)
	for end := time.Now().Add(soon); time.Now().Before(end); {
		refusals := make(chan string, 200)
		for i := range cap(refusals) {
			go func() {
				stream, err := opening(connection, "/muster.v1.AttachService/Attach", func(int) proto.Message {
					return &musterv1.AttachRequest{Message: &musterv1.AttachRequest_Beat_{Beat: &musterv1.AttachRequest_Beat{}}}
				})(w.ctx, i)
				for err == nil {
					var response []byte
					err = stream.RecvMsg(&response)
				}
				refusals <- refusalOf(err)
			}()
		}
		for range cap(refusals) {
			if refusal := <-refusals; refusal == "TOO_MANY_STREAMS_OF_CALLER" {
				return refusal
			}
		}
	}
	return ""
}

// verifyTogether verifies the store again and again, with many calls at a time.
func (w *limited) verifyTogether() string {
	client := musterv1.NewVerificationServiceClient(w.dial(aggregatorListener, "Operator"))
	return w.repeated(10_000, func(ctx context.Context, i int) error {
		stream, err := client.VerifyStore(ctx, &musterv1.VerifyStoreRequest{})
		for err == nil {
			_, err = stream.Recv()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
}

// submitLongError submits an error text that is too long with the command line.
func (w *limited) submitLongError() string {
	credential := must(w.fleet.Export(w.run, "p67", "n1"))(w.t)
	file := must(w.fleet.WriteCredential("p67.json", credential))(w.t)
	w.mustered("submit", "--error", strings.Repeat("x", 100<<10), "--config", file)
	if size := operator(w.t, w.fleet).result(w.t, w.run, "p67", "n1").Size; size == 0 || size > 64<<10 {
		w.t.Errorf("the error has %d bytes", size)
		return ""
	}
	return "cut"
}

// contradict makes n1 contradict its committed result more often than its refusals are recorded one by one.
func (w *limited) contradict() string {
	connection := w.dialNode(aggregatorListener)
	const plugin, conflicts = "p68", 1100
	ctx, cancel := context.WithTimeout(w.ctx, soon)
	defer cancel()
	_, err := musterv1.NewResultServiceClient(connection).SubmitResult(ctx, smallResult(w.run, plugin, "n1", "true"))
	check(w.t, err)
	refused := w.repeated(conflicts, func(_ context.Context, i int) error {
		digest := make([]byte, 32)
		_, _ = rand.Read(digest)
		_, err := w.open(connection, plugin, func(request *musterv1.OpenUploadRequest) { request.Sha256 = digest })
		if why := refusalOf(err); why != "RESULT_CONFLICT" {
			return fmt.Errorf("refused with %q: %w", why, err)
		}
		return nil
	})
	if refused != "" {
		return refused
	}
	audit := musterv1.NewAuditServiceClient(w.dial(aggregatorListener, "Operator"))
	records, most := 0, int64(0)
	for token := ""; ; {
		page := must(audit.ListAuditRecords(w.ctx, &musterv1.ListAuditRecordsRequest{Run: w.run, PageSize: 1000, PageToken: token,
			Actor: w.callers.uri("Node"), Kinds: []musterv1.AuditKind{musterv1.AuditKind_AUDIT_KIND_CONFLICT}}))(w.t)
		for _, record := range page.Records {
			records, most = records+1, max(most, record.Count)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	w.t.Logf("%d conflicts have %d records, one of which counts %d", conflicts, records, most)
	if records > 1000 || most < 2 {
		return ""
	}
	return "counted"
}

// watchByGateway opens more event streams than an identity may have.
func (w *limited) watchByGateway() string {
	client := w.https("Operator")
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true // 64 streams on a connection
	for range 201 {
		request := must(http.NewRequestWithContext(w.ctx, "GET", w.callers.operator.Gateway[0]+"/api/v1/runs/"+w.wide+"/status:watch", nil))(w.t)
		response, err := client.Do(request)
		if err != nil {
			return ""
		}
		if response.StatusCode != http.StatusOK {
			defer response.Body.Close()
			return reasonInText.FindString(string(must(io.ReadAll(response.Body))(w.t)))
		}
		w.t.Cleanup(func() { response.Body.Close() })
	}
	return ""
}
