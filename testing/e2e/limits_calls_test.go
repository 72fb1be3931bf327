package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// callScenarios are those of further limits of the gRPC services, by the text of their row.
var callScenarios = map[string]scenario{
	"streams before the settings are acknowledged": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		return w.openStreams(w.newNode(), 101, false)
	}},
	"streams": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		chain, key := w.callers.issue(w.t, "Operator")
		return w.openStreams(&fleet.Operator{Certificate: chain, Key: key}, 1025, true)
	}},
	"streams of a node, pair or viewer": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		return w.openStreams(w.newNode(), 513, true)
	}},
	"metadata": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		if w.sendMetadata(true) != "8" {
			return ""
		}
		return "the call fails with RESOURCE_EXHAUSTED"
	}},
	"metadata before the settings are acknowledged": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		if code := w.sendMetadata(false); code != "" && code != "8" {
			return ""
		}
		return "connection or stream closed"
	}},
	"message of a viewer": {service: fleet.Status, exhaust: func(w *limited) string {
		client := musterv1.NewStatusServiceClient(w.dial(statusListener, "RunViewer"))
		return w.repeated(4, func(ctx context.Context, i int) error {
			_, err := client.GetStatus(ctx, &musterv1.GetStatusRequest{Run: w.wide, PageToken: strings.Repeat("x", 64<<10)})
			return err
		})
	}},
	"bytes of messages that have not arrived whole": {service: fleet.Aggregator, exhaust: (*limited).leaveMessagesUnfinished},
	"signature of a result; certificates of its signer": {service: fleet.Aggregator, exhaust: func(w *limited) string {
		client := musterv1.NewResultServiceClient(w.dialNode(aggregatorListener))
		return w.repeated(4, func(ctx context.Context, i int) error {
			request := smallResult(w.second, "r4", "n1", "x")
			request.Signature = &musterv1.Signature{Value: make([]byte, 257)}
			_, err := client.SubmitResult(ctx, request)
			return err
		})
	}},

	"uploads upstream": {service: fleet.Relay, exhaust: (*limited).uploadThroughRelay},
	"heartbeat at a relay, after its texts were cut": {service: fleet.Relay, exhaust: func(w *limited) string {
		return w.held(1, opening(w.dialNode(relayListener), "/muster.v1.HeartbeatService/StreamHeartbeats", func(int) proto.Message {
			message := w.heartbeat(0).(*musterv1.StreamHeartbeatsRequest)
			for i := range 999 {
				key := w.key(fmt.Sprintf("%s%d", strings.Repeat("p", 240), i))
				message.Activities = append(message.Activities, &musterv1.Activity{Key: key, Phase: musterv1.Phase_PHASE_WORKING, Message: strings.Repeat("m", 256)})
			}
			return message
		}))
	}},
	"information of a node about its adapters and its disk": {service: fleet.Relay, exhaust: func(w *limited) string {
		return w.relayed(nil, &musterv1.AttachRequest{Message: &musterv1.AttachRequest_Info{
			Info: &musterv1.NodeInfo{Version: strings.Repeat("v", 1025)}}})
	}},
	"descendants to forget in one message": {service: fleet.Relay, exhaust: func(w *limited) string {
		forgotten := make([]string, 501)
		for i := range forgotten {
			forgotten[i] = w.forger.uriOf(fmt.Sprintf("d%d", i))
		}
		return w.relayed(nil, &musterv1.AttachRequest{Message: &musterv1.AttachRequest_Topology{
			Topology: &musterv1.AttachRequest_TopologyUpdate{ForgottenUris: forgotten}}})
	}},
	"signed command, with the documents, parameters and files of a deployment": {service: fleet.Relay, exhaust: func(w *limited) string {
		client := musterv1.NewJobServiceClient(w.dial(relayListener, "Operator"))
		return w.repeated(4, func(ctx context.Context, i int) error {
			_, err := client.SubmitJob(ctx, &musterv1.SubmitJobRequest{Command: &musterv1.SignedCommand{Command: make([]byte, 128<<10+1)}})
			return err
		})
	}},

	"documents and parameters of a deployment": {service: fleet.Jobs, exhaust: func(w *limited) string {
		return w.deploy(1, func(command *musterv1.Command) {
			command.Container.Deployment.Parameters = `{"p":"` + strings.Repeat("x", 32<<10) + `"}`
		})
	}},
	"files of a deployment": {service: fleet.Jobs, exhaust: func(w *limited) string {
		client := musterv1.NewDeploymentServiceClient(w.dial(jobsListener, "Operator"))
		w.storeType("filled", "adHoc: true\n")
		request := &musterv1.PlanDeploymentRequest{Type: "filled@1.0.0"}
		for i := range 1001 {
			request.Files = append(request.Files, &musterv1.Command_File{Path: fmt.Sprintf("f%04d", i), Content: []byte("x")})
		}
		return w.repeated(1, func(ctx context.Context, i int) error {
			_, err := client.PlanDeployment(ctx, request)
			return err
		})
	}},
	"deployments that have not ended": {service: fleet.Jobs, last: true, exhaust: func(w *limited) string { return w.deploy(2000, nil) }},
	"versions of template types, and of templates": {service: fleet.Jobs, last: true, exhaust: func(w *limited) string {
		client := musterv1.NewTemplateServiceClient(w.dial(jobsListener, "Operator"))
		return w.repeated(5100, func(ctx context.Context, i int) error {
			_, err := client.CreateTemplateType(ctx, &musterv1.CreateTemplateTypeRequest{Document: typeDocument("many", fmt.Sprintf("1.0.%d", i), "")})
			return err
		})
	}},
}

