package muster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"sync/atomic"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/channel"
)

// Options say whom to dial and as whom.
type Options struct {
	// AggregatorTargets are addresses "host:port" of the aggregator's API.
	AggregatorTargets []string
	// StatusTargets are addresses of the status service; needed for progress and heartbeats only.
	StatusTargets []string
	// Roots gives the fleet's root, and Certificate our own with its chain; asked at each handshake.
	Roots       func() *x509.CertPool
	Certificate func() (*tls.Certificate, error)
	// Connections to the aggregator over which deliveries are spread; 0 means 1.
	Connections int
	// InFlight bounds the bytes that all deliveries together keep because the server has not
	// acknowledged them; each has an equal share, but at least a chunk. 0 means what the server allows.
	InFlight int64
}

// Client delivers results and reports progress over the API. Safe for concurrent use.
type Client struct {
	config     *Config   // of New; else nil
	old        *listener // instead of the API; else nil
	results    []musterv1.ResultServiceClient
	next       atomic.Uint64
	uploads    atomic.Int64
	inFlight   int64
	progress   musterv1.StatusServiceClient
	heartbeats musterv1.HeartbeatServiceClient
	beats      atomic.Pointer[Heartbeats]
	sign       signer
	close      []func() error
}

// Dial makes a client; connections come about when they are needed, and again when they break.
func Dial(o Options) (*Client, error) {
	if len(o.AggregatorTargets) == 0 || o.Roots == nil || o.Certificate == nil {
		return nil, errors.New("muster: a client needs aggregator targets, roots and a certificate")
	}
	c := &Client{sign: o.Certificate, inFlight: o.InFlight}
	for range max(o.Connections, 1) {
		connection, err := channel.Dial("aggregator", o.AggregatorTargets, o.Roots, o.Certificate)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.close = append(c.close, connection.Close)
		c.results = append(c.results, musterv1.NewResultServiceClient(connection))
	}
	if len(o.StatusTargets) > 0 {
		connection, err := channel.Dial("status", o.StatusTargets, o.Roots, o.Certificate)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.close = append(c.close, connection.Close)
		c.progress = musterv1.NewStatusServiceClient(connection)
		c.heartbeats = musterv1.NewHeartbeatServiceClient(connection)
	}
	return c, nil
}

// New makes a client of a configuration: over the API if it has gRPC targets, else over the run's
// listener for old clients.
func New(config *Config) (*Client, error) {
	if config.certificate == nil {
		if err := config.complete(false); err != nil {
			return nil, err
		}
	}
	if len(config.GRPCTargets) == 0 {
		old, err := newListener(config)
		return &Client{config: config, old: old}, err
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

// key fills in what a configuration knows.
func (c *Client) key(k Key) Key {
	if c.config != nil && k == (Key{}) {
		return Key{c.config.Run, c.config.Plugin, c.config.Node}
	}
	return k
}

// Close ends the client; deliveries that are under way fail.
func (c *Client) Close() error {
	var all []error
	c.beats.Load().Stop()
	if c.old != nil {
		c.old.http.CloseIdleConnections()
	}
	for _, closeOne := range c.close {
		all = append(all, closeOne())
	}
	return errors.Join(all...)
}

// share is what one of the uploads under way may keep.
func (c *Client) share() int64 {
	if c.inFlight == 0 {
		return math.MaxInt64
	}
	return c.inFlight / max(c.uploads.Load(), 1)
}

func (c *Client) pick() musterv1.ResultServiceClient {
	return c.results[c.next.Add(1)%uint64(len(c.results))]
}

// Progress is what a plugin says of itself.
type Progress struct {
	Message          string
	Total, Completed int64
	Failures, Errors []string
	// The append form: adds to what was reported before.
	AppendTotals    bool
	AppendCompleted int64
	AppendFailing   []string
	// OnBehalfOf as in Delivery.
	OnBehalfOf string
}

// ReportProgress says once how far a plugin is. It is not repeated when it fails: the next report
// replaces it; but one that did not get through goes with the next heartbeat, if it is not of the append
// form. The zero Key is the configuration's.
func (c *Client) ReportProgress(ctx context.Context, key Key, p Progress) error {
	err := c.reportOnce(ctx, c.key(key), p)
	if c.key(key) == c.key(Key{}) {
		c.beats.Load().keep(p, err)
	}
	return err
}

func (c *Client) reportOnce(ctx context.Context, key Key, p Progress) error {
	if c.old != nil {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return c.old.progress(ctx, key, p)
	}
	if c.progress == nil {
		return errStatusNotConfigured()
	}
	ctx, cancel := context.WithTimeout(onBehalf(ctx, p.OnBehalfOf), callTimeout)
	defer cancel()
	_, err := c.progress.ReportProgress(ctx, p.proto(key))
	return fromRPC(err)
}
