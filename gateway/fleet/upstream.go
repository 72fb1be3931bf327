package fleet

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"muster.example/services/client/go"
	"muster.example/services/client/go/peer"
)

type identityKey struct{}

// WithIdentity sets the verified peer for whom calls with this context are made.
func WithIdentity(ctx context.Context, uri string) context.Context {
	return context.WithValue(ctx, identityKey{}, uri)
}

// IdentityOf returns the identity that WithIdentity set.
func IdentityOf(ctx context.Context) (peer.Identity, bool) {
	uri, _ := ctx.Value(identityKey{}).(string)
	id, err := peer.Parse(uri)
	return id, err == nil
}

// onlyIdentity replaces all metadata by the one key that services accept from a gateway: no metadata of a client is
// forwarded.
func onlyIdentity(ctx context.Context) context.Context {
	sent := metadata.MD{}
	if uri, ok := ctx.Value(identityKey{}).(string); ok {
		sent.Set(muster.ForwardedIdentity, uri)
	}
	return metadata.NewOutgoingContext(ctx, sent)
}

// Interceptors are required on every connection that carries requests of clients.
func Interceptors() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			return invoke(onlyIdentity(ctx), method, request, reply, conn, options...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string,
			open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(onlyIdentity(ctx), description, conn, method, options...)
		}),
	}
}
