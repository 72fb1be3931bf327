package muster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"sync/atomic"

	"google.golang.org/grpc"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/channel"
	"muster.example/services/client/go/peer"
)

// Options are the targets and credentials of a client.
type Options struct {
	// AggregatorTargets are addresses "host:port" of the aggregator's API.
	AggregatorTargets []string
	// StatusTargets are addresses of the status service; required only for progress and heartbeats.
	StatusTargets []string
	// Roots returns the fleet's root CA, Certificate the client's certificate with its chain; both are called
	// at each handshake.
	Roots       func() *x509.CertPool
	Certificate func() (*tls.Certificate, error)
	// Connections is the number of connections to the aggregator for deliveries; 0 means 1.
	Connections int
	// InFlight bounds the unacknowledged bytes of all deliveries; each has an equal share, but at least a
	// chunk. 0 means the server's limit.
	InFlight int64
	// Dial are further options of all connections. A gateway sets interceptors that name its client.
	Dial []grpc.DialOption
}

// Client delivers results and reports progress over the API. Safe for concurrent use.
type Client struct {
	config            *Config   // set by New, otherwise nil
	legacy            *listener // used instead of the API, otherwise nil
	results           []musterv1.ResultServiceClient
	next              atomic.Uint64
	uploads           atomic.Int64
	inFlight          int64
	progress          musterv1.StatusServiceClient
	heartbeats        musterv1.HeartbeatServiceClient
	currentHeartbeats atomic.Pointer[Heartbeats]
	sign              signer
	close             []func() error
}

// Dial creates a client. It connects when connections are needed, and reconnects when they break.
func Dial(o Options) (*Client, error) {
	if len(o.AggregatorTargets) == 0 || o.Roots == nil || o.Certificate == nil {
		return nil, errors.New("muster: a client needs aggregator targets, roots and a certificate")
	}
	c := &Client{sign: o.Certificate, inFlight: o.InFlight}
	for range max(o.Connections, 1) {
		connection, err := channel.Dial(peer.Server{Role: "aggregator"}, o.AggregatorTargets, o.Roots, o.Certificate, o.Dial...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.close = append(c.close, connection.Close)
		c.results = append(c.results, musterv1.NewResultServiceClient(connection))
	}
	if len(o.StatusTargets) > 0 {
		connection, err := channel.Dial(peer.Server{Role: "status"}, o.StatusTargets, o.Roots, o.Certificate, o.Dial...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.close = append(c.close, connection.Close)
		c.progress = musterv1.NewStatusServiceClient(connection)
		c.heartbeats = musterv1.NewHeartbeatServiceClient(connection)
	}
	return c, nil
}

// New creates a client from a configuration: over the API if it has gRPC targets, otherwise over the run's
// listener for legacy clients.
func New(config *Config) (*Client, error) {
	if config.certificate == nil {
		if err := config.complete(false); err != nil {
			return nil, err
		}
	}
	if len(config.GRPCTargets) == 0 {
		legacy, err := newListener(config)
		return &Client{config: config, legacy: legacy}, err
	}
	roots := pool(config.FleetCA)
	client, err := Dial(Options{
		AggregatorTargets: config.GRPCTargets, StatusTargets: config.StatusTargets,
		Roots:       func() *x509.CertPool { return roots },
		Certificate: func() (*tls.Certificate, error) { return config.certificate, nil },
	})
	if err == nil {
		client.config = config
	}
	return client, err
}

// key completes a key from the configuration.
func (c *Client) key(k Key) Key {
	if c.config != nil && k == (Key{}) {
		return Key{c.config.Run, c.config.Plugin, c.config.Node}
	}
	return k
}

// Close ends the client; active deliveries fail.
func (c *Client) Close() error {
	var all []error
	c.currentHeartbeats.Load().Stop()
	if c.legacy != nil {
		c.legacy.http.CloseIdleConnections()
	}
	for _, closeOne := range c.close {
		all = append(all, closeOne())
	}
	return errors.Join(all...)
}

// share returns the bytes that one active upload may buffer.
func (c *Client) share() int64 {
	if c.inFlight == 0 {
		return math.MaxInt64
	}
	return c.inFlight / max(c.uploads.Load(), 1)
}

func (c *Client) pick() musterv1.ResultServiceClient {
	return c.results[c.next.Add(1)%uint64(len(c.results))]
}

// Progress is a progress report of a plugin.
type Progress struct {
	Message          string
	Total, Completed int64
	Failures, Errors []string
	// The append form adds to earlier reports.
	AppendTotals    bool
	AppendCompleted int64
	AppendFailing   []string
}

// ReportProgress sends one progress report. It does not retry, because the next report replaces it; a failed
// report is sent with the next heartbeat unless it has the append form. The zero Key is the configuration's.
func (c *Client) ReportProgress(ctx context.Context, key Key, p Progress) error {
	err := c.reportOnce(ctx, c.key(key), p)
	if c.key(key) == c.key(Key{}) {
		c.currentHeartbeats.Load().saveReport(p, err)
	}
	return err
}

func (c *Client) reportOnce(ctx context.Context, key Key, p Progress) error {
	if c.legacy != nil {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return c.legacy.progress(ctx, key, p)
	}
	if c.progress == nil {
		return errStatusNotConfigured()
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.progress.ReportProgress(ctx, p.proto(key))
	return fromRPC(err)
}
