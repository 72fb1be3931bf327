package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The services of each listener. A method that the caller may use fails elsewhere with UNIMPLEMENTED.
var servedAt = map[string]string{
	aggregatorListener: "RunService ResultService ArchiveService IdentityService EnrollmentService JoinService ChangeService " +
		"ListenerService AuditService VerificationService",
	statusListener: "StatusService HeartbeatService VerdictService",
	jobsListener:   "TemplateService DeploymentService",
	relayListener: "AttachService JobService ShareService HeartbeatService JoinService RunService/GetRun RunService/WatchRun " +
		"ResultService/OpenUpload ResultService/Upload ResultService/SubmitResult ResultService/GetResult StatusService/ReportProgress",
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

// Every method, at every listener, by every kind of identity, directly and forwarded, against the one table. A method
// without a row fails.
func TestEveryMethodAdmitsTheRolesOfTheTable(t *testing.T) {
	t.Parallel()
	f := up(t)
	callers := newCallers(t, f, run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1"))
	table, methods := authorizationTable(t), methodsOfMuster()
	for method := range methods {
		if _, found := table[method]; !found {
			t.Errorf("%s has no row in the authorisation table", method)
		}
	}
	var cells []cell
	for method, row := range table {
		for listener := range servedAt {
			cells = append(cells, cellsOf(listener, method, row)...)
		}
	}
	connections := map[string]*grpc.ClientConn{}
	for listener := range servedAt {
		for role := range roleURIs {
			connections[listener+role] = callers.connection(t, listener, role)
		}
	}
	work, workers := make(chan cell), sync.WaitGroup{}
	for range 16 {
		workers.Go(func() {
			for c := range work {
				caller, ctx := c.role, context.Background()
				if c.via != "" {
					caller, ctx = c.via, callers.forwarded(ctx, c.role)
				}
				patience := soon
				if d := methods[c.method]; c.allowed && serves(c.listener, c.method) && (d == nil || d.IsStreamingServer()) {
					patience = 100 * time.Millisecond // a stream that is admitted may last
				}
				_, err := talk(ctx, connections[c.listener+caller], c.method, patience, nil)
				if fault := c.judge(err); fault != "" {
					t.Error(fault)
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
		joins := strings.HasPrefix(method, "/muster.v1.JoinService/") || strings.HasPrefix(method, "/grpc.health.")
		_, err := talk(context.Background(), callers.connection(t, joinListener, ""), method, time.Second, nil)
		if (status.Code(err) == codes.Unimplemented) == joins {
			t.Errorf("%s at the listener for joining: %v", method, err)
		}
	}
	for listener := range servedAt {
		if _, err := talk(context.Background(), callers.connection(t, listener, ""), "/grpc.health.v1.Health/Check", soon, nil); status.Code(err) != codes.Unavailable {
			t.Errorf("a call without a certificate at %s: %v", listener, err)
		}
	}
}
