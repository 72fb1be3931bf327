package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"muster.example/testing/fleet"
)

// The services of each listener. A method that the caller may use fails elsewhere with UNIMPLEMENTED.
var servedAt = map[string]string{
	aggregatorListener: "RunService ResultService ArchiveService IdentityService EnrollmentService JoinService ChangeService " +
		"ListenerService AuditService VerificationService",
	statusListener: "StatusService HeartbeatService VerdictService",
	jobsListener:   "TemplateService DeploymentService ConformanceService ContentService SecretService WorkspaceService",
	relayListener: "AttachService JobService ShareService HeartbeatService JoinService RunService/GetRun RunService/WatchRun " +
		"ResultService/OpenUpload ResultService/Upload ResultService/SubmitResult ResultService/GetResult ResultService/DeclineRedelivery " +
		"StatusService/ReportProgress ContentService/ReadContent SecretService/FetchSecrets WorkspaceService/SaveWorkspace",
}

func serves(listener, method string) bool {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/muster.v1."), "/")
	return strings.HasPrefix(method, "/grpc.") || slices.Contains(strings.Fields(servedAt[listener]), service) ||
		slices.Contains(strings.Fields(servedAt[listener]), service+"/"+name)
}

// cell is one call of the table: a method at a listener by a role, directly or forwarded.
type cell struct {
	listener, method, role, via string
	allowed                     bool
}

func (c cell) String() string {
	return fmt.Sprintf("%s at %s by %s via %q", c.method, c.listener, c.role, c.via)
}

// judge compares the answer with the table.
func (c cell) judge(err error) string {
	text := status.Convert(err).Message()
	refused := strings.HasPrefix(text, "ROLE_NOT_ALLOWED") || strings.HasPrefix(text, "NOT_THROUGH_ANOTHER") ||
		strings.HasPrefix(text, "IDENTITY_NOT_FORWARDABLE")
	switch {
	case !c.allowed && (status.Code(err) != codes.PermissionDenied || !refused):
		return fmt.Sprintf("%v: the table refuses it, the answer is %v", c, err)
	case c.allowed && refused:
		return fmt.Sprintf("%v: the table admits it, the answer is %v", c, err)
	case c.allowed && (status.Code(err) == codes.Unimplemented) == serves(c.listener, c.method):
		return fmt.Sprintf("%v: served: %v, the answer is %v", c, serves(c.listener, c.method), err)
	case c.allowed && strings.HasPrefix(c.method, "/muster.") && isServiceFault(status.Code(err), reasonOf(err)):
		return fmt.Sprintf("%v: %v", c, err)
	}
	return ""
}

// cellsOf returns every call of a method at a listener: by each role itself, and forwarded by a gateway and by a relay. The
// relay has no statement of the node, so it is refused.
func cellsOf(listener, method string, row permission) (cells []cell) {
	for role := range roleURIs {
		may := slices.Contains(row.roles, role)
		cells = append(cells, cell{listener, method, role, "", may},
			cell{listener, method, role, "Gateway", may && slices.Contains(row.forwarders, "Gateway")},
			cell{listener, method, role, "Relay", false})
	}
	return cells
}

const (
	withStatement = "Relay with a statement" // of the node n1, which is valid
	anotherNode   = "Node n2"
)

// statementCells returns the calls of a method with the statement of a node: a relay may forward the node, and no other
// identity; other roles may forward no caller.
func statementCells(listener, method string, row permission) (cells []cell) {
	through := slices.Contains(row.roles, "Node") && slices.Contains(row.forwarders, "Relay")
	cells = append(cells, cell{listener, method, anotherNode, withStatement, false})
	for role := range roleURIs {
		cells = append(cells, cell{listener, method, role, withStatement, role == "Node" && through})
		if role != "Relay" && role != "Gateway" {
			cells = append(cells, cell{listener, method, "Node", role, false})
		}
	}
	return cells
}

