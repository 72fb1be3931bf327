package rest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/metadata"

	"muster.example/gateway/fleet"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
)

// roles is a set of roles.
type roles uint16

const (
	operator roles = 1 << iota
	aggregator
	statusService
	gateway
	relay
	node
	runNode
	runPlugin
	runListener
	runViewer

	direct // not a role: the method may not be called through the gateway
)

const deliverers = node | runNode | runPlugin

// roleNames are those of services/common/identity.
var roleNames = []string{"operator", "aggregator", "status service", "gateway", "relay", "node", "run credential of one node",
	"run credential of any node", "run listener", "run viewer"}

func (r roles) String() string {
	var all []string
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
}

// bodyReaders are the roles that may call each method with a body. The services decide about every call, by the table in
// services/common/identity/rpc_authorization.cc; this copy of it refuses a body before it is read.
var bodyReaders = map[string]roles{
	musterv1.RunService_CreateRun_FullMethodName:                    operator,
	musterv1.RunService_CancelRun_FullMethodName:                    operator,
	musterv1.RunService_IssueCredential_FullMethodName:              operator,
	musterv1.RunService_IssueViewerCredential_FullMethodName:        operator,
	musterv1.RunService_SetStatusListener_FullMethodName:            operator,
	musterv1.HeartbeatService_SendHeartbeat_FullMethodName:          deliverers,
	musterv1.StatusService_ReportProgress_FullMethodName:            deliverers,
	musterv1.IdentityService_RenewCertificate_FullMethodName:        direct,
	musterv1.IdentityService_AddOperator_FullMethodName:             direct,
	musterv1.IdentityService_IssueCommandCertificate_FullMethodName: direct,
	musterv1.IdentityService_RevokeOperator_FullMethodName:          operator,
	musterv1.EnrollmentService_CreateJoinToken_FullMethodName:       operator,
	musterv1.EnrollmentService_RevokeJoinToken_FullMethodName:       operator,
	musterv1.EnrollmentService_LabelNode_FullMethodName:             operator,
	musterv1.EnrollmentService_RevokeNode_FullMethodName:            operator,
	musterv1.JobService_SubmitJob_FullMethodName:                    operator | gateway,
}

// roleOf returns the role of an identity; 0: none.
func roleOf(id peer.Identity) roles {
	switch id.Kind {
	case peer.User:
		return operator
	case peer.Node:
		return node
	case peer.AnyNode:
		return runPlugin
	case peer.PluginNode:
		return runNode
	case peer.Listener:
		return runListener
	case peer.Viewer:
		return runViewer
	case peer.Service:
		return map[string]roles{"aggregator": aggregator, "status": statusService, "gateway": gateway, "relay": relay}[id.Role]
	}
	return 0
}

// checkBody decides, once the method is known and before the body is read, whether the caller may send one.
func (s *Server) checkBody(ctx context.Context, r *http.Request) metadata.MD {
	content, ok := r.Body.(*content)
	method, known := runtime.RPCMethod(ctx)
	if !ok || !known {
		return nil
	}
	allowed, found := bodyReaders[method]
	id, valid := fleet.IdentityOf(ctx)
	switch caller := fmt.Sprintf("%s (%s, forwarded by %s)", id.URI, roleOf(id), s.keys.Identity().URI); {
	case !found: // the method has no body: what a client sends is ignored
	case allowed == direct:
		content.refuse(http.StatusForbidden, NotThroughGateway(caller, method))
	case !valid || allowed&roleOf(id) == 0:
		content.refuse(http.StatusForbidden, RoleRefused(caller, method, allowed.String()))
	}
	return nil
}

// content is the body of a request. It remembers why it could not be read, because its reader keeps only the text.
type content struct {
	io.ReadCloser
	refused bool
	fault   error
	code    int
	problem Problem
}

// errRefused is the error of a body that its sender may not send.
var errRefused = fmt.Errorf("the caller may not send a body")

// refuse lets reads fail: the body is not read, and the client not asked to send it.
func (c *content) refuse(code int, problem Problem) {
	c.refused, c.fault, c.code, c.problem = true, errRefused, code, problem
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	if c.refused {
		return 0, errRefused
	}
	n, err := c.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		c.fault = err
	}
	return n, err
}
