package mustertest

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"hash"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
)

// Aggregator is an in-memory peer that implements the API as far as the gateway and the client use it. It
// keeps its address when it is restarted. Fields are set before Start.
type Aggregator struct {
	musterv1.UnimplementedResultServiceServer
	musterv1.UnimplementedArchiveServiceServer
	musterv1.UnimplementedListenerServiceServer
	musterv1.UnimplementedChangeServiceServer
	musterv1.UnimplementedStatusServiceServer
	musterv1.UnimplementedIdentityServiceServer
	musterv1.UnimplementedHeartbeatServiceServer
	musterv1.UnimplementedRunServiceServer

	Fleet            *Fleet
	Commands         *CommandAuthority
	ChunkMax, Window int64
	// SpoolCount is how many finished uploads it spools like a disconnected relay before it commits.
	SpoolCount int
	// Forget: bytes are hashed but not stored.
	Forget bool
	// NoHeartbeats: behave as a service without heartbeats. CheckHeartbeat may refuse a heartbeat.
	NoHeartbeats   bool
	CheckHeartbeat func(*musterv1.StreamHeartbeatsRequest) error
	// Interval is sent in answers to heartbeats.
	Interval time.Duration
	// LegacyHost is the pattern of the host names of runs, with {run} in it; empty: no host names.
	LegacyHost string
	// PageSize is the maximum of pairs in a response of GetStatus; 0: as many as requested.
	PageSize int

	t    testing.TB
	addr string

	mu            sync.Mutex
	stops         []func() // of the servers
	onChunk       func(key Key, chunk *musterv1.UploadRequest_Chunk) error
	changed       *sync.Cond
	runs          map[string]*runState
	events        []*musterv1.FollowChangesResponse
	uploads       map[Key]*upload
	Results       map[Key]*Committed
	Callers       []string // forwarded identities, in order of calls
	Certificates  []string // forwarded names of certificates, in the same order
	MetadataNames [][]string
	Reports       []*musterv1.ReportProgressRequest
	Faults        []string // of listeners that the gateway could not open
	Released      []string // the runs whose listeners the gateway closed early
	Archives      map[string][]byte
	Damage        bool // ReadArchive and ReadResult send bytes that do not match their CRC
	Renewals      int
	Opened        map[Key]int // calls of OpenUpload
	heartbeats    []*musterv1.StreamHeartbeatsRequest
	streams       map[musterv1.HeartbeatService_StreamHeartbeatsServer]context.CancelFunc
	statuses      map[string]*shownRun
	newest        string // of shown
	version       int64  // of the newest change of a status
	asked         int
	watchers      int
	onWatch       func(caller string)
	statusFaults  []string
}

// Key identifies a pair.
type Key struct{ Run, Plugin, Node string }

// Committed is a result.
type Committed struct {
	Data        []byte
	Size        int64
	SHA256      []byte
	Named       []byte // the SHA-256 that the sender named
	Description *musterv1.ResultDescription
	Signature   *musterv1.Signature
	crc32c      uint32
}

type runState struct {
	run      *Run
	proto    *musterv1.Run
	host     string // of its listener; empty: it has its own port
	nodes    map[string]bool
	refusal  *status.Status // of deliveries
	signing  chan struct{}  // closed when its listener may be signed for; nil: immediately
	port     int32
	reported chan struct{}
	status   *statusListener
}

type upload struct {
	id      string
	attempt int64
	epoch   int64
	size    int64
	data    []byte
	digest  hash.Hash
	crc     uint32
	request *musterv1.OpenUploadRequest
}

// NewAggregator creates an aggregator that is not started.
func NewAggregator(t testing.TB, fleet *Fleet) *Aggregator {
	a := &Aggregator{
		Fleet: fleet, Commands: NewCommandAuthority(), ChunkMax: 1 << 20, Window: 4 << 20, t: t, runs: map[string]*runState{}, uploads: map[Key]*upload{},
		Interval: time.Hour, streams: map[musterv1.HeartbeatService_StreamHeartbeatsServer]context.CancelFunc{},
		Results: map[Key]*Committed{}, Archives: map[string][]byte{}, Opened: map[Key]int{}, addr: ReserveAddress(t),
		statuses: map[string]*shownRun{},
	}
	a.changed = sync.NewCond(&a.mu)
	t.Cleanup(a.Stop)
	return a
}

// Start starts the server, at the same address as before.
func (a *Aggregator) Start() string { return a.serve("aggregator", a.addr) }

// OnChunk sets a function that gets each chunk first: it may refuse it, or stop the server.
func (a *Aggregator) OnChunk(see func(key Key, chunk *musterv1.UploadRequest_Chunk) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onChunk = see
}

// StartStatus serves the same API at another address, as the status service.
func (a *Aggregator) StartStatus() string { return a.serve("status", "127.0.0.1:0") }

func (a *Aggregator) serve(role, address string) string {
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{a.Fleet.Service(role, "s1")},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Fleet.Root.Pool(),
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		a.t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	musterv1.RegisterResultServiceServer(server, a)
	musterv1.RegisterArchiveServiceServer(server, a)
	musterv1.RegisterListenerServiceServer(server, a)
	musterv1.RegisterChangeServiceServer(server, a)
	musterv1.RegisterStatusServiceServer(server, a)
	musterv1.RegisterIdentityServiceServer(server, a)
	musterv1.RegisterRunServiceServer(server, a)
	if !a.NoHeartbeats {
		musterv1.RegisterHeartbeatServiceServer(server, a)
	}
	served := make(chan struct{})
	go func() {
		_ = server.Serve(listener)
		close(served)
	}()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stops = append(a.stops, func() {
		server.Stop()
		<-served // a server that is stopped before it serves closes its listener only then
	})
	return listener.Addr().String()
}

