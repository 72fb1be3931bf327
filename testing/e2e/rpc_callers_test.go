package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// rawCodec sends and receives messages as bytes, so that a test may send any.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

func (rawCodec) Name() string { return "proto" }

// The roles of certificates, as in services/common/identity/rpc_table.cc, and the URI of one identity of each.
// RUN stands for a run.
var roleURIs = map[string]string{
	"Operator": "user/walker", "Aggregator": "service/aggregator/walker", "Status": "service/status/walker",
	"Gateway": "service/gateway/walker", "Relay": "service/relay/walker", "Jobs": "service/jobs/walker", "Node": "node/n1",
	"RunNode": "RUN/plugin/logs/node/n1", "RunPlugin": "RUN/plugin/logs", "RunListener": "RUN/listener", "RunViewer": "RUN/viewer",
}

// The listeners of gRPC, as in the files of addresses.
const (
	aggregatorListener = "aggregator.aggregator"
	joinListener       = "aggregator.join"
	statusListener     = "status.status"
	relayListener      = "relay.relay"
	jobsListener       = "jobs.jobs"
)

// rpcCallers has a connection of each kind of caller to each listener of a fleet.
type rpcCallers struct {
	fleet     *fleet.Fleet
	operator  *fleet.Operator
	run       string
	authority *fleet.Authority // of the fleet
	runs      *fleet.Authority // of the run
	listeners map[string]string
	open      map[string]*grpc.ClientConn // by listener and caller
}

func newCallers(t *testing.T, f *fleet.Fleet, run string) *rpcCallers {
	t.Helper()
	c := &rpcCallers{fleet: f, operator: must(f.Operator())(t), run: run, listeners: map[string]string{}, open: map[string]*grpc.ClientConn{}}
	c.authority = must(f.StealFleetAuthority())(t)
	c.runs = must(f.StealAuthority(must(f.Export(run, "logs", "n1"))(t)))(t)
	must(f.Muster("operator", "add", "walker"))(t) // a gateway acts only for operators that the aggregator has recorded
	for service, names := range map[string][]string{"aggregator": {"aggregator", "join", "health"}, "status": {"status", "health"}, "relay": {"relay", "health"},
		"jobs": {"jobs", "health"}} {
		var addresses map[string]string
		check(t, json.Unmarshal(must(os.ReadFile(filepath.Join(f.Home, "run", service+".addresses.json")))(t), &addresses))
		for _, name := range names {
			c.listeners[service+"."+name] = addresses[name]
		}
	}
	for listener := range methodOfOperators {
		until(t, listener+" has received the operator from the feed", func() bool {
			return c.throughGateway(t, listener, c.uri("Operator")) != "OPERATOR_NOT_RECORDED"
		})
	}
	return c
}

// methodOfOperators is a method that the followers of the aggregator's feed serve to operators.
var methodOfOperators = map[string]string{
	statusListener: "/muster.v1.StatusService/ListNodes",
	relayListener:  "/muster.v1.ShareService/ListShares",
	jobsListener:   "/muster.v1.TemplateService/ListTemplates",
}

// throughGateway returns the reason for which a service refuses the call of a gateway for an operator; "-" if it does not.
func (c *rpcCallers) throughGateway(t *testing.T, listener, operator string) string {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(context.Background(), "muster-forwarded-identity", operator)
	_, err := talk(ctx, c.connection(t, listener, "Gateway"), methodOfOperators[listener], soon, nil)
	return reasonOf(err)
}

// uri is the URI of the identity of a role.
func (c *rpcCallers) uri(role string) string {
	if role == anotherNode {
		return strings.Replace(c.uri("Node"), "/n1", "/n2", 1)
	}
	if path, found := strings.CutPrefix(roleURIs[role], "RUN"); found {
		return "spiffe://" + c.run + "." + c.operator.Fleet + path
	}
	return "spiffe://" + c.operator.Fleet + "/" + roleURIs[role]
}

