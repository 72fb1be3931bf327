package rest

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"muster.example/gateway/fleet"
	"muster.example/gateway/limits"
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
	jobs
	node
	runNode
	runPlugin
	runListener
	runViewer

	direct // not a role: the method may not be called through the gateway
)

const deliverers = node | runNode | runPlugin

// roleNames are those of services/common/identity.
var roleNames = []string{"operator", "aggregator", "status service", "gateway", "relay", "jobs service", "node", "run credential of one node",
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

// deliverersAndOperators may read a run.
const deliverersAndOperators = deliverers | operator

// callers are the roles that may call each method. The services decide about every call and its object, by the table in
// services/common/identity/rpc_table.cc; this copy of it refuses a call before its body is read. A method
// without an entry may be called by no caller.
var callers = map[string]roles{
	musterv1.RunService_CreateRun_FullMethodName:                    operator,
	musterv1.RunService_GetRun_FullMethodName:                       deliverersAndOperators | gateway,
	musterv1.RunService_ListRuns_FullMethodName:                     operator | gateway,
	musterv1.RunService_WatchRun_FullMethodName:                     deliverersAndOperators | gateway,
	musterv1.RunService_CancelRun_FullMethodName:                    operator,
	musterv1.RunService_DeleteRun_FullMethodName:                    operator,
	musterv1.RunService_PinRun_FullMethodName:                       operator,
	musterv1.RunService_UnpinRun_FullMethodName:                     operator,
	musterv1.RunService_PreviewRetention_FullMethodName:             operator,
	musterv1.RunService_IssueCredential_FullMethodName:              direct,
	musterv1.RunService_IssueViewerCredential_FullMethodName:        operator,
	musterv1.RunService_SetStatusListener_FullMethodName:            operator,
	musterv1.ResultService_GetResult_FullMethodName:                 deliverersAndOperators,
	musterv1.ResultService_ListResults_FullMethodName:               operator,
	musterv1.ArchiveService_GetArchive_FullMethodName:               operator,
	musterv1.StatusService_GetStatus_FullMethodName:                 deliverersAndOperators | runViewer,
	musterv1.StatusService_WatchStatus_FullMethodName:               operator | runViewer,
	musterv1.StatusService_ListNodes_FullMethodName:                 operator,
	musterv1.StatusService_GetNode_FullMethodName:                   operator,
	musterv1.StatusService_ReportProgress_FullMethodName:            deliverers,
	musterv1.HeartbeatService_SendHeartbeat_FullMethodName:          deliverers,
	musterv1.IdentityService_RenewCertificate_FullMethodName:        direct,
	musterv1.IdentityService_AddOperator_FullMethodName:             direct,
	musterv1.IdentityService_IssueCommandCertificate_FullMethodName: direct,
	musterv1.IdentityService_RevokeOperator_FullMethodName:          direct,
	musterv1.IdentityService_ListOperators_FullMethodName:           operator,
	musterv1.EnrollmentService_CreateJoinToken_FullMethodName:       direct,
	musterv1.EnrollmentService_ListJoinTokens_FullMethodName:        operator,
	musterv1.EnrollmentService_RevokeJoinToken_FullMethodName:       operator,
	musterv1.EnrollmentService_ListEnrolledNodes_FullMethodName:     operator,
	musterv1.EnrollmentService_GetEnrolledNode_FullMethodName:       operator | relay,
	musterv1.EnrollmentService_LabelNode_FullMethodName:             operator,
	musterv1.EnrollmentService_RevokeNode_FullMethodName:            operator,
	musterv1.EnrollmentService_RemoveNode_FullMethodName:            direct,
	musterv1.AttachService_ListAttached_FullMethodName:              operator | gateway,
	musterv1.JobService_SubmitJob_FullMethodName:                    operator | gateway | jobs,
	musterv1.JobService_GetJob_FullMethodName:                       operator | gateway | jobs,
	musterv1.JobService_ListJobs_FullMethodName:                     operator,
	musterv1.AuditService_ListAuditRecords_FullMethodName:           operator,
	musterv1.JobService_WatchJob_FullMethodName:                     operator | gateway | jobs,
	musterv1.JobService_CancelJob_FullMethodName:                    operator | gateway | jobs,
	musterv1.ShareService_ListShares_FullMethodName:                 operator | node,
	musterv1.ShareService_GetShare_FullMethodName:                   operator | relay | node,
	musterv1.ShareService_RemoveShare_FullMethodName:                operator | relay | node,
	musterv1.TemplateService_CreateTemplateType_FullMethodName:      operator,
	musterv1.TemplateService_GetTemplateType_FullMethodName:         operator,
	musterv1.TemplateService_ListTemplateTypes_FullMethodName:       operator,
	musterv1.TemplateService_CreateTemplate_FullMethodName:          operator,
	musterv1.TemplateService_GetTemplate_FullMethodName:             operator,
	musterv1.TemplateService_ListTemplates_FullMethodName:           operator,
	musterv1.DeploymentService_PlanDeployment_FullMethodName:        operator,
	musterv1.DeploymentService_CreateDeployment_FullMethodName:      operator,
	musterv1.DeploymentService_GetDeployment_FullMethodName:         operator,
	musterv1.DeploymentService_ListDeployments_FullMethodName:       operator,
	musterv1.DeploymentService_CancelDeployment_FullMethodName:      operator,
	musterv1.ConformanceService_ListConformance_FullMethodName:      operator,
	musterv1.ConformanceService_GetConformance_FullMethodName:       operator,
	musterv1.ConformanceService_GetBaseline_FullMethodName:          operator,
	musterv1.SecretService_ListSecrets_FullMethodName:               operator,
	musterv1.WorkspaceService_ListWorkspaces_FullMethodName:         operator,
	musterv1.WorkspaceService_GetWorkspace_FullMethodName:           operator,
	musterv1.WorkspaceService_DeleteWorkspace_FullMethodName:        operator,
	// The rights to content are those of its description.
	archiveContent: operator,
	resultContent:  operator | node | runNode,
	dashboardLink:  operator,
	openAPI:        anybody,
}

// The hand-written routes have their own names.
const (
	archiveContent = "/Gateway/ReadArchive"
	resultContent  = "/Gateway/ReadResult"
	dashboardLink  = "/Gateway/NewDashboardLink"
	openAPI        = "/Gateway/OpenAPI"

	anybody = ^direct // every member of the fleet
)

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
		return map[string]roles{"aggregator": aggregator, "status": statusService, "gateway": gateway, "relay": relay, "jobs": jobs}[id.Role]
	}
	return 0
}