// joinedRelay starts a relay that joined with a token, with these parents ("": the root relay), and returns the addresses
// of its listeners.
func joinedRelay(t *testing.T, f *fleet.Fleet, name, parents string) map[string]any {
	t.Helper()
	folder := joinRelay(t, f, name)
	addresses := filepath.Join(folder, "addresses.json")
	config := "state_folder: " + folder + "\nlisten: 127.0.0.1:0\njoin_listen: 127.0.0.1:0\naddresses_file: " + addresses + "\n"
	if parents != "" {
		config += "parents: [" + parents + "]\n"
	}
	program := must(f.Start(nil, nil, fleet.Relay, "--config", must(f.WriteFile(name+".yaml", config))(t)))(t)
	t.Cleanup(func() { endAndLog(t, name, program) })
	until(t, "relay "+name+" is attached", func() bool {
		_, err := os.Stat(addresses)
		return err == nil && nodes(t, f)[name]["attached"] == true
	})
	return member(t, addresses)
}

// Every method, at every listener, also of a relay that joined and of its child, by every kind of identity, directly
// and forwarded, with and without an attach statement, against the one table. A method without a row fails.
func TestEveryMethodAdmitsTheRolesOfTheTable(t *testing.T) {
	t.Parallel()
	f := up(t)
	callers := newCallers(t, f, run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1"))
	listeners := map[string]string{} // to that of the same kind in servedAt
	for listener := range servedAt {
		listeners[listener] = listener
	}
	joins, parents := []string{joinListener}, ""
	for _, name := range []string{"r1", "r2"} {
		addresses := joinedRelay(t, f, name, parents)
		parents = addresses["relay"].(string)
		listeners[name+".relay"], callers.listeners[name+".relay"] = relayListener, parents
		joins, callers.listeners[name+".join"] = append(joins, name+".join"), addresses["join"].(string)
	}
	table, methods := authorizationTable(t), methodsOfMuster()
	for method := range methods {
		if _, found := table[method]; !found {
			t.Errorf("%s has no row in the authorisation table", method)
		}
	}
	var cells []walkedCell
	connections := map[string]*grpc.ClientConn{}
	for at, listener := range listeners {
		for method, row := range table {
			for _, c := range append(cellsOf(listener, method, row), statementCells(listener, method, row)...) {
				cells = append(cells, walkedCell{c, at})
			}
		}
		for role := range roleURIs {
			connections[at+role] = callers.connection(t, at, role)
		}
	}
	statement := must(proto.Marshal(callers.attachStatement(t)))(t)
	work, workers := make(chan walkedCell), sync.WaitGroup{}
	for range 16 {
		workers.Go(func() {
			for c := range work {
				caller, ctx := c.role, context.Background()
				if c.via != "" {
					caller, ctx = c.via, callers.forwarded(ctx, c.role)
				}
				if c.via != "" && c.via != "Relay" && c.via != "Gateway" {
					caller = strings.TrimSuffix(caller, strings.TrimPrefix(withStatement, "Relay"))
					ctx = metadata.AppendToOutgoingContext(ctx, "muster-attach-statement-bin", string(statement))
				}
				patience := soon
				if d := methods[c.method]; c.allowed && serves(c.listener, c.method) && (d == nil || d.IsStreamingServer()) {
					patience = 100 * time.Millisecond // a stream that is admitted may last
				}
				_, err := talk(ctx, connections[c.at+caller], c.method, patience, nil)
				if fault := c.judge(err); fault != "" {
					t.Errorf("at %s: %s", c.at, fault)
				}
			}
		})
	}
	for _, c := range cells {
		work <- c
	}
	close(work)
	workers.Wait()
	t.Logf("%d cells", len(cells))

	for method := range table {
		served := strings.HasPrefix(method, "/muster.v1.JoinService/") || strings.HasPrefix(method, "/grpc.health.")
		for _, listener := range joins {
			_, err := talk(context.Background(), callers.connection(t, listener, ""), method, time.Second, nil)
			if (status.Code(err) == codes.Unimplemented) == served {
				t.Errorf("%s at the listener %s: %v", method, listener, err)
			}
		}
	}
	for listener := range listeners {
		if _, err := talk(context.Background(), callers.connection(t, listener, ""), "/grpc.health.v1.Health/Check", soon, nil); status.Code(err) != codes.Unavailable {
			t.Errorf("a call without a certificate at %s: %v", listener, err)
		}
	}
}

// walkedCell is a cell at one listener of its kind.
type walkedCell struct {
	cell
	at string
}
