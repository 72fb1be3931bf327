package fleet

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/peer"
)

// The metadata keys with which a gateway names its client, and the certificate of a client whose URI others share.
const (
	forwardedIdentity    = "muster-forwarded-identity"
	forwardedCertificate = "muster-forwarded-certificate"
)

type clientKey struct{}

// client has a certificate only if others have the same URI.
type client struct{ uri, certificate string }

// WithIdentity sets the verified peer for whom calls with this context are made.
func WithIdentity(ctx context.Context, uri string) context.Context {
	return context.WithValue(ctx, clientKey{}, client{uri: uri})
}

// WithClient sets the verified peer like WithIdentity, with its certificate. All viewers of a run, and all nodes of a
// plugin, may have the same URI: HolderOf distinguishes them by issuer and serial number.
func WithClient(ctx context.Context, certificate *x509.Certificate, id peer.Identity) context.Context {
	set := client{uri: id.URI}
	if id.Kind == peer.Viewer || id.Kind == peer.AnyNode {
		set.certificate = forwardedName(certificate)
	}
	return context.WithValue(ctx, clientKey{}, set)
}

// forwardedName returns the name of a certificate for HolderOf: a digest if a CA that was given with a run has a key id
// so long that services would refuse the name.
func forwardedName(certificate *x509.Certificate) string {
	name := certificateName(certificate)
	if len(name) <= limits.CertificateName {
		return name
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))
}

// IdentityOf returns the identity that WithIdentity or WithClient set.
func IdentityOf(ctx context.Context) (peer.Identity, bool) {
	set, _ := ctx.Value(clientKey{}).(client)
	id, err := peer.Parse(set.uri)
	return id, err == nil
}

// HolderOf returns the name under which the limits of an identity count what the client holds.
func HolderOf(ctx context.Context) string {
	set, _ := ctx.Value(clientKey{}).(client)
	if set.certificate == "" {
		return set.uri
	}
	return set.uri + " " + set.certificate
}

// onlyIdentity replaces all metadata by the keys that services accept from a gateway: no metadata of a client is
// forwarded. It refuses a call without an identity, because the service would treat it as the gateway's own.
func onlyIdentity(ctx context.Context) (context.Context, error) {
	id, ok := IdentityOf(ctx)
	if !ok {
		return nil, status.Error(codes.PermissionDenied, "the call has no identity to forward")
	}
	forwarded := metadata.Pairs(forwardedIdentity, id.URI)
	if set, _ := ctx.Value(clientKey{}).(client); set.certificate != "" {
		forwarded.Set(forwardedCertificate, set.certificate)
	}
	return metadata.NewOutgoingContext(ctx, forwarded), nil
}

// withoutReset returns a context with the deadline of a call to a service. It does not end when the client resets its
// request: the connections of the gateway carry the calls of all clients, and a service closes one with too many resets.
// The limit of the requests in progress counts such a call until its end. Another cause, such as a revocation, ends it.
func withoutReset(ctx context.Context) (context.Context, context.CancelFunc) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.CallTime)
	release := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			cancel()
		}
	})
	return call, func() {
		release()
		cancel()
	}
}

// Interceptors are required on every connection that carries requests of clients. The gateway's own calls use other
// connections.
func Interceptors() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			ctx, err := onlyIdentity(ctx)
			if err != nil {
				return err
			}
			call, cancel := withoutReset(ctx)
			defer cancel()
			err = invoke(call, method, request, reply, conn, options...)
			if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return status.FromContextError(ctx.Err()).Err()
			}
			return err
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string,
			open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			ctx, err := onlyIdentity(ctx)
			if err != nil {
				return nil, err
			}
			return open(ctx, description, conn, method, options...)
		}),
	}
}
