package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// forgingRelay is a compromised relay: it has joined the fleet, is attached to the root relay, and has one node. It
// forwards everything between the two, but changes the records of the node, and adds forged records.
type forgingRelay struct {
	musterv1.UnimplementedAttachServiceServer
	musterv1.UnimplementedContentServiceServer
	musterv1.UnimplementedWorkspaceServiceServer
	identity      tls.Certificate
	chain         string
	uri, address  string
	connection    *grpc.ClientConn // to the root relay, as this relay
	root          grpc.BidiStreamingClient[musterv1.AttachRequest, musterv1.AttachResponse]
	mutex         sync.Mutex // guards the next, and the sending on both streams
	node          grpc.BidiStreamingServer[musterv1.AttachRequest, musterv1.AttachResponse]
	alter         func(*musterv1.JobRecord)
	revocations   *musterv1.AttachResponse
	descendants   []*musterv1.AttachRequest_TopologyUpdate_Descendant
	rootIsRunning chan error
	changedParts  atomic.Int64 // of contents
	save          saveCall     // guarded by mutex, as `node`
}

// newForgingRelay joins a machine as a relay, and attaches it to the root relay of the fleet with this program.
func newForgingRelay(t *testing.T, f *fleet.Fleet, name string) *forgingRelay {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	r := &forgingRelay{address: listener.Addr().String(), rootIsRunning: make(chan error, 1)}
	m := newMachine(t, f)
	if _, stderr, code := m.muster(t, nil, "relay", "join", "--token-file", token(t, f, "--relay", name), "--dir", m.home,
		"--advertise", r.address, "--join-advertise", r.address); code != 0 {
		t.Fatalf("relay %s joins: exit %d: %s", name, code, stderr)
	}
	read := func(file string) []byte { return must(os.ReadFile(filepath.Join(m.home, "tls", file)))(t) }
	key, chain, ca := read("key.pem"), read("cert.pem"), read("ca.pem")
	r.identity, r.chain = must(tls.X509KeyPair(chain, key))(t), string(chain)
	r.identity.Leaf = must(x509.ParseCertificate(r.identity.Certificate[0]))(t)
	r.uri = r.identity.Leaf.URIs[0].String()

	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{r.identity},
		ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13})))
	musterv1.RegisterAttachServiceServer(server, r)
	musterv1.RegisterContentServiceServer(server, r)
	musterv1.RegisterWorkspaceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	operator := must(f.Operator())(t)
	self := fleet.Operator{Relay: operator.Relay, FleetCA: string(ca), Certificate: string(chain), Key: string(key)}
	connection := must(self.RelayGRPC())(t)
	t.Cleanup(func() { connection.Close() })
	r.connection = connection
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r.root = r.attach(ctx, t, nil)
	go r.readRoot()
	go r.sendHeartbeats(ctx)
	until(t, "relay "+name+" is attached", func() bool { return nodes(t, f)[name]["attached"] == true })
	return r
}

// attach opens a stream to the root relay, which takes over from an earlier one. `change` changes its first message.
func (r *forgingRelay) attach(ctx context.Context, t *testing.T, change func(*musterv1.AttachRequest_Hello)) grpc.BidiStreamingClient[musterv1.AttachRequest, musterv1.AttachResponse] {
	t.Helper()
	stream := must(musterv1.NewAttachServiceClient(r.connection).Attach(ctx))(t)
	greeting := must(stream.Recv())(t).GetGreeting()
	hello := &musterv1.AttachRequest_Hello{Statement: r.statement(t, greeting), InstanceId: "forger", IsRelay: true,
		RelayTargets: []string{r.address}}
	if change != nil {
		change(hello)
	}
	check(t, stream.Send(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Hello_{Hello: hello}}))
	return stream
}

