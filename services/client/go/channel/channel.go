// Package channel connects to services of the fleet. Package muster uses it, and so do programs of the fleet
// that call the API with its generated stubs.
package channel

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"muster.example/services/client/go/peer"
)

// ProbeInterval is the time after which a silent connection is probed, ProbeTimeout that of the answer. The services
// accept a probe every 10 s.
const ProbeInterval, ProbeTimeout = 30 * time.Second, 15 * time.Second

// Dial creates a connection to the first target "host:port" that answers and is such a server. It connects when
// it is needed, and reconnects when the connection breaks.
func Dial(server peer.Server, targets []string, roots func() *x509.CertPool, certificate func() (*tls.Certificate, error),
	more ...grpc.DialOption) (*grpc.ClientConn, error) {
	list := manual.NewBuilderWithScheme("muster")
	state := resolver.State{}
	for _, target := range targets {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: target})
	}
	list.InitialState(state)
	return grpc.NewClient("muster:///"+server.Role, append(more,
		grpc.WithResolvers(list),
		grpc.WithTransportCredentials(credentials.NewTLS(peer.ClientTLS(server, roots, certificate))),
		grpc.WithDisableRetry(), // callers know which calls are safe to repeat
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newTextCodec())),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.5, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		// A peer that went away without a word is found also while a call waits for its answer.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: ProbeInterval, Timeout: ProbeTimeout}))...)
}
