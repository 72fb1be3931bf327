package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// repeated calls until a refusal, at most `most` times, with several calls at a time, and returns its reason.
func (w *limited) repeated(most int, call func(ctx context.Context, i int) error) (refusal string) {
	var mutex sync.Mutex
	var next int
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				mutex.Lock()
				i := next
				next++
				stop := refusal != "" || i >= most
				mutex.Unlock()
				if stop {
					return
				}
				ctx, cancel := context.WithTimeout(w.ctx, soon)
				err := call(ctx, i)
				cancel()
				mutex.Lock()
				if err != nil && refusal == "" {
					refusal = refusalOf(err)
				}
				mutex.Unlock()
			}
		})
	}
	workers.Wait()
	return refusal
}

// held opens streams that stay open until the end of the scenario, and returns the first refusal of one.
func (w *limited) held(count int, open func(ctx context.Context, i int) (grpc.ClientStream, error)) string {
	refusals := make(chan string, count)
	for i := range count {
		stream, err := open(w.ctx, i)
		if err != nil {
			return refusalOf(err)
		}
		go func() {
			for {
				var response []byte
				if err := stream.RecvMsg(&response); err != nil {
					if why := refusalOf(err); why != "" {
						refusals <- why
					}
					return
				}
			}
		}()
	}
	select {
	case refusal := <-refusals:
		return refusal
	case <-time.After(soon):
		return ""
	}
}

var bothWays = &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}

// opening returns a function for held: it opens a stream with a first message.
func opening(connection *grpc.ClientConn, method string, first func(i int) proto.Message) func(ctx context.Context, i int) (grpc.ClientStream, error) {
	return func(ctx context.Context, i int) (grpc.ClientStream, error) {
		stream, err := connection.NewStream(ctx, bothWays, method, grpc.ForceCodec(rawCodec{}))
		if err != nil {
			return nil, err
		}
		if message := first(i); message != nil {
			encoded, _ := proto.Marshal(message)
			_ = stream.SendMsg(&encoded)
		}
		return stream, nil
	}
}

func (w *limited) key(plugin string) *musterv1.ResultKey {
	return &musterv1.ResultKey{Run: w.run, Plugin: plugin, Node: "n1"}
}

func (w *limited) heartbeat(i int) proto.Message {
	return &musterv1.StreamHeartbeatsRequest{Node: "n1", InstanceId: "process", Sequence: 1,
		Activities: []*musterv1.Activity{{Key: w.key(fmt.Sprintf("p%d", i)), Phase: musterv1.Phase_PHASE_WORKING}}}
}

// open opens the upload of n1 for a plugin.
func (w *limited) open(connection *grpc.ClientConn, plugin string, change func(*musterv1.OpenUploadRequest)) (*musterv1.OpenUploadResponse, error) {
	request := &musterv1.OpenUploadRequest{Description: &musterv1.ResultDescription{Key: w.key(plugin), Attempt: 1}}
	if change != nil {
		change(request)
	}
	ctx, cancel := context.WithTimeout(w.ctx, soon)
	defer cancel()
	return musterv1.NewResultServiceClient(connection).OpenUpload(ctx, request)
}