// statement permits the relay of a greeting to act for this relay.
func (r *forgingRelay) statement(t *testing.T, greeting *musterv1.AttachResponse_Greeting) *musterv1.AttachStatement {
	t.Helper()
	expires := time.Now().Add(30 * time.Minute)
	text := fmt.Sprintf("muster-attach-v1\n%s\n%s\n%x\n%d\n", r.uri, greeting.Relay, greeting.KeySha256, expires.Unix())
	digest := sha256.Sum256([]byte(text))
	signature := must(ecdsa.SignASN1(rand.Reader, r.identity.PrivateKey.(*ecdsa.PrivateKey), digest[:]))(t)
	return &musterv1.AttachStatement{Child: r.uri, Relay: greeting.Relay, RelayKeySha256: greeting.KeySha256,
		ExpireTime: &timestamppb.Timestamp{Seconds: expires.Unix()}, Signature: signature, CertificateChainPem: r.chain}
}

// readRoot forwards messages for the node.
func (r *forgingRelay) readRoot() {
	for {
		message, err := r.root.Recv()
		if err != nil {
			r.rootIsRunning <- err
			return
		}
		r.mutex.Lock()
		switch message.Message.(type) {
		case *musterv1.AttachResponse_Revocations:
			r.revocations = message
			r.sendToNode(message)
		case *musterv1.AttachResponse_Command, *musterv1.AttachResponse_Cancel, *musterv1.AttachResponse_RecordsAck:
			r.sendToNode(message)
		}
		r.mutex.Unlock()
	}
}

func (r *forgingRelay) sendToNode(message *musterv1.AttachResponse) {
	if r.node != nil {
		_ = r.node.Send(message)
	}
}

func (r *forgingRelay) sendToRoot(message *musterv1.AttachRequest) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_ = r.root.Send(message)
}

// sendHeartbeats keeps both streams alive.
func (r *forgingRelay) sendHeartbeats(ctx context.Context) {
	for ctx.Err() == nil {
		r.sendToRoot(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Beat_{Beat: &musterv1.AttachRequest_Beat{}}})
		r.mutex.Lock()
		r.sendToNode(&musterv1.AttachResponse{Message: &musterv1.AttachResponse_Beat_{Beat: &musterv1.AttachResponse_Beat{}}})
		r.mutex.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Attach serves the node.
func (r *forgingRelay) Attach(stream grpc.BidiStreamingServer[musterv1.AttachRequest, musterv1.AttachResponse]) error {
	key := sha256.Sum256(r.identity.Leaf.RawSubjectPublicKeyInfo)
	greeting := &musterv1.AttachResponse_Greeting{Relay: r.uri, KeySha256: key[:], Time: timestamppb.Now()}
	if err := stream.Send(&musterv1.AttachResponse{Message: &musterv1.AttachResponse_Greeting_{Greeting: greeting}}); err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		switch {
		case message.GetHello() != nil:
			r.claim(&musterv1.AttachRequest_TopologyUpdate_Descendant{Statement: message.GetHello().Statement,
				Relay: r.name(), Attached: true, ChangeTime: timestamppb.Now()})
			r.mutex.Lock()
			r.node = stream
			r.welcome()
			r.mutex.Unlock()
		case message.GetRecords() != nil:
			r.mutex.Lock()
			for _, record := range message.GetRecords().Records {
				if r.alter != nil {
					r.alter(record)
				}
			}
			r.mutex.Unlock()
			r.sendToRoot(message)
		}
	}
}

// ReadContent forwards the call of a node, and changes a byte of the answer with its checksum.
func (r *forgingRelay) ReadContent(ctx context.Context, request *musterv1.ReadContentRequest) (*musterv1.ReadContentResponse, error) {
	ctx, err := r.forNode(ctx)
	if err != nil {
		return nil, err
	}
	response, err := musterv1.NewContentServiceClient(r.connection).ReadContent(ctx, request)
	if err == nil && len(response.Data) > 0 {
		response.Data[0] ^= 1
		response.Crc32C = crc32.Checksum(response.Data, crc32.MakeTable(crc32.Castagnoli))
		r.changedParts.Add(1)
	}
	return response, err
}

// saveCall answers SaveWorkspace.
type saveCall func(context.Context, *musterv1.SaveWorkspaceRequest) (*musterv1.SaveWorkspaceResponse, error)

func (r *forgingRelay) setSave(save saveCall) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.save = save
}

// SaveWorkspace answers as setSave says.
func (r *forgingRelay) SaveWorkspace(ctx context.Context, request *musterv1.SaveWorkspaceRequest) (*musterv1.SaveWorkspaceResponse, error) {
	r.mutex.Lock()
	save := r.save
	r.mutex.Unlock()
	if save == nil {
		save = r.forwardSave
	}
	return save(ctx, request)
}