// Stop ends everything immediately, as a crash would.
func (a *Aggregator) Stop() {
	a.mu.Lock()
	stops := a.stops
	a.stops = nil
	a.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// AddRun adds a run that plans each plugin for each node, and a change to the feed.
func (a *Aggregator) AddRun(id string, plugins, nodes []string) *Run {
	run := a.Fleet.NewRun(id)
	state := &runState{run: run, proto: &musterv1.Run{Id: id, State: musterv1.RunState_RUN_STATE_PLANNED},
		nodes: map[string]bool{}, reported: make(chan struct{})}
	for _, plugin := range plugins {
		state.proto.Plugins = append(state.proto.Plugins, &musterv1.Plugin{Name: plugin})
	}
	for _, node := range nodes {
		state.nodes[node] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	state.host = strings.ReplaceAll(a.LegacyHost, "{run}", id)
	a.runs[id] = state
	a.addEvent(&musterv1.FollowChangesResponse{Event: &musterv1.FollowChangesResponse_Run{Run: state.proto}})
	return run
}

// Tell adds an event to the feed.
func (a *Aggregator) Tell(event *musterv1.FollowChangesResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addEvent(event)
}

func (a *Aggregator) addEvent(event *musterv1.FollowChangesResponse) {
	cursor := int64(len(a.events) + 1)
	event.Cursor = &cursor
	a.events = append(a.events, event)
	a.changed.Broadcast()
}

// Refuse makes deliveries of a run fail with an error.
func (a *Aggregator) Refuse(run string, code codes.Code, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs[run].refusal = fault(code, reason, "run "+run)
}

// Admit accepts deliveries of a run again.
func (a *Aggregator) Admit(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs[run].refusal = nil
}

// HoldSigning delays certificates for a run's listener until the returned function is called.
func (a *Aggregator) HoldSigning(run string) (release func()) {
	hold := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs[run].signing = hold
	return func() { close(hold) }
}

// Port waits until the gateway has reported a run's listener, and returns its port.
func (a *Aggregator) Port(run string) int32 {
	a.mu.Lock()
	reported := a.runs[run].reported
	a.mu.Unlock()
	select {
	case <-reported:
	case <-time.After(20 * time.Second):
		a.t.Fatalf("no listener was reported for run %s", run)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runs[run].port
}

// Get returns the committed result, or nil.
func (a *Aggregator) Get(key Key) *Committed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Results[key]
}

// Count returns how often an upload was opened.
func (a *Aggregator) Count(key Key) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Opened[key]
}

func fault(code codes.Code, reason, message string) *status.Status {
	return faultWith(code, message, &musterv1.ErrorDetail{Reason: reason})
}

func staleAttempt(newest int64) error {
	return faultWith(codes.Aborted, "a later attempt exists", &musterv1.ErrorDetail{Reason: reasons.TakenOver, NewestAttempt: newest}).Err()
}

func faultWith(code codes.Code, message string, detail *musterv1.ErrorDetail) *status.Status {
	detail.NextStep = "Do what the test says."
	s, err := status.New(code, message).WithDetails(detail)
	if err != nil {
		panic(err)
	}
	return s
}

func keyOf(k *musterv1.ResultKey) Key { return Key{k.GetRun(), k.GetPlugin(), k.GetNode()} }

// admit checks a delivery as the real aggregator does.
func (a *Aggregator) admit(key Key) error {
	state := a.runs[key.Run]
	if state == nil {
		return fault(codes.NotFound, reasons.RunNotFound, "no run "+key.Run).Err()
	}
	if state.refusal != nil {
		return state.refusal.Err()
	}
	for _, plugin := range state.proto.Plugins {
		if plugin.Name == key.Plugin && state.nodes[key.Node] {
			return nil
		}
	}
	return fault(codes.PermissionDenied, reasons.PairNotPlanned, fmt.Sprintf("not planned: %v", key)).Err()
}

func (a *Aggregator) commit(key Key, c *Committed) (*musterv1.Result, error) {
	old := a.Results[key]
	switch {
	case old != nil && c.Description.GetIsError(): // the old one stays
	case old == nil || old.Description.GetIsError():
		a.Results[key] = c
	case string(old.SHA256) != string(c.SHA256):
		return nil, fault(codes.AlreadyExists, reasons.ResultConflict, "another result is committed").Err()
	}
	return a.result(key), nil
}

func (a *Aggregator) result(key Key) *musterv1.Result {
	c := a.Results[key]
	outcome := musterv1.Outcome_OUTCOME_GENUINE
	if c.Description.GetIsError() {
		outcome = musterv1.Outcome_OUTCOME_ERROR
	}
	return &musterv1.Result{
		Key:     &musterv1.ResultKey{Run: key.Run, Plugin: key.Plugin, Node: key.Node},
		Outcome: outcome, Generation: 1, Size: c.Size, Sha256: c.SHA256, Crc32C: c.crc32c,
		MediaType: c.Description.GetMediaType(), FileName: c.Description.GetFileName(),
	}
}

func newUpload(id string, request *musterv1.OpenUploadRequest) *upload {
	return &upload{id: id, attempt: request.Description.Attempt, digest: sha256.New(), request: request}
}

func expired(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
}

// Expired creates an expired leaf.
func (a *Authority) Expired(uri string) tls.Certificate { return a.Leaf(uri, expired) }