// openStreams opens streams of one connection to the aggregator, which do not end, until it is closed.
func (w *limited) openStreams(as *fleet.Operator, streams int, settled bool) string {
	conn, framer := w.http2To(aggregatorListener, as)
	defer conn.Close()
	if settled {
		check(w.t, settle(framer))
	}
	calls := newCallWriter(framer)
	for range streams {
		if _, err := calls.begin("/grpc.health.v1.Health/Check"); err != nil {
			break
		}
	}
	return w.endOfConnection(framer)
}

// endOfConnection reads frames until the connection is closed.
func (w *limited) endOfConnection(framer *http2.Framer) string {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			w.t.Logf("the connection ends: %v", err)
			if strings.Contains(err.Error(), "timeout") {
				return ""
			}
			return "connection closed"
		}
		if _, is := frame.(*http2.GoAwayFrame); is {
			return "connection closed"
		}
	}
}

// sendMetadata sends a call with long metadata, maybe before it reads the settings of the server. It returns the status of the
// call; empty if its stream or the connection is closed.
func (w *limited) sendMetadata(settled bool) string {
	conn, framer := w.http2To(aggregatorListener, w.newNode())
	defer conn.Close()
	if settled {
		check(w.t, settle(framer))
	}
	calls := newCallWriter(framer)
	for _, field := range headersOf("/grpc.health.v1.Health/Check") {
		_ = calls.encoder.WriteField(field)
	}
	_ = calls.encoder.WriteField(hpack.HeaderField{Name: "x-long", Value: strings.Repeat("{", 9<<10), Sensitive: true}) // Huffman's code would be longer
	check(w.t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: calls.block.Bytes(), EndHeaders: true}))
	code := ""
	decoder := hpack.NewDecoder(4096, func(field hpack.HeaderField) {
		if field.Name == "grpc-status" {
			code = field.Value
		}
	})
	for code == "" {
		frame, err := framer.ReadFrame()
		if err != nil {
			w.t.Logf("the connection ends: %v", err)
			return ""
		}
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			_, _ = decoder.Write(frame.HeaderBlockFragment())
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return ""
		}
	}
	return code
}

// leaveMessagesUnfinished sends large messages on one connection without their last bytes.
func (w *limited) leaveMessagesUnfinished() string {
	const message, messages = 7 << 20, 6
	chain, key := w.callers.issue(w.t, "Operator")
	transport := &http.Transport{ForceAttemptHTTP2: true, MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
		Certificates: []tls.Certificate{must(tls.X509KeyPair([]byte(chain), []byte(key)))(w.t)}}}
	defer transport.CloseIdleConnections()
	post := func(ctx context.Context, method string, body io.Reader) error {
		request := must(http.NewRequestWithContext(ctx, "POST", "https://"+w.callers.listeners[aggregatorListener]+method, body))(w.t)
		request.Header.Set("Content-Type", "application/grpc")
		request.Header.Set("TE", "trailers")
		response, err := transport.RoundTrip(request)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			w.t.Logf("a call was answered %q", response.Header)
		}
		return err
	}
	check(w.t, post(w.ctx, "/grpc.health.v1.Health/Check", strings.NewReader("\x00\x00\x00\x00\x00"))) // the connection that the others share
	ctx, cancel := context.WithTimeout(w.ctx, soon)
	defer cancel()
	closed := func() float64 {
		return counted(w.t, w.fleet, "aggregator", `muster_rpc_closed_connections_total{reason="too_many_frames"}`)
	}
	before := closed()
	var calls sync.WaitGroup
	for range messages {
		calls.Go(func() {
			head := make([]byte, 5)
			binary.BigEndian.PutUint32(head[1:], message)
			rest, end := io.Pipe() // its bytes never come
			defer end.Close()
			context.AfterFunc(ctx, func() { end.Close() })
			body := io.MultiReader(strings.NewReader(string(head)), io.LimitReader(zeros{}, message-1), rest)
			_ = post(ctx, "/muster.v1.RunService/CreateRun", body) // the end of the connection may be an error
			cancel()
		})
	}
	calls.Wait()
	until(w.t, "the closed connection is counted", func() bool { return closed() > before })
	return "connection closed"
}