// forwardSave forwards the call in the name of the node.
func (r *forgingRelay) forwardSave(ctx context.Context, request *musterv1.SaveWorkspaceRequest) (*musterv1.SaveWorkspaceResponse, error) {
	ctx, err := r.forNode(ctx)
	if err != nil {
		return nil, err
	}
	return musterv1.NewWorkspaceServiceClient(r.connection).SaveWorkspace(ctx, request)
}

// forNode makes calls in the name of the node.
func (r *forgingRelay) forNode(ctx context.Context) (context.Context, error) {
	r.mutex.Lock()
	var statement *musterv1.AttachStatement
	if len(r.descendants) > 0 {
		statement = r.descendants[0].Statement
	}
	r.mutex.Unlock()
	bytes, err := proto.Marshal(statement)
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, "muster-forwarded-identity", statement.GetChild(), "muster-attach-statement-bin", string(bytes)), nil
}

func (r *forgingRelay) name() string { return r.uri[strings.LastIndex(r.uri, "/")+1:] }

// welcome makes the node send its unacked records again.
func (r *forgingRelay) welcome() {
	r.sendToNode(&musterv1.AttachResponse{Message: &musterv1.AttachResponse_Welcome_{Welcome: &musterv1.AttachResponse_Welcome{
		Interval: durationpb.New(5 * time.Second), Path: []string{"root", r.name()}, Connected: true, Time: timestamppb.Now()}}})
	if r.revocations != nil {
		r.sendToNode(r.revocations)
	}
}

// claim sends the root relay a descendant, in addition to the earlier ones.
func (r *forgingRelay) claim(descendant *musterv1.AttachRequest_TopologyUpdate_Descendant) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.descendants = append(r.descendants, descendant)
	_ = r.root.Send(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Topology{Topology: &musterv1.AttachRequest_TopologyUpdate{
		Descendants: r.descendants, Complete: true}}})
}

// setAlter replaces what happens to the records of the node, and lets the node send the unacked ones again.
func (r *forgingRelay) setAlter(alter func(*musterv1.JobRecord)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.alter = alter
	r.welcome()
}

// invent sends records that no node made.
func (r *forgingRelay) invent(records ...*musterv1.JobRecord) {
	r.sendToRoot(&musterv1.AttachRequest{Message: &musterv1.AttachRequest_Records{Records: &musterv1.JobRecords{Records: records}}})
}

// forgery is a whole life of a job on a node, which exited 0.
func forgery(job, node string) []*musterv1.JobRecord {
	records := []*musterv1.JobRecord{
		{Record: &musterv1.JobRecord_Started_{Started: &musterv1.JobRecord_Started{Time: timestamppb.Now()}}},
		{Record: &musterv1.JobRecord_Output_{Output: &musterv1.JobRecord_Output{
			Stream: musterv1.JobStream_JOB_STREAM_STDOUT, Data: []byte("forged\n")}}},
		{Record: &musterv1.JobRecord_Final_{Final: &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_EXITED}}},
	}
	for i, record := range records {
		record.Job, record.Node, record.Sequence, record.Time = job, node, int64(i)+1, timestamppb.Now()
	}
	return records
}

// attachTo attaches a joined node to this relay in place of its parent.
func (n *node) attachTo(t *testing.T, r *forgingRelay) {
	t.Helper()
	n.attachAt(t, r.address)
}

