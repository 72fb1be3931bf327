package fleet

import (
	"bytes"
	"context"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/mustertest"
	"muster.example/services/client/go/peer"
)

// service records the context of its last call.
type service struct {
	musterv1.UnimplementedRunServiceServer
	last          context.Context
	begun, answer chan struct{}
}

func (s *service) GetRun(ctx context.Context, _ *musterv1.GetRunRequest) (*musterv1.Run, error) {
	s.last = ctx
	return &musterv1.Run{}, nil
}

// CancelRun waits for the end of its context, or for an answer.
func (s *service) CancelRun(ctx context.Context, _ *musterv1.CancelRunRequest) (*musterv1.Run, error) {
	s.begun <- struct{}{}
	select {
	case <-s.answer:
		return &musterv1.Run{}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func (s *service) WatchRun(_ *musterv1.WatchRunRequest, stream musterv1.RunService_WatchRunServer) error {
	s.last = stream.Context()
	return nil
}

// startService returns a client with the interceptors.
func startService(t *testing.T) (*service, musterv1.RunServiceClient) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, server := &service{begun: make(chan struct{}, 1), answer: make(chan struct{})}, grpc.NewServer()
	musterv1.RegisterRunServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), append(Interceptors(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return s, musterv1.NewRunServiceClient(conn)
}

// A service treats a call without a forwarded identity as the gateway's own.
func TestCallWithoutIdentityIsRefused(t *testing.T) {
	s, client := startService(t)
	for name, ctx := range map[string]context.Context{
		"none": t.Context(), "empty": WithIdentity(t.Context(), ""), "invalid": WithIdentity(t.Context(), "spiffe://x"),
		"only in metadata": metadata.AppendToOutgoingContext(t.Context(), forwardedIdentity, "spiffe://"+mustertest.Domain+"/user/a"),
	} {
		if _, err := client.GetRun(ctx, &musterv1.GetRunRequest{}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := client.WatchRun(ctx, &musterv1.WatchRunRequest{}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s, stream: %v", name, err)
		}
	}
	if s.last != nil {
		t.Error("the service was called")
	}
}

func TestForwardedCallsHaveOnlyIdentityAndDeadline(t *testing.T) {
	s, client := startService(t)
	uri := "spiffe://" + mustertest.Domain + "/user/a"
	ctx := metadata.AppendToOutgoingContext(WithIdentity(t.Context(), uri), "x-more", "1", forwardedIdentity, "spiffe://x")
	if _, err := client.GetRun(ctx, &musterv1.GetRunRequest{}); err != nil {
		t.Fatal(err)
	}
	sent, _ := metadata.FromIncomingContext(s.last)
	if got := sent.Get(forwardedIdentity); len(got) != 1 || got[0] != uri || len(sent.Get("x-more")) != 0 {
		t.Errorf("%v", sent)
	}
	if deadline, ok := s.last.Deadline(); !ok || time.Until(deadline) > limits.CallTime {
		t.Errorf("the deadline is %v, %v", deadline, ok)
	}
	if got := sent.Get(forwardedCertificate); len(got) != 0 {
		t.Errorf("the certificate of an operator is forwarded: %v", got)
	}
	stream, err := client.WatchRun(ctx, &musterv1.WatchRunRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stream.Recv()
	if _, ok := s.last.Deadline(); ok {
		t.Error("a stream has a deadline")
	}
}

// Metadata beyond the limit of a service makes it misread later calls of the connection, which all clients share.
func TestLongestIdentityFitsIntoTheMetadataOfACall(t *testing.T) {
	const names = 253
	s, client := startService(t)
	host := "00000000000000aa." + strings.Repeat(strings.Repeat("a", 58)+".", 3) + strings.Repeat("a", 59)
	certificate := &x509.Certificate{AuthorityKeyId: bytes.Repeat([]byte{0xca}, 48), SerialNumber: new(big.Int).Lsh(big.NewInt(1), 159)}
	get := func(name int) error {
		uri := "spiffe://" + host + "/plugin/" + strings.Repeat("p", names) + "/node/" + strings.Repeat("n", name)
		_, err := client.GetRun(WithClient(t.Context(), certificate, peer.Identity{URI: uri, Kind: peer.PluginNode}), &musterv1.GetRunRequest{})
		return err
	}
	if err := get(names); err != nil {
		t.Fatal(err)
	}
	size := 0
	sent, _ := metadata.FromIncomingContext(s.last)
	for key, values := range sent {
		for _, value := range values {
			size += len(key) + len(value) + 32
		}
	}
	if size > 2<<10 {
		t.Errorf("the metadata of a call has %d bytes", size)
	}
	if err := get(names + 1); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a longer identity is answered with %v", err)
	}
}

func TestCertificateOfASharedIdentityIsForwarded(t *testing.T) {
	s, client := startService(t)
	id, err := peer.Parse("spiffe://00000000000000aa." + mustertest.Domain + "/viewer")
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte{0xca}, 48) // a CA that was given with a run
	serial := new(big.Int).Lsh(big.NewInt(1), 159)
	seen := map[string]bool{}
	for _, certificate := range []*x509.Certificate{
		{AuthorityKeyId: []byte{0xca}, SerialNumber: big.NewInt(0xabc)},
		{AuthorityKeyId: long, SerialNumber: serial}, {AuthorityKeyId: long, SerialNumber: new(big.Int).Add(serial, big.NewInt(1))},
	} {
		if _, err := client.GetRun(WithClient(t.Context(), certificate, id), &musterv1.GetRunRequest{}); err != nil {
			t.Fatal(err)
		}
		sent, _ := metadata.FromIncomingContext(s.last)
		got := sent.Get(forwardedCertificate)
		if len(got) != 1 || len(got[0]) > limits.CertificateName || seen[got[0]] {
			t.Fatalf("%v", got)
		}
		if len(certificate.AuthorityKeyId) == 1 && got[0] != certificateName(certificate) {
			t.Errorf("%v", got)
		}
		seen[got[0]] = true
	}
}

// A service closes a connection with too many resets, and that of the gateway carries the calls of all clients.
func TestResetOfClientDoesNotResetCall(t *testing.T) {
	s, client := startService(t)
	reset, cancel := context.WithCancel(WithIdentity(t.Context(), "spiffe://"+mustertest.Domain+"/user/a"))
	ended := make(chan error)
	go func() {
		_, err := client.CancelRun(reset, &musterv1.CancelRunRequest{})
		ended <- err
	}()
	<-s.begun
	cancel()
	s.answer <- struct{}{} // for ever if the call was reset
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRevocationAndDeadlineEndCall(t *testing.T) {
	s, client := startService(t)
	ctx := WithIdentity(t.Context(), "spiffe://"+mustertest.Domain+"/user/a")
	revoked, revoke := context.WithCancelCause(ctx)
	defer revoke(nil)
	late, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	for code, ended := range map[codes.Code]context.Context{codes.Canceled: revoked, codes.DeadlineExceeded: late} {
		result := make(chan error)
		go func() {
			_, err := client.CancelRun(ended, &musterv1.CancelRunRequest{})
			result <- err
		}()
		if code == codes.Canceled {
			<-s.begun
			revoke(ErrRevoked)
		} else {
			select {
			case <-s.begun:
			case <-ended.Done():
			}
		}
		if err := <-result; status.Code(err) != code {
			t.Errorf("%v: %v", code, err)
		}
	}
}