// issue signs a certificate for a role.
func (c *rpcCallers) issue(t *testing.T, role string) (chain, key string) {
	t.Helper()
	authority := c.authority
	if strings.HasPrefix(roleURIs[role], "RUN") {
		authority = c.runs
	}
	chain, key, err := authority.Issue(c.uri(role), time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
	check(t, err)
	return chain, key
}

// connection returns the connection of a role to a listener. The role "" has no certificate.
func (c *rpcCallers) connection(t *testing.T, listener, role string) *grpc.ClientConn {
	t.Helper()
	key := listener + " " + role
	if c.open[key] == nil {
		c.open[key] = c.dial(t, listener, role)
	}
	return c.open[key]
}

// dial makes a separate connection.
func (c *rpcCallers) dial(t *testing.T, listener, role string) *grpc.ClientConn {
	t.Helper()
	raw := grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}))
	var connection *grpc.ClientConn
	switch {
	case strings.HasSuffix(listener, ".health"):
		connection = must(grpc.NewClient("passthrough:///"+c.listeners[listener], raw, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	case role == "":
		connection = must(c.operator.Dial(c.listeners[listener], "", "", raw))(t)
	default:
		chain, private := c.issue(t, role)
		connection = must(c.operator.Dial(c.listeners[listener], chain, private, raw))(t)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// forwarded is the context of a call that a gateway or a relay makes for a role.
func (c *rpcCallers) forwarded(ctx context.Context, role string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "muster-forwarded-identity", c.uri(role))
}

// attachStatement returns a statement of the node n1 for the root relay.
func (c *rpcCallers) attachStatement(t *testing.T) *musterv1.AttachStatement {
	t.Helper()
	chain, key := c.issue(t, "Node")
	child := &forgingRelay{identity: must(tls.X509KeyPair([]byte(chain), []byte(key)))(t), chain: chain, uri: c.uri("Node")}
	connection := must(c.operator.Dial(c.listeners[relayListener], chain, key))(t)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	stream := must(musterv1.NewAttachServiceClient(connection).Attach(ctx))(t)
	return child.statement(t, must(stream.Recv())(t).GetGreeting())
}

// talk sends messages of any method, and returns the responses and the error; a call with the error nil went well, or
// did not end within `patience` after its last response.
func talk(ctx context.Context, connection *grpc.ClientConn, method string, patience time.Duration, messages ...[]byte) (responses [][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return nil, err
	}
	for _, message := range messages {
		if stream.SendMsg(&message) != nil {
			break // the reason is received
		}
	}
	_ = stream.CloseSend()
	for len(responses) < 16 {
		var response []byte
		if err := stream.RecvMsg(&response); err == io.EOF || ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded && reason(err) == "" {
			return responses, nil
		} else if err != nil {
			return responses, err
		}
		responses = append(responses, response)
	}
	return responses, nil
}

// methodsOfMuster returns every method of the API by its path.
func methodsOfMuster() map[string]protoreflect.MethodDescriptor {
	all := map[string]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage("muster.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				method := file.Services().Get(i).Methods().Get(j)
				all["/"+string(method.Parent().FullName())+"/"+string(method.Name())] = method
			}
		}
		return true
	})
	return all
}

// permission is a row of the authorisation table.
type permission struct{ roles, forwarders []string }

// The sets of roles in the table.
var roleSets = map[string][]string{
	"kOperators": {"Operator"}, "kServices": {"Aggregator", "Status", "Gateway", "Relay", "Jobs"}, "kDeliverers": {"Node", "RunNode", "RunPlugin"},
	"kProvenNodes": {"Node", "RunNode"}, "kDirectOnly": {}, "kAlsoThroughRelays": {"Gateway", "Relay"},
	"kEveryPeer": {"Operator", "Aggregator", "Status", "Gateway", "Relay", "Jobs", "Node", "RunNode", "RunPlugin", "RunViewer"},
}

var (
	rowOfTable  = regexp.MustCompile(`\{"(/[^"]+)"`)
	nameInTable = regexp.MustCompile(`\b(?:Role::|Kind::)?k[A-Z]\w*`)
)

// authorizationTable reads the table of services/common/identity/rpc_table.cc.
func authorizationTable(t *testing.T) map[string]permission {
	t.Helper()
	text := string(must(os.ReadFile("../../services/common/identity/rpc_table.cc"))(t))
	_, text, _ = strings.Cut(text, "kTable[] = {")
	text, _, _ = strings.Cut(text, "}  // namespace")
	text = regexp.MustCompile(`//.*`).ReplaceAllString(text, "")
	rolesIn := func(of string) (roles []string) {
		for _, name := range nameInTable.FindAllString(of, -1) {
			set, known := roleSets[name]
			if role, one := strings.CutPrefix(name, "Role::k"); one {
				set, known = []string{role}, roleURIs[role] != ""
			}
			if !known && !strings.HasPrefix(name, "Kind::") {
				t.Fatalf("unknown name %s in %s", name, of)
			}
			roles = append(roles, set...)
		}
		return roles
	}
	table := map[string]permission{}
	starts := rowOfTable.FindAllStringSubmatchIndex(text, -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		grants, rest, _ := strings.Cut(text[at[1]:end], "}}}")
		row := permission{rolesIn(grants), []string{"Gateway"}}
		if strings.Contains(rest, "k") {
			row.forwarders = rolesIn(rest)
		}
		table[text[at[2]:at[3]]] = row
	}
	if len(table) < 70 {
		t.Fatalf("read only %d rows of the authorisation table", len(table))
	}
	return table
}

// csr is a signing request of a new key, in PEM.
func csr(t *testing.T) string {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