func publicKey(w *limited) string {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(w.t)
	der := must(x509.MarshalPKIXPublicKey(&key.PublicKey))(w.t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// The scenarios of all rows, by their text. None prevents a later one.
var scenarios = func() map[string]scenario {
	all := maps.Clone(firstScenarios)
	maps.Copy(all, httpScenarios)
	maps.Copy(all, callScenarios)
	return all
}()

var firstScenarios = map[string]scenario{
	"page of audit records": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		client := musterv1.NewAuditServiceClient(w.dial(aggregatorListener, "Operator"))
		return w.repeated(10, func(ctx context.Context, i int) error {
			_, err := client.ListAuditRecords(ctx, &musterv1.ListAuditRecordsRequest{PageSize: 1001})
			return err
		})
	}},
	"certificates by renewal": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		client, request := musterv1.NewIdentityServiceClient(w.dialNode(aggregatorListener)), csr(w.t)
		return w.repeated(100, func(ctx context.Context, i int) error {
			_, err := client.RenewCertificate(ctx, &musterv1.RenewCertificateRequest{CsrPem: request})
			return err
		})
	}},
	"join tokens": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		client, public := musterv1.NewEnrollmentServiceClient(w.dial(aggregatorListener, "Operator")), publicKey(w)
		return w.repeated(1100, func(ctx context.Context, i int) error {
			id := make([]byte, 16)
			_, _ = rand.Read(id)
			_, err := client.CreateJoinToken(ctx, &musterv1.CreateJoinTokenRequest{Id: hex.EncodeToString(id), PublicKeyPem: public, Count: 1})
			return err
		})
	}},
	"streams of WatchRun, FollowChanges, FollowVerdicts, WatchJob": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		return w.held(65, opening(w.dialNode(aggregatorListener), "/muster.v1.RunService/WatchRun",
			func(int) proto.Message { return &musterv1.WatchRunRequest{Run: w.run} }))
	}},
	"message": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		client := musterv1.NewRunServiceClient(w.dial(aggregatorListener, "Operator"))
		return w.repeated(1, func(ctx context.Context, i int) error {
			_, err := client.CreateRun(ctx, &musterv1.CreateRunRequest{Title: strings.Repeat("x", 8<<20)})
			return err
		})
	}},
	"message of a node, pair or plugin": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		client := musterv1.NewResultServiceClient(w.dialNode(aggregatorListener))
		return w.repeated(1, func(ctx context.Context, i int) error {
			_, err := client.SubmitResult(ctx, &musterv1.SubmitResultRequest{Body: make([]byte, 2<<20)})
			return err
		})
	}},
	"message without a certificate": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		client := musterv1.NewJoinServiceClient(w.dial(joinListener, ""))
		return w.repeated(20, func(ctx context.Context, i int) error {
			_, err := client.Join(ctx, &musterv1.JoinRequest{CsrPem: strings.Repeat("x", 64<<10)})
			return err
		})
	}},
	"calls without a certificate": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		connection := w.dial(joinListener, "")
		return w.repeated(2000, func(ctx context.Context, i int) error {
			return connection.Invoke(ctx, "/grpc.health.v1.Health/Check", &[]byte{}, &[]byte{}, grpc.ForceCodec(rawCodec{}))
		})
	}},
	"upload streams of a node or a pair": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		connection := w.dialNode(aggregatorListener)
		return w.held(17, func(ctx context.Context, i int) (grpc.ClientStream, error) {
			opened, err := w.open(connection, fmt.Sprintf("p%d", i), nil)
			if err != nil {
				return nil, err
			}
			return opening(connection, "/muster.v1.ResultService/Upload", func(int) proto.Message {
				return &musterv1.UploadRequest{Message: &musterv1.UploadRequest_Start_{
					Start: &musterv1.UploadRequest_Start{UploadId: opened.UploadId, Epoch: opened.Epoch}}}
			})(ctx, i)
		})
	}},
	"upload sessions": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		connection := w.dialNode(aggregatorListener)
		return w.repeated(walkPlugins, func(ctx context.Context, i int) error {
			_, err := w.open(connection, fmt.Sprintf("p%d", i), nil)
			return err
		})
	}},
	"size of a result": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		_, err := w.open(w.dialNode(aggregatorListener), "p0", func(request *musterv1.OpenUploadRequest) { request.Size = proto.Int64(1<<20 + 1) })
		return refusalOf(err)
	}},
	"chunk, raw; encoded": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		u := openUpload(w.t, must(w.fleet.Export(w.run, "p0", "n1"))(w.t))
		text := strings.Repeat("x", 1<<20+1)
		u.chunk(0, text, crc32.Checksum([]byte(text), castagnoli))
		return refusalOf(u.end())
	}},
	"inline result": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		client := musterv1.NewResultServiceClient(w.dialNode(aggregatorListener))
		return w.repeated(20, func(ctx context.Context, i int) error {
			_, err := client.SubmitResult(ctx, smallResult(w.run, "p0", "n1", strings.Repeat("x", 64<<10+1)))
			return err
		})
	}},
	"text of an error result that is kept beside the result": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		request := smallResult(w.run, "p69", "n1", strings.Repeat("x", 10_000))
		request.Description.IsError = true
		ctx, cancel := context.WithTimeout(w.ctx, soon)
		defer cancel()
		result, err := musterv1.NewResultServiceClient(w.dialNode(aggregatorListener)).SubmitResult(ctx, request)
		if err != nil || len(result.Error) == 0 || len(result.Error) > 4096 {
			w.t.Errorf("the error has %d bytes, %v", len(result.GetError()), err)
			return ""
		}
		return "cut"
	}},
	"size of a file of node names (--nodes-file)": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		return w.mustered("run", "--plugin", "hostfacts", "--nodes-file", w.fileOf(64<<20+1))
	}},
	"plugin definition": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		return w.mustered("run", "-f", w.fileOf(1<<20+1), "--node", "n1")
	}},
	"number of an attempt": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		_, err := w.open(w.dialNode(aggregatorListener), "p1", func(request *musterv1.OpenUploadRequest) { request.Description.Attempt = 1 << 62 })
		return refusalOf(err)
	}},
	"text of an error that the command line and the agent deliver": {service: fleet.Aggregator, exhaust: (*limited).submitLongError},
	"calls of VerifyStore at a time":                               {service: fleet.Aggregator, exhaust: (*limited).verifyTogether},
	"unfinished bytes of an identity":                              {service: fleet.Aggregator, exhaust: (*limited).stageBytes, last: true, cannot: (*limited).cannotStageBytes},
	"calls of a node, pair or viewer":                              {service: fleet.Aggregator, exhaust: func(w *limited) string { return w.floodCalls(64) }},
	"calls that wait for a thread of gRPC":                         {service: fleet.Aggregator, exhaust: func(w *limited) string { return w.floodCalls(500) }},
	"answers that are not read":                                    {service: fleet.Status, exhaust: (*limited).leaveAnswersUnread},
	"streams of ReadResult, ReadArchive, ReadShare":                {service: fleet.Aggregator, exhaust: (*limited).leaveStreamsUnread},
	"audit records of refusals of one sender":                      {service: fleet.Aggregator, exhaust: (*limited).contradict},
	"spool of a relay, bytes":                                      {service: walkRelay, exhaust: (*limited).fillSpoolBytes},
	"spool of a relay, results":                                    {service: walkRelay, exhaust: (*limited).fillSpool},
	"attach streams of a child":                                    {service: fleet.Relay, exhaust: (*limited).openAttachments},
	"shared files: bytes":                                          {service: fleet.Relay, exhaust: func(w *limited) string { return w.share(1<<20 + 1) }},
	"shared files: number":                                         {service: fleet.Relay, exhaust: (*limited).shareFiles},
	"watches and event streams of an identity":                     {service: fleet.Gateway, exhaust: (*limited).watchByGateway},
	"requests in progress of a node, pair or viewer, without watches and event streams": {service: fleet.Gateway, exhaust: (*limited).leaveRequestsUnfinished},
	"JSON of requests in progress, of an identity":                                      {service: fleet.Gateway, exhaust: (*limited).leaveBodiesUnfinished},
	"bytes of the status that are sent to one slow reader; one snapshot may be larger":  {service: fleet.Gateway, exhaust: (*limited).leaveUnread},
	"streams without a certificate":                                                     {service: fleet.Aggregator, exhaust: (*limited).floodStreams},
	"connections without a certificate":                                                 {service: fleet.Aggregator, exhaust: (*limited).floodConnections},

	"heartbeat streams of one process": {service: fleet.Status, exhaust: func(w *limited) string {
		return w.held(65, opening(w.dialNode(statusListener), "/muster.v1.HeartbeatService/StreamHeartbeats", w.heartbeat))
	}},
	"first heartbeat of a stream": {service: fleet.Status, exhaust: func(w *limited) string {
		return w.held(1, opening(w.dialNode(statusListener), "/muster.v1.HeartbeatService/StreamHeartbeats",
			func(int) proto.Message { return nil }))
	}},
	"activities in a heartbeat": {service: fleet.Status, exhaust: func(w *limited) string {
		return w.held(1, opening(w.dialNode(statusListener), "/muster.v1.HeartbeatService/StreamHeartbeats", func(int) proto.Message {
			message := w.heartbeat(0).(*musterv1.StreamHeartbeatsRequest)
			for len(message.Activities) <= 1000 {
				message.Activities = append(message.Activities, message.Activities[0])
			}
			return message
		}))
	}},
	"senders in a message of a relay": {service: fleet.Status, exhaust: func(w *limited) string {
		return w.held(1, opening(w.dial(statusListener, "Relay"), "/muster.v1.HeartbeatService/RelayHeartbeats", func(int) proto.Message {
			message := &musterv1.RelayHeartbeatsRequest{Relay: "walker"}
			for i := range 1001 {
				message.Senders = append(message.Senders, &musterv1.RelayHeartbeatsRequest_Sender{Id: int32(i) + 1, Uri: w.callers.uri("Node")})
			}
			return message
		}))
	}},
	"senders of heartbeats": {service: fleet.Status, last: true, exhaust: func(w *limited) string {
		return w.held(30, opening(w.dial(statusListener, "RunPlugin"), "/muster.v1.HeartbeatService/StreamHeartbeats", func(i int) proto.Message {
			node := fmt.Sprintf("m%d", i)
			return &musterv1.StreamHeartbeatsRequest{Node: node, InstanceId: "process", Sequence: 1, Activities: []*musterv1.Activity{{
				Key: &musterv1.ResultKey{Run: w.wide, Plugin: "logs", Node: node}, Phase: musterv1.Phase_PHASE_WORKING}}}
		}))
	}},
	"watchers of status": {service: fleet.Status, exhaust: func(w *limited) string {
		connections := []*grpc.ClientConn{w.dial(statusListener, "Operator"), w.dial(statusListener, "Operator")}
		return w.held(1001, func(ctx context.Context, i int) (grpc.ClientStream, error) {
			return opening(connections[i%2], "/muster.v1.StatusService/WatchStatus",
				func(int) proto.Message { return &musterv1.WatchStatusRequest{Run: w.wide, OmitPairs: true} })(ctx, i)
		})
	}},
	"message to the status service": {service: fleet.Status, exhaust: func(w *limited) string {
		client := musterv1.NewStatusServiceClient(w.dialNode(statusListener))
		return w.repeated(1, func(ctx context.Context, i int) error {
			_, err := client.ReportProgress(ctx, &musterv1.ReportProgressRequest{Key: w.key("p0"), Message: strings.Repeat("x", 2<<20)})
			return err
		})
	}},
	"progress: counts, message, names": {service: fleet.Status, exhaust: func(w *limited) string {
		client := musterv1.NewStatusServiceClient(w.dialNode(statusListener))
		return w.repeated(20, func(ctx context.Context, i int) error {
			_, err := client.ReportProgress(ctx, &musterv1.ReportProgressRequest{Key: w.key("p0"), Total: 1e13, Completed: 1})
			return err
		})
	}},

	"heartbeat streams at a relay": {service: fleet.Relay, exhaust: func(w *limited) string {
		return w.held(65, opening(w.dialNode(relayListener), "/muster.v1.HeartbeatService/StreamHeartbeats", w.heartbeat))
	}},
	"running jobs of one submitter": {service: fleet.Relay, exhaust: func(w *limited) string {
		// The first is refused until the relay knows the operator's signatures; the job of an earlier try is running.
		for end := time.Now().Add(soon); time.Now().Before(end); {
			refusal := w.mustered("exec", "--node", "n1", "--detach", "--", "/bin/sleep", "600")
			if refusal != "" && refusal != "NO_COMMAND_AUTHORITY" {
				return refusal
			}
		}
		return ""
	}},
	"descendants in one message": {service: fleet.Relay, exhaust: func(w *limited) string {
		return w.relayed(nil, topologyOf(501, func(i int) *musterv1.AttachStatement {
			return &musterv1.AttachStatement{Child: w.forger.uriOf(fmt.Sprintf("d%d", i))}
		}))
	}},
	"attach statements that cannot be verified":             {service: fleet.Relay, exhaust: (*limited).forgeStatements},
	"version and addresses in the first message of a child": {service: fleet.Relay, exhaust: (*limited).attachWithLongVersion},
	"attach statement":       {service: fleet.Relay, exhaust: (*limited).attachWithLargeStatement},
	"records in one message": {service: fleet.Relay, exhaust: func(w *limited) string { return w.relayed(nil, recordsOf(11, 30<<10)) }},
	"one job record":         {service: fleet.Relay, exhaust: func(w *limited) string { return w.relayed(nil, recordsOf(1, 49<<10)) }},
	"size of a shared file":  {service: fleet.Relay, exhaust: func(w *limited) string { return w.share(2 << 20) }},
	"targets of a job":       {service: fleet.Relay, exhaust: (*limited).commandManyNodes},

	"SETTINGS frames; one with many settings counts more": ofGateway("settings", writeSettings),
	"PING frames":             ofGateway("pings", writePing),
	"RST_STREAM frames":       ofGateway("resets", writeReset),
	"HEADERS frames":          ofGateway("requests", writeHeaders),
	"DATA frames below 1 KiB": ofGateway("small_data", writeSmallData),
	"WINDOW_UPDATE frames, besides one for each 512 bytes that the gateway has sent": ofGateway("window_updates", writeWindowUpdate),
	"other frames, such as PRIORITY and CONTINUATION":                                ofGateway("other_frames", writePriority),
	"CONTINUATION frames of a header block":                                          ofGateway("long_headers", writeContinuation),
	"HTTP/2 frames in a second":                                                      ofAggregator(writePriority),
	"header block of a call as it is sent":                                           ofAggregator(writeContinuation),

	"open connections of an identity": {service: fleet.Gateway, last: true, exhaust: func(w *limited) string {
		return w.repeated(40, func(ctx context.Context, i int) error {
			return w.request(ctx, w.https("Operator"), "GET", "/api/v1/runs", "") // its connection stays open
		})
	}},
	"result of a legacy client (0: no limit)": {service: fleet.Gateway, exhaust: func(w *limited) string {
		credential := must(w.fleet.Export(w.run, "p2", "n1"))(w.t)
		return w.repeated(4, func(ctx context.Context, i int) error {
			code, err := put(w.t, credential, "n1", strings.Repeat("x", 2<<20+1))
			return errorOfCode(code, err)
		})
	}},
	"progress report of a plugin": {service: fleet.Gateway, exhaust: func(w *limited) string {
		credential := must(w.fleet.Export(w.run, "p2", "n1"))(w.t)
		client := must(credential.HTTP())(w.t)
		return w.repeated(4, func(ctx context.Context, i int) error {
			request := must(http.NewRequestWithContext(ctx, "POST", credential.AggregatorURL+"/api/v1/progress/by-node/n1/p2",
				bytes.NewReader([]byte(`{"msg":"`+strings.Repeat("x", 1<<20)+`"}`))))(w.t)
			return errorOfCode(codeOf(w.t, client, request), nil)
		})
	}},
}

// fileOf makes an empty file of a size.
func (w *limited) fileOf(size int64) string {
	path := must(w.fleet.WriteFile(fmt.Sprintf("of-%d.yaml", size), ""))(w.t)
	check(w.t, os.Truncate(path, size))
	return path
}

// mustered runs a command of the CLI, and returns the reason of its error.
func (w *limited) mustered(arguments ...string) string {
	_, stderr, _ := machine{fleet: w.fleet, home: w.fleet.Home}.muster(w.t, nil, arguments...)
	return reasonInText.FindString(stderr)
}