// n1 is attached to a compromised relay, n2 to the root relay.
func TestForgingRelayHarmsNobodyButItsOwnNodes(t *testing.T) {
	t.Parallel()
	f := up(t)
	forger := newForgingRelay(t, f, "r9")
	n1 := join(t, f, "n1", openPolicy, nil, nil)
	n1.attachTo(t, forger)
	attached(t, f, "n2")
	if byName := nodes(t, f); byName["n1"]["relay"] != "r9" || byName["n2"]["relay"] == "r9" {
		t.Fatalf("wrong topology: %v", byName)
	}

	t.Run("records of a stranger are dropped", func(t *testing.T) {
		end := filepath.Join(t.TempDir(), "end")
		job := strings.TrimSpace(must(f.Muster("exec", "--all", "--detach", "--", "/bin/sh", "-c",
			fmt.Sprintf("until [ -e %s ]; do sleep 0.05; done; echo honest", end)))(t))
		forger.claim(&musterv1.AttachRequest_TopologyUpdate_Descendant{Relay: "r9", Attached: true, ChangeTime: timestamppb.Now(),
			Statement: &musterv1.AttachStatement{Child: strings.Replace(forger.uri, "/service/relay/r9", "/node/n2", 1), Relay: forger.uri}})
		forger.invent(forgery(job, "n2")...)
		until(t, "the records are counted", func() bool {
			return counted(t, f, "relay", "muster_relay_foreign_records_total") == 3
		})
		check(t, os.WriteFile(end, nil, 0o600))
		out := must(f.Muster("job", "logs", "-f", job))(t)
		if strings.Contains(out, "forged") || strings.Count(out, "honest") != 2 {
			t.Errorf("the job printed %q", out)
		}
		if relay := nodes(t, f)["n2"]["relay"]; relay == "r9" {
			t.Errorf("n2 is attached to %v by a claim of r9", relay)
		}
	})

	t.Run("changed output is reported to the user", func(t *testing.T) {
		forger.setAlter(func(record *musterv1.JobRecord) {
			if output := record.GetOutput(); output != nil {
				output.Data = []byte("forged\n")
			}
		})
		out, stderr, code := execOn(t, f, "--all", "--", "/bin/sh", "-c", "echo honest; exit 0")
		if code != 0 || !strings.Contains(out, "n2: honest") || !strings.Contains(stderr, "n1: the output is not what the node signed") ||
			strings.Contains(stderr, "n2: the output") {
			t.Errorf("exit %d, printed %q and %q", code, out, stderr)
		}
	})

	changed := make(chan *musterv1.JobRecord, 100)
	changeFinals := func(record *musterv1.JobRecord) {
		if final := record.GetFinal(); final != nil {
			changed <- proto.Clone(record).(*musterv1.JobRecord)
			final.ExitCode = 0
		}
	}
	t.Run("the node's own final record is accepted after changed and invented ones", func(t *testing.T) {
		forger.setAlter(changeFinals)
		job := strings.TrimSpace(must(f.Muster("exec", "--all", "--detach", "--", "/bin/sh", "-c", "exit 3"))(t))
		invented := <-changed
		invented.GetFinal().ExitCode, invented.GetFinal().Signature = 0, nil
		forger.invent(invented)
		forger.setAlter(nil)
		out, _, code := machine{fleet: f, home: f.Home}.muster(t, nil, "job", "logs", "-f", "--json", job)
		for node, last := range finals(t, out) {
			if last["outcome"] != "exited" || last["exit_code"] != 3.0 || last["records_verified"] != true {
				t.Errorf("exit %d, on %s it ended as %v", code, node, last)
			}
		}
	})

	t.Run("the user is told why a final record is missing", func(t *testing.T) {
		forger.setAlter(changeFinals)
		out, stderr, code := execOn(t, f, "--all", "--deadline", "1s", "--ttl", "1s", "--json", "--", "/bin/sh", "-c", "exit 3")
		last := finals(t, out)
		if code == 0 || last["n1"]["outcome"] != "timed-out" || last["n2"]["outcome"] != "exited" || last["n2"]["exit_code"] != 3.0 {
			t.Errorf("exit %d, final records %v, stderr %q", code, last, stderr)
		}
		if detail := fmt.Sprint(last["n1"]["detail"]); last["n1"]["reason"] != "RECORD_REFUSED" || !strings.Contains(detail, "signature") {
			t.Errorf("the reason %v with the detail %q does not state why", last["n1"]["reason"], detail)
		}
		forger.setAlter(nil)
	})

	if out, stderr, code := execOn(t, f, "--all", "--", "/bin/echo", "well"); code != 0 || strings.Count(out, "well") != 2 {
		t.Errorf("afterwards: exit %d, %q %q", code, out, stderr)
	}
	select {
	case err := <-forger.rootIsRunning:
		t.Errorf("the root relay ended the stream of the relay: %v", err)
	default:
	}
}