// refuseCaller answers a caller that may not call a method, and reports whether it did. It does not read the body.
func (s *Server) refuseCaller(w http.ResponseWriter, r *http.Request, method string) bool {
	allowed := callers[method]
	id, valid := fleet.IdentityOf(r.Context())
	switch caller := fmt.Sprintf("%s (%s, forwarded by %s)", id.URI, roleOf(id), s.keys.Identity().URI); {
	case allowed == direct:
		AnswerProblem(w, http.StatusForbidden, NotThroughGateway(caller, method))
	case !valid || allowed&roleOf(id) == 0:
		AnswerProblem(w, http.StatusForbidden, RoleRefused(caller, method, allowed.String()))
	default:
		return false
	}
	return true
}

// bodyLimit returns the largest body of a method. Only operators may send a long one, which names many nodes.
func bodyLimit(method string) int64 {
	switch method {
	case musterv1.RunService_CreateRun_FullMethodName, musterv1.JobService_SubmitJob_FullMethodName,
		musterv1.DeploymentService_PlanDeployment_FullMethodName, musterv1.DeploymentService_CreateDeployment_FullMethodName:
		return limits.PlanBody
	}
	return limits.Body
}

// content is the body of a request. It remembers why it could not be read, because its reader keeps only the text. Its
// bytes count against the limits of its caller until the end of the request.
type content struct {
	io.ReadCloser
	caller  string
	quota   *limits.Quota
	over    func() // counts a refusal because of the quota
	limit   int64
	read    int64
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
	switch size := int64(n); {
	case c.read+size > c.limit:
		c.refuse(http.StatusRequestEntityTooLarge, RequestTooLarge(c.limit))
		return 0, errRefused
	case !c.quota.Acquire(c.caller, size):
		c.over()
		c.refuse(http.StatusTooManyRequests, TooManyBodyBytes(c.quota.Each))
		return 0, errRefused
	default:
		c.read += size
	}
	return n, err
}

// end releases the bytes.
func (c *content) end() { c.quota.Release(c.caller, c.read) }
