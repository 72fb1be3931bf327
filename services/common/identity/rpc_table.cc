#include "services/common/identity/rpc_table.h"

#include <initializer_list>

namespace muster {
namespace {

using Kind = Resource::Kind;

template <class T>
constexpr uint32_t Set(std::initializer_list<T> members) {
  uint32_t bits = 0;
  for (const T member : members) bits |= BitOf(member);
  return bits;
}

constexpr uint32_t kNobody = 0;
constexpr uint32_t kOperators = BitOf(Role::kOperator);
constexpr uint32_t kServices =
    Set({Role::kAggregator, Role::kStatus, Role::kGateway, Role::kRelay, Role::kJobs});
// The sources of results. Relays are not included: they forward results that nodes sign.
constexpr uint32_t kDeliverers = Set({Role::kNode, Role::kRunNode, Role::kRunPlugin});
// Sources whose certificate names the node.
constexpr uint32_t kProvenNodes = Set({Role::kNode, Role::kRunNode});
// Every client that a listener verifies. The listener of a run is only a server.
constexpr uint32_t kEveryPeer = kOperators | kServices | kDeliverers | BitOf(Role::kRunViewer);

// For calls between services, and for calls that give a name to a key or take it away: a gateway
// could use its own key.
constexpr uint32_t kDirectOnly = kNobody;
// For calls of a node for its runs, which may pass through relays.
constexpr uint32_t kAlsoThroughRelays = Set({Role::kGateway, Role::kRelay});

constexpr RpcRow kTable[] = {
    // Runs: operators may do everything, sources of results read their own run, the gateway opens
    // listeners. The gateway may get viewers' credentials for operators: these only read the status
    // of a run, which it reads anyway.
    {"/muster.v1.RunService/CreateRun", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.RunService/GetRun",
     {{{kOperators | kDeliverers | BitOf(Role::kGateway), BitOf(Kind::kRun)}}},
     kAlsoThroughRelays},
    {"/muster.v1.RunService/ListRuns",
     {{{kOperators | BitOf(Role::kGateway), BitOf(Kind::kFleet)}}}},
    {"/muster.v1.RunService/WatchRun",
     {{{kOperators | kDeliverers | BitOf(Role::kGateway), BitOf(Kind::kRun)}}},
     kAlsoThroughRelays},
    {"/muster.v1.RunService/CancelRun", {{{kOperators, BitOf(Kind::kRun)}}}},
    {"/muster.v1.RunService/DeleteRun", {{{kOperators, BitOf(Kind::kRun)}}}},
    {"/muster.v1.RunService/PinRun", {{{kOperators, BitOf(Kind::kRun)}}}},
    {"/muster.v1.RunService/UnpinRun", {{{kOperators, BitOf(Kind::kRun)}}}},
    {"/muster.v1.RunService/PreviewRetention", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.RunService/IssueCredential",
     {{{kOperators, Set({Kind::kRun, Kind::kPair})}}},
     kDirectOnly},
    {"/muster.v1.RunService/IssueViewerCredential", {{{kOperators, BitOf(Kind::kRun)}}}},
    {"/muster.v1.RunService/SetStatusListener", {{{kOperators, BitOf(Kind::kRun)}}}},

    // Results: only their own source delivers them, not even an operator. A relay delivers spooled
    // results of a node; the handlers verify the node's signature. A credential that names no node
    // may not read results of other nodes.
    {"/muster.v1.ResultService/OpenUpload",
     {{{kDeliverers | BitOf(Role::kRelay), BitOf(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/Upload",
     {{{kDeliverers | BitOf(Role::kRelay), BitOf(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/SubmitResult",
     {{{kDeliverers | BitOf(Role::kRelay), BitOf(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/GetResult",
     {{{kOperators | kDeliverers, BitOf(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/DeclineRedelivery",
     {{{kProvenNodes, BitOf(Kind::kPair)}}},
     BitOf(Role::kRelay)},
    {"/muster.v1.ResultService/ListResults", {{{kOperators, BitOf(Kind::kRun)}}}},
    {"/muster.v1.ResultService/ReadResult", {{{kOperators | kProvenNodes, BitOf(Kind::kPair)}}}},

    {"/muster.v1.ArchiveService/GetArchive", {{{kOperators, BitOf(Kind::kRun)}}}},
    {"/muster.v1.ArchiveService/ReadArchive", {{{kOperators, BitOf(Kind::kRun)}}}},

    // Status: operators read any run, and the newest run if they name none; viewers read their run,
    // others their own pair. The gateway also serves clients of the run's own client CA: it calls
    // as a viewer of that run.
    {"/muster.v1.StatusService/GetStatus",
     {{{kOperators, Set({Kind::kFleet, Kind::kRun, Kind::kPair})},
       {kDeliverers, BitOf(Kind::kPair)},
       {BitOf(Role::kRunViewer), BitOf(Kind::kRun)}}}},
    {"/muster.v1.StatusService/WatchStatus",
     {{{kOperators, Set({Kind::kFleet, Kind::kRun})},
       {BitOf(Role::kRunViewer), BitOf(Kind::kRun)}}}},
    {"/muster.v1.StatusService/ListNodes", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.StatusService/GetNode", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.StatusService/ReportProgress",
     {{{kDeliverers, BitOf(Kind::kPair)}}},
     kAlsoThroughRelays},

    {"/muster.v1.HeartbeatService/StreamHeartbeats",
     {{{kDeliverers, BitOf(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.HeartbeatService/RelayHeartbeats",
     {{{BitOf(Role::kRelay), BitOf(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.HeartbeatService/SendHeartbeat",
     {{{kDeliverers, BitOf(Kind::kPair)}}},
     kAlsoThroughRelays},

    // Identities. Not through the gateway if a key gets a name: a gateway could insert its own key,
    // and sign commands as an operator. Nor if a name is lost or released.
    {"/muster.v1.IdentityService/RenewCertificate",
     {{{kOperators | kServices | BitOf(Role::kNode), BitOf(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.IdentityService/AddOperator", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.IdentityService/RevokeOperator",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.IdentityService/ListOperators", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.IdentityService/IssueCommandCertificate",
     {{{kOperators | BitOf(Role::kGateway), BitOf(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.IdentityService/GetCommandRevocations",
     {{{kOperators | BitOf(Role::kRelay) | BitOf(Role::kJobs), BitOf(Kind::kFleet)}}}},

    // Nodes: tokens, enrolled nodes and labels. The holder of a token's key gets the certificate of
    // a node or relay, and a removed name can be taken with any token.
    {"/muster.v1.EnrollmentService/CreateJoinToken",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.EnrollmentService/ListJoinTokens", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/RevokeJoinToken", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/ListEnrolledNodes", {{{kOperators, BitOf(Kind::kFleet)}}}},
    // Relays may ask only whether a node exists; the handler enforces it.
    {"/muster.v1.EnrollmentService/GetEnrolledNode",
     {{{kOperators | BitOf(Role::kRelay), BitOf(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/LabelNode", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/RevokeNode", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/RemoveNode", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},

    // Machines that join through a relay. Only their proof counts, as on the listener without
    // client certificates.
    {"/muster.v1.JoinService/Join", {{{BitOf(Role::kRelay), BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.JoinService/Rejoin", {{{BitOf(Role::kRelay), BitOf(Kind::kFleet)}}}, kDirectOnly},

    // The tree of relays, and jobs.
    {"/muster.v1.AttachService/Attach",
     {{{Set({Role::kNode, Role::kRelay}), BitOf(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.AttachService/ListAttached",
     {{{kOperators | BitOf(Role::kGateway), BitOf(Kind::kFleet)}}}},
    {"/muster.v1.JobService/SubmitJob",
     {{{kOperators | Set({Role::kGateway, Role::kJobs}), BitOf(Kind::kFleet)}}}},
    {"/muster.v1.JobService/GetJob",
     {{{kOperators | Set({Role::kGateway, Role::kJobs}), BitOf(Kind::kFleet)}}}},
    {"/muster.v1.JobService/ListJobs", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.JobService/WatchJob",
     {{{kOperators | Set({Role::kGateway, Role::kJobs}), BitOf(Kind::kFleet)}}}},
    {"/muster.v1.JobService/CancelJob",
     {{{kOperators | Set({Role::kGateway, Role::kJobs}), BitOf(Kind::kFleet)}}}},

    // Template types, templates and deployments.
    {"/muster.v1.TemplateService/CreateTemplateType", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/GetTemplateType", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/ListTemplateTypes", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/CreateTemplate", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/GetTemplate", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/ListTemplates", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/PlanDeployment", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/CreateDeployment", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/GetDeployment", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/ListDeployments", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/CancelDeployment", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.ConformanceService/ListConformance", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.ConformanceService/GetConformance", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.ConformanceService/GetBaseline", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.ConformanceService/SetBaseline",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.ConformanceService/RemoveBaseline",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},

    // Secrets: values come only from an operator's own connection, and go only to nodes, sealed.
    {"/muster.v1.SecretService/PutSecret", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.SecretService/ListSecrets", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.SecretService/DeleteSecret", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.SecretService/FetchSecrets",
     {{{BitOf(Role::kNode), BitOf(Kind::kOwn)}}},
     BitOf(Role::kRelay)},

    // Workspaces: a node saves those of its deployments; the handler checks its signature.
    {"/muster.v1.WorkspaceService/ListWorkspaces", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.WorkspaceService/GetWorkspace", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.WorkspaceService/RestoreWorkspace",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.WorkspaceService/UnlockWorkspace",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.WorkspaceService/DeleteWorkspace", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.WorkspaceService/SaveWorkspace",
     {{{BitOf(Role::kNode), BitOf(Kind::kOwn)}}},
     BitOf(Role::kRelay)},

    // Contents of files. A node reads those of its deployments; the handler checks it.
    {"/muster.v1.ContentService/FindContents", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.ContentService/UploadContent", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.ContentService/ReadContent",
     {{{BitOf(Role::kNode), BitOf(Kind::kOwn)}}},
     BitOf(Role::kRelay)},

    // Shared files: a node accesses its own files, a relay those in transit. The
    // handlers check the signature of the source and the topology.
    {"/muster.v1.ShareService/OpenShare",
     {{{Set({Role::kNode, Role::kRelay}), BitOf(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.ShareService/UploadShare",
     {{{Set({Role::kNode, Role::kRelay}), BitOf(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.ShareService/GetShare",
     {{{Set({Role::kNode, Role::kRelay}), BitOf(Kind::kOwn)}, {kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.ShareService/ReadShare",
     {{{Set({Role::kNode, Role::kRelay}), BitOf(Kind::kOwn)}, {kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.ShareService/ListShares",
     {{{BitOf(Role::kNode), BitOf(Kind::kOwn)}, {kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.ShareService/RemoveShare",
     {{{Set({Role::kNode, Role::kRelay}), BitOf(Kind::kOwn)}, {kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.ShareService/ReportShare",
     {{{BitOf(Role::kRelay), BitOf(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.ShareService/AnswerShareQuery",
     {{{BitOf(Role::kRelay), BitOf(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.AuditService/ListAuditRecords", {{{kOperators, BitOf(Kind::kFleet)}}}},
    {"/muster.v1.AuditService/RecordShareRemoval",
     {{{BitOf(Role::kRelay), BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.AuditService/RecordJob",
     {{{BitOf(Role::kRelay), BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.AuditService/RecordServiceChange",
     {{{BitOf(Role::kJobs), BitOf(Kind::kFleet)}}},
     kDirectOnly},

    {"/muster.v1.VerificationService/VerifyStore",
     {{{kOperators, Set({Kind::kFleet, Kind::kRun})}}}},

    // Calls between services. Among the relays, only the root relay may follow the changes of the
    // fleet;
    // the handler enforces it.
    {"/muster.v1.ChangeService/FollowChanges",
     {{{Set({Role::kStatus, Role::kGateway, Role::kRelay, Role::kJobs}), BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/SignListenerCertificate",
     {{{BitOf(Role::kGateway), BitOf(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/ReportListener",
     {{{BitOf(Role::kGateway), BitOf(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/ReleaseListener",
     {{{BitOf(Role::kGateway), BitOf(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/GetStatusListener",
     {{{BitOf(Role::kGateway), BitOf(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/ReportStatusListener",
     {{{BitOf(Role::kGateway), BitOf(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.VerdictService/FollowVerdicts",
     {{{BitOf(Role::kAggregator), BitOf(Kind::kFleet)}}},
     kDirectOnly},

    // Inspection: the API and the health for every verified peer, connections for operators.
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     {{{kEveryPeer, BitOf(Kind::kFleet)}}}},
    {"/grpc.health.v1.Health/Check", {{{kEveryPeer, BitOf(Kind::kFleet)}}}},
    {"/grpc.health.v1.Health/Watch", {{{kEveryPeer, BitOf(Kind::kFleet)}}}},
    {"/grpc.channelz.v1.Channelz/GetTopChannels",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetServers", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetServer", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetServerSockets",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetChannel", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetSubchannel",
     {{{kOperators, BitOf(Kind::kFleet)}}},
     kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetSocket", {{{kOperators, BitOf(Kind::kFleet)}}}, kDirectOnly},
};

}  // namespace

absl::Span<const RpcRow> RpcTable() { return kTable; }

}  // namespace muster
