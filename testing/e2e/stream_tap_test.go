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

// newStreamTap listens in front of a server with this identity. It holds the end of the uploads of callers for which
// `holds` is true, until release. A caller is a client, or whom it forwards.
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
	s.holds = func(string) bool { return false }
	close(s.released)
}

// pass records a message, and returns when it may be sent.
func (s *streamTap) pass(ctx context.Context, call *tappedCall, message []byte) {
	s.mutex.Lock()
	call.messages = append(call.messages, message)
	hold := call.isWholeUpload() && s.holds(call.caller)
	if hold {
		s.held[call.caller] = true
	}
	s.mutex.Unlock()
	if !hold {
		return
	}
	select {
	case <-s.released:
	case <-ctx.Done():
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
		caller: caller, metadata: metadata.MD{}}
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
	up, err := client.server.NewStream(metadata.NewOutgoingContext(ctx, call.metadata), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var message []byte
			err := down.RecvMsg(&message)
			if errors.Is(err, io.EOF) {
				_ = up.CloseSend()
			}
			if err != nil {
				return
			}
			s.pass(ctx, call, message)
			if up.SendMsg(&message) != nil {
				return // the reason is received
			}
		}
	}()
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