// zeros reads as zeros without an end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// uploadThroughRelay begins more uploads of n1 through the root relay than it forwards of one node.
func (w *limited) uploadThroughRelay() string {
	connection := w.dialNode(relayListener)
	return w.held(12, func(ctx context.Context, i int) (grpc.ClientStream, error) {
		opened, err := w.open(connection, fmt.Sprintf("p%d", 20+i), nil)
		if err != nil {
			return nil, err
		}
		return opening(connection, "/muster.v1.ResultService/Upload", func(int) proto.Message {
			return &musterv1.UploadRequest{Message: &musterv1.UploadRequest_Start_{
				Start: &musterv1.UploadRequest_Start{UploadId: opened.UploadId, Epoch: opened.Epoch}}}
		})(ctx, i)
	})
}

// stallUpload attaches an upload and sends nothing of it.
func (w *limited) stallUpload() func() string {
	connection := w.dialNode(aggregatorListener)
	opened := must(w.open(connection, "", func(request *musterv1.OpenUploadRequest) {
		request.Description.Key = &musterv1.ResultKey{Run: w.wide, Plugin: "logs", Node: "n1"}
	}))(w.t)
	return func() string {
		ctx, cancel := context.WithTimeout(w.ctx, 3*soon)
		defer cancel()
		stream, err := opening(connection, "/muster.v1.ResultService/Upload", func(int) proto.Message {
			return &musterv1.UploadRequest{Message: &musterv1.UploadRequest_Start_{
				Start: &musterv1.UploadRequest_Start{UploadId: opened.UploadId, Epoch: opened.Epoch}}}
		})(ctx, 0)
		for err == nil {
			var response []byte
			err = stream.RecvMsg(&response)
		}
		return refusalOf(err)
	}
}

const walkImage = "registry.example/walk@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func typeDocument(name, version, more string) string {
	return fmt.Sprintf("apiVersion: muster/v1\nkind: TemplateType\nname: %s\nversion: %s\nimage: %s\ncontract: 1\n"+
		"parameters: {p: {schema: {type: string}}}\n%s", name, version, walkImage, more)
}

func (w *limited) storeType(name, more string) {
	client := musterv1.NewTemplateServiceClient(w.dial(jobsListener, "Operator"))
	_, err := client.CreateTemplateType(w.ctx, &musterv1.CreateTemplateTypeRequest{Document: typeDocument(name, "1.0.0", more)})
	check(w.t, err)
}

// deploy creates deployments for all nodes, until one is refused.
func (w *limited) deploy(count int, change func(*musterv1.Command)) string {
	w.storeType("walked", "")
	public, key, err := ed25519.GenerateKey(rand.Reader)
	check(w.t, err)
	der := must(x509.MarshalPKIXPublicKey(public))(w.t)
	certificate := must(musterv1.NewIdentityServiceClient(w.dial(aggregatorListener, "Operator")).IssueCommandCertificate(w.ctx,
		&musterv1.IssueCommandCertificateRequest{PublicKeyPem: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}))(w.t)
	client := musterv1.NewDeploymentServiceClient(w.dial(jobsListener, "Operator"))
	plan := must(client.PlanDeployment(w.ctx, &musterv1.PlanDeploymentRequest{Type: "walked@1.0.0"}))(w.t)
	return w.repeated(count, func(ctx context.Context, i int) error {
		content := proto.CloneOf(plan.Deployment)
		content.Deployment = randomID()
		now := time.Now()
		command := &musterv1.Command{Fleet: w.callers.operator.Fleet, Job: randomID(), Nonce: []byte(randomID())[:16], Action: "deployment",
			Targets:   &musterv1.Command_Targets{All: true},
			Container: &musterv1.Command_Container{Image: plan.Image, Deployment: content},
			NotBefore: timestamppb.New(now), NotAfter: timestamppb.New(now.Add(2 * time.Minute)), TimeLimit: durationpb.New(time.Minute)}
		if change != nil {
			change(command)
		}
		encoded, err := proto.Marshal(command)
		if err != nil {
			return err
		}
		_, err = client.CreateDeployment(ctx, &musterv1.CreateDeploymentRequest{Command: &musterv1.SignedCommand{Command: encoded,
			Signature: ed25519.Sign(key, append([]byte("muster-command-v1\n"), encoded...)), CertificateChainPem: certificate.CertificateChainPem}})
		return err
	})
}

func randomID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}
