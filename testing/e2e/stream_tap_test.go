package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const uploadMethod = "/muster.v1.ResultService/Upload"

// identity is the key of a program and its certificate, in PEM.
type identity struct{ chain, key string }

// identityIn reads the identity in a folder of a service, a relay or a node.
func identityIn(t *testing.T, folder string) identity {
	t.Helper()
	read := func(name string) string { return string(must(os.ReadFile(filepath.Join(folder, "tls", name)))(t)) }
	return identity{read("cert.pem"), read("key.pem")}
}

// uri is the URI in the certificate.
func (i identity) uri(t *testing.T) string {
	t.Helper()
	block, _ := pem.Decode([]byte(i.chain))
	return must(x509.ParseCertificate(block.Bytes))(t).URIs[0].String()
}

// tappedCall is a call as a program sent it.
type tappedCall struct {
	cell
	ctx      context.Context  // of the call of the program
	to       *grpc.ClientConn // the server, as the program
	caller   string           // the URI of the client, or of the identity that it forwards
	metadata metadata.MD
	messages [][]byte
}

// streamTap is a gRPC proxy with the key of the server and the keys of its clients: both ends take it for the other. It
// records every call. Its methods may be called from several goroutines.
type streamTap struct {
	address  string
	listener string

	mutex    sync.Mutex
	clients  map[string]tapClient // by URI
	calls    []*tappedCall
	held     map[string]bool // the callers whose uploads wait
	holds    func(caller string) bool
	released chan struct{}
}

// tapClient is a client of a tap.
type tapClient struct {
	role   string
	server *grpc.ClientConn
}

// newStreamTap listens in front of a server with this identity. Until release, it holds all but the beginning of the
// uploads of callers for which `holds` is true. A caller is a client, or the identity that it forwards.
func newStreamTap(t *testing.T, listener string, server identity, holds func(caller string) bool) *streamTap {
	t.Helper()
	socket := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &streamTap{address: socket.Addr().String(), listener: listener, clients: map[string]tapClient{},
		held: map[string]bool{}, holds: holds, released: make(chan struct{})}
	certificate := must(tls.X509KeyPair([]byte(server.chain), []byte(server.key)))(t)
	program := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(s.forward), grpc.MaxRecvMsgSize(16<<20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate},
			ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13})))
	go func() { _ = program.Serve(socket) }()
	t.Cleanup(program.Stop)
	return s
}

// admit lets a program with this role and identity reach the server at `to`.
func (s *streamTap) admit(t *testing.T, operator *fleet.Operator, to, role string, client identity) {
	t.Helper()
	connection := must(operator.Dial(to, client.chain, client.key, grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}))))(t)
	t.Cleanup(func() { connection.Close() })
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.clients[client.uri(t)] = tapClient{role, connection}
}

// recorded returns the calls so far that sent a message.
func (s *streamTap) recorded() (calls []*tappedCall) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, call := range s.calls {
		if len(call.messages) > 0 {
			copied := *call
			copied.messages = slices.Clone(call.messages)
			calls = append(calls, &copied)
		}
	}
	return calls
}

// holdsUploadOf reports whether the upload of a caller has sent all its bytes and waits for its end.
func (s *streamTap) holdsUploadOf(caller string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for held := range s.held {
		if strings.HasSuffix(held, caller) {
			return true
		}
	}
	return false
}

// release lets the held uploads end, and holds none from now on.
func (s *streamTap) release() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.holds, s.held = func(string) bool { return false }, map[string]bool{}
	close(s.released)
}

// record adds a message to a call. An upload is held until its sender has sent all messages.
func (s *streamTap) record(call *tappedCall, message []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	call.messages = append(call.messages, message)
	if call.isWholeUpload() && s.holds(call.caller) {
		s.held[call.caller] = true
	}
}

// await waits until release if `holds` is true for a call.
func (s *streamTap) await(call *tappedCall, holds func() bool) {
	s.mutex.Lock()
	hold := holds()
	s.mutex.Unlock()
	if !hold {
		return
	}
	select {
	case <-s.released:
	case <-call.ctx.Done():
	}
}

// awaitCall returns when a call may begin: the sender of a held upload does not open it again, which would end its epoch.
func (s *streamTap) awaitCall(call *tappedCall) {
	s.await(call, func() bool { return s.held[call.caller] && strings.HasPrefix(call.method, "/muster.v1.ResultService/") })
}

// awaitMessage returns when the message with this number may be sent: of a held upload, the start and the first chunk.
func (s *streamTap) awaitMessage(call *tappedCall, number int) {
	s.await(call, func() bool { return call.method == uploadMethod && number >= 2 && s.holds(call.caller) })
}

// forwardMessages sends the messages of a client until it sends no more.
func (s *streamTap) forwardMessages(call *tappedCall, down grpc.ServerStream, up grpc.ClientStream) {
	queue := make(chan []byte, 1000)
	go func() {
		number := 0
		for message := range queue {
			s.awaitMessage(call, number)
			number++
			_ = up.SendMsg(&message) // the reason of a failure is received
		}
		if down.Context().Err() == nil {
			_ = up.CloseSend()
		}
	}()
	defer close(queue)
	for {
		var message []byte
		if down.RecvMsg(&message) != nil {
			return // without an end of the messages, the call is cancelled
		}
		s.record(call, message)
		select {
		case queue <- message:
		case <-down.Context().Done():
			return
		}
	}
}

// forward is the handler of every method.
func (s *streamTap) forward(_ any, down grpc.ServerStream) error {
	ctx := down.Context()
	method, _ := grpc.MethodFromServerStream(down)
	from, _ := peer.FromContext(ctx)
	caller := from.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].URIs[0].String()
	s.mutex.Lock()
	client, known := s.clients[caller]
	s.mutex.Unlock()
	if !known {
		return status.Errorf(codes.Internal, "the tap does not have the key of %s", caller)
	}
	call := &tappedCall{cell: cell{listener: s.listener, method: method, role: client.role, allowed: true}, to: client.server,
		ctx: ctx, caller: caller, metadata: metadata.MD{}}
	incoming, _ := metadata.FromIncomingContext(ctx)
	for name, values := range incoming {
		if strings.HasPrefix(name, "muster-") {
			call.metadata[name] = values
		}
	}
	if forwarded := call.metadata.Get("muster-forwarded-identity"); len(forwarded) > 0 {
		call.caller = forwarded[0]
	}
	s.mutex.Lock()
	s.calls = append(s.calls, call)
	s.mutex.Unlock()
	s.awaitCall(call)
	up, err := client.server.NewStream(metadata.NewOutgoingContext(ctx, call.metadata), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	go s.forwardMessages(call, down, up)
	for {
		var message []byte
		if err := up.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := down.SendMsg(&message); err != nil {
			return err
		}
	}
}

// talk sends messages as the program of the call sent it, and returns what `talk` does.
func (c *tappedCall) talk(patience time.Duration, messages [][]byte) (responses [][]byte, err error) {
	return talk(metadata.NewOutgoingContext(context.Background(), c.metadata), c.to, c.method, patience, messages...)
}

// isWholeUpload reports whether the call is an upload with its last message.
func (c *tappedCall) isWholeUpload() bool {
	var request musterv1.UploadRequest
	return c.method == uploadMethod && len(c.messages) > 0 && proto.Unmarshal(c.messages[len(c.messages)-1], &request) == nil &&
		request.GetFinish() != nil
}

func (c *tappedCall) String() string {
	return fmt.Sprintf("recorded %v, %d messages", c.cell, len(c.messages))
}
