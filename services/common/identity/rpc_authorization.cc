#include "services/common/identity/rpc_authorization.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"

namespace muster {
namespace {

using Kind = Resource::Kind;

constexpr uint32_t Bit(Role role) { return uint32_t{1} << static_cast<int>(role); }
constexpr uint32_t Bit(Kind kind) { return uint32_t{1} << static_cast<int>(kind); }

template <class T>
constexpr uint32_t Set(std::initializer_list<T> members) {
  uint32_t bits = 0;
  for (const T member : members) bits |= Bit(member);
  return bits;
}

constexpr std::array kAllRoles = {Role::kOperator,    Role::kAggregator, Role::kStatus,
                                  Role::kGateway,     Role::kRelay,      Role::kJobs,
                                  Role::kNode,        Role::kRunNode,    Role::kRunPlugin,
                                  Role::kRunListener, Role::kRunViewer};

constexpr uint32_t kNobody = 0;
constexpr uint32_t kOperators = Bit(Role::kOperator);
constexpr uint32_t kServices =
    Set({Role::kAggregator, Role::kStatus, Role::kGateway, Role::kRelay, Role::kJobs});
// The sources of results. Relays are not included: they forward results that nodes sign.
constexpr uint32_t kDeliverers = Set({Role::kNode, Role::kRunNode, Role::kRunPlugin});
// Sources whose certificate names the node.
constexpr uint32_t kProvenNodes = Set({Role::kNode, Role::kRunNode});
// Every client that a listener verifies. The listener of a run is only a server.
constexpr uint32_t kEveryPeer = kOperators | kServices | kDeliverers | Bit(Role::kRunViewer);

// The resources that some roles may access with a method.
struct Grant {
  uint32_t roles = kNobody;
  uint32_t kinds = 0;
};

struct Row {
  std::string_view method;
  std::array<Grant, 3> grants;
  // The roles that may call it on behalf of others.
  uint32_t forwarders = Bit(Role::kGateway);
};

// For calls between services, and for calls that give a name to a key or take it away: a gateway
// could use its own key.
constexpr uint32_t kDirectOnly = kNobody;
// For calls of a node for its runs, which may pass through relays.
constexpr uint32_t kAlsoThroughRelays = Set({Role::kGateway, Role::kRelay});

// The table. A method that is not in it is refused.
constexpr Row kTable[] = {
    // Runs: operators may do everything, sources of results read their own run, the gateway opens
    // listeners. The gateway may get viewers' credentials for operators: these only read the status
    // of a run, which it reads anyway.
    {"/muster.v1.RunService/CreateRun", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.RunService/GetRun",
     {{{kOperators | kDeliverers | Bit(Role::kGateway), Bit(Kind::kRun)}}},
     kAlsoThroughRelays},
    {"/muster.v1.RunService/ListRuns", {{{kOperators | Bit(Role::kGateway), Bit(Kind::kFleet)}}}},
    {"/muster.v1.RunService/WatchRun",
     {{{kOperators | kDeliverers | Bit(Role::kGateway), Bit(Kind::kRun)}}},
     kAlsoThroughRelays},
    {"/muster.v1.RunService/CancelRun", {{{kOperators, Bit(Kind::kRun)}}}},
    {"/muster.v1.RunService/DeleteRun", {{{kOperators, Bit(Kind::kRun)}}}},
    {"/muster.v1.RunService/PinRun", {{{kOperators, Bit(Kind::kRun)}}}},
    {"/muster.v1.RunService/UnpinRun", {{{kOperators, Bit(Kind::kRun)}}}},
    {"/muster.v1.RunService/PreviewRetention", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.RunService/IssueCredential",
     {{{kOperators, Set({Kind::kRun, Kind::kPair})}}},
     kDirectOnly},
    {"/muster.v1.RunService/IssueViewerCredential", {{{kOperators, Bit(Kind::kRun)}}}},
    {"/muster.v1.RunService/SetStatusListener", {{{kOperators, Bit(Kind::kRun)}}}},

    // Results: only their own source delivers them, not even an operator. A relay delivers spooled
    // results of a node; the handlers verify the node's signature. A credential that names no node
    // may not read results of other nodes.
    {"/muster.v1.ResultService/OpenUpload",
     {{{kDeliverers | Bit(Role::kRelay), Bit(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/Upload",
     {{{kDeliverers | Bit(Role::kRelay), Bit(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/SubmitResult",
     {{{kDeliverers | Bit(Role::kRelay), Bit(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/GetResult",
     {{{kOperators | kDeliverers, Bit(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/DeclineRedelivery",
     {{{kProvenNodes, Bit(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.ResultService/ListResults", {{{kOperators, Bit(Kind::kRun)}}}},
    {"/muster.v1.ResultService/ReadResult", {{{kOperators | kProvenNodes, Bit(Kind::kPair)}}}},

    {"/muster.v1.ArchiveService/GetArchive", {{{kOperators, Bit(Kind::kRun)}}}},
    {"/muster.v1.ArchiveService/ReadArchive", {{{kOperators, Bit(Kind::kRun)}}}},

    // Status: operators read any run, and the newest run if they name none; viewers read their run,
    // others their own pair. The gateway also serves clients of the run's own client CA: it calls
    // as a viewer of that run.
    {"/muster.v1.StatusService/GetStatus",
     {{{kOperators, Set({Kind::kFleet, Kind::kRun, Kind::kPair})},
       {kDeliverers, Bit(Kind::kPair)},
       {Bit(Role::kRunViewer), Bit(Kind::kRun)}}}},
    {"/muster.v1.StatusService/WatchStatus",
     {{{kOperators, Set({Kind::kFleet, Kind::kRun})}, {Bit(Role::kRunViewer), Bit(Kind::kRun)}}}},
    {"/muster.v1.StatusService/ListNodes", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.StatusService/GetNode", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.StatusService/ReportProgress",
     {{{kDeliverers, Bit(Kind::kPair)}}},
     kAlsoThroughRelays},

    {"/muster.v1.HeartbeatService/StreamHeartbeats",
     {{{kDeliverers, Bit(Kind::kPair)}}},
     kAlsoThroughRelays},
    {"/muster.v1.HeartbeatService/RelayHeartbeats",
     {{{Bit(Role::kRelay), Bit(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.HeartbeatService/SendHeartbeat",
     {{{kDeliverers, Bit(Kind::kPair)}}},
     kAlsoThroughRelays},

    // Identities. Not through the gateway if a key gets a name: a gateway could insert its own key,
    // and sign commands as an operator. Nor if a name is lost or released.
    {"/muster.v1.IdentityService/RenewCertificate",
     {{{kOperators | kServices | Bit(Role::kNode), Bit(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.IdentityService/AddOperator", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.IdentityService/RevokeOperator", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.IdentityService/ListOperators", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.IdentityService/IssueCommandCertificate",
     {{{kOperators | Bit(Role::kGateway), Bit(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.IdentityService/GetCommandRevocations",
     {{{kOperators | Bit(Role::kRelay) | Bit(Role::kJobs), Bit(Kind::kFleet)}}}},

    // Nodes: tokens, enrolled nodes and labels. The holder of a token's key gets the certificate of
    // a node or relay, and a removed name can be taken with any token.
    {"/muster.v1.EnrollmentService/CreateJoinToken",
     {{{kOperators, Bit(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.EnrollmentService/ListJoinTokens", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/RevokeJoinToken", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/ListEnrolledNodes", {{{kOperators, Bit(Kind::kFleet)}}}},
    // Relays may ask only whether a node exists; the handler enforces it.
    {"/muster.v1.EnrollmentService/GetEnrolledNode",
     {{{kOperators | Bit(Role::kRelay), Bit(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/LabelNode", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/RevokeNode", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.EnrollmentService/RemoveNode", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},

    // Machines that join through a relay. Only their proof counts, as on the listener without
    // client certificates.
    {"/muster.v1.JoinService/Join", {{{Bit(Role::kRelay), Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.JoinService/Rejoin", {{{Bit(Role::kRelay), Bit(Kind::kFleet)}}}, kDirectOnly},

    // The tree of relays, and jobs.
    {"/muster.v1.AttachService/Attach",
     {{{Set({Role::kNode, Role::kRelay}), Bit(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.AttachService/ListAttached",
     {{{kOperators | Bit(Role::kGateway), Bit(Kind::kFleet)}}}},
    {"/muster.v1.JobService/SubmitJob",
     {{{kOperators | Set({Role::kGateway, Role::kJobs}), Bit(Kind::kFleet)}}}},
    {"/muster.v1.JobService/GetJob",
     {{{kOperators | Set({Role::kGateway, Role::kJobs}), Bit(Kind::kFleet)}}}},
    {"/muster.v1.JobService/ListJobs", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.JobService/WatchJob",
     {{{kOperators | Set({Role::kGateway, Role::kJobs}), Bit(Kind::kFleet)}}}},
    {"/muster.v1.JobService/CancelJob",
     {{{kOperators | Set({Role::kGateway, Role::kJobs}), Bit(Kind::kFleet)}}}},

    // Template types, templates and deployments.
    {"/muster.v1.TemplateService/CreateTemplateType", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/GetTemplateType", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/ListTemplateTypes", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/CreateTemplate", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/GetTemplate", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.TemplateService/ListTemplates", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/PlanDeployment", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/CreateDeployment", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/GetDeployment", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/ListDeployments", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.DeploymentService/CancelDeployment", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.ConformanceService/ListConformance", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.ConformanceService/GetConformance", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.ConformanceService/GetBaseline", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.ConformanceService/SetBaseline", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.ConformanceService/RemoveBaseline",
     {{{kOperators, Bit(Kind::kFleet)}}},
     kDirectOnly},

    // Secrets: values come only from an operator's own connection, and go only to nodes, sealed.
    {"/muster.v1.SecretService/PutSecret", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.SecretService/ListSecrets", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.SecretService/DeleteSecret", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.SecretService/FetchSecrets",
     {{{Bit(Role::kNode), Bit(Kind::kOwn)}}},
     Bit(Role::kRelay)},

    // Workspaces: a node saves those of its deployments; the handler checks its signature.
    {"/muster.v1.WorkspaceService/ListWorkspaces", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.WorkspaceService/GetWorkspace", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.WorkspaceService/RestoreWorkspace",
     {{{kOperators, Bit(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.WorkspaceService/UnlockWorkspace",
     {{{kOperators, Bit(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.WorkspaceService/SaveWorkspace",
     {{{Bit(Role::kNode), Bit(Kind::kOwn)}}},
     Bit(Role::kRelay)},

    // Contents of files. A node reads those of its deployments; the handler checks it.
    {"/muster.v1.ContentService/FindContents", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.ContentService/UploadContent", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.ContentService/ReadContent",
     {{{Bit(Role::kNode), Bit(Kind::kOwn)}}},
     Bit(Role::kRelay)},

    // Shared files: a node accesses its own files, a relay those in transit. The
    // handlers check the signature of the source and the topology.
    {"/muster.v1.ShareService/OpenShare",
     {{{Set({Role::kNode, Role::kRelay}), Bit(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.ShareService/UploadShare",
     {{{Set({Role::kNode, Role::kRelay}), Bit(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.ShareService/GetShare",
     {{{Set({Role::kNode, Role::kRelay}), Bit(Kind::kOwn)}, {kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.ShareService/ReadShare",
     {{{Set({Role::kNode, Role::kRelay}), Bit(Kind::kOwn)}, {kOperators, Bit(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.ShareService/ListShares",
     {{{Bit(Role::kNode), Bit(Kind::kOwn)}, {kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.ShareService/RemoveShare",
     {{{Set({Role::kNode, Role::kRelay}), Bit(Kind::kOwn)}, {kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.ShareService/ReportShare", {{{Bit(Role::kRelay), Bit(Kind::kOwn)}}}, kDirectOnly},
    {"/muster.v1.ShareService/AnswerShareQuery",
     {{{Bit(Role::kRelay), Bit(Kind::kOwn)}}},
     kDirectOnly},
    {"/muster.v1.AuditService/ListAuditRecords", {{{kOperators, Bit(Kind::kFleet)}}}},
    {"/muster.v1.AuditService/RecordShareRemoval",
     {{{Bit(Role::kRelay), Bit(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.AuditService/RecordJob", {{{Bit(Role::kRelay), Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/muster.v1.AuditService/RecordServiceChange",
     {{{Bit(Role::kJobs), Bit(Kind::kFleet)}}},
     kDirectOnly},

    {"/muster.v1.VerificationService/VerifyStore",
     {{{kOperators, Set({Kind::kFleet, Kind::kRun})}}}},

    // Calls between services. Among the relays, only the root relay may follow the changes of the
    // fleet;
    // the handler enforces it.
    {"/muster.v1.ChangeService/FollowChanges",
     {{{Set({Role::kStatus, Role::kGateway, Role::kRelay, Role::kJobs}), Bit(Kind::kFleet)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/SignListenerCertificate",
     {{{Bit(Role::kGateway), Bit(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/ReportListener",
     {{{Bit(Role::kGateway), Bit(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/ReleaseListener",
     {{{Bit(Role::kGateway), Bit(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/GetStatusListener",
     {{{Bit(Role::kGateway), Bit(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.ListenerService/ReportStatusListener",
     {{{Bit(Role::kGateway), Bit(Kind::kListener)}}},
     kDirectOnly},
    {"/muster.v1.VerdictService/FollowVerdicts",
     {{{Bit(Role::kAggregator), Bit(Kind::kFleet)}}},
     kDirectOnly},

    // Inspection: the API and the health for every verified peer, connections for operators.
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     {{{kEveryPeer, Bit(Kind::kFleet)}}}},
    {"/grpc.health.v1.Health/Check", {{{kEveryPeer, Bit(Kind::kFleet)}}}},
    {"/grpc.health.v1.Health/Watch", {{{kEveryPeer, Bit(Kind::kFleet)}}}},
    {"/grpc.channelz.v1.Channelz/GetTopChannels", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetServers", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetServer", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetServerSockets",
     {{{kOperators, Bit(Kind::kFleet)}}},
     kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetChannel", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetSubchannel", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
    {"/grpc.channelz.v1.Channelz/GetSocket", {{{kOperators, Bit(Kind::kFleet)}}}, kDirectOnly},
};

const Row* FindRow(std::string_view method) {
  static const auto* const rows = [] {
    auto* map = new std::unordered_map<std::string_view, const Row*>();
    for (const Row& row : kTable) map->emplace(row.method, &row);
    return map;
  }();
  const auto it = rows->find(method);
  return it == rows->end() ? nullptr : it->second;
}

uint32_t RolesOf(const Row& row) {
  uint32_t roles = kNobody;
  for (const Grant& grant : row.grants) roles |= grant.roles;
  return roles;
}

// Returns "spiffe://... (operator, forwarded by spiffe://...)".
std::string Describe(const Caller& caller) {
  const auto uri = [](const Identity& identity) {
    return ToUri(identity).value_or("an invalid identity");
  };
  std::string text =
      absl::StrCat(uri(caller.identity), " (", ToAbsl(RoleName(RoleOf(caller.identity))));
  if (caller.via) absl::StrAppend(&text, ", forwarded by ", uri(*caller.via));
  return text + ")";
}

std::string Describe(const Resource& resource) {
  switch (resource.kind) {
    case Kind::kFleet:
      return "the fleet";
    case Kind::kOwn:
      return "its own identity";
    case Kind::kRun:
      return absl::StrCat("run ", resource.run);
    case Kind::kListener:
      return absl::StrCat("the listener of run ", resource.run);
    case Kind::kPair:
      break;
  }
  return absl::StrCat("plugin ", resource.plugin, " on node ", resource.node, " of run ",
                      resource.run);
}

std::string RoleNames(uint32_t roles) {
  std::string names;
  for (const Role role : kAllRoles) {
    if ((roles & Bit(role)) == 0) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", ToAbsl(RoleName(role)));
  }
  return names;
}

// Returns true if the identity includes the resource. Operators and services are not restricted.
bool Covers(const Identity& identity, const Resource& resource) {
  const bool pair = resource.kind == Kind::kPair;
  if (const auto* r = std::get_if<RunNodeIdentity>(&identity.name)) {
    return r->run == resource.run &&
           (!pair || (r->plugin == resource.plugin && r->node == resource.node));
  }
  if (const auto* r = std::get_if<RunPluginIdentity>(&identity.name)) {
    return r->run == resource.run && (!pair || r->plugin == resource.plugin);
  }
  if (const auto* r = std::get_if<RunViewerIdentity>(&identity.name)) {
    return r->run == resource.run;
  }
  if (const auto* n = std::get_if<NodeIdentity>(&identity.name)) {
    return !pair || n->name == resource.node;
  }
  return true;
}

// Finds the row that lets this role call the method, or returns the error.
absl::Status FindAllowedRow(const Caller& caller, std::string_view method, const Row*& row) {
  row = FindRow(method);
  if (row == nullptr) {
    // Not PERMISSION_DENIED: clients of reflection try its newer version first, and fall back to
    // the older one only after this code.
    return errors::UnknownMethod(method.substr(0, 200));
  }
  if (caller.via && (row->forwarders & Bit(RoleOf(*caller.via))) == 0) {
    return errors::NotThroughAnother(Describe(caller), method);
  }
  if ((RolesOf(*row) & Bit(RoleOf(caller.identity))) == 0) {
    return errors::RoleNotAllowed(Describe(caller), method, RoleNames(RolesOf(*row)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRole(const Caller& caller, std::string_view method) {
  const Row* row = nullptr;
  return FindAllowedRow(caller, method, row);
}

absl::Status Authorize(const Caller& caller, std::string_view method, const Resource& resource) {
  const Row* row = nullptr;
  RETURN_IF_ERROR(FindAllowedRow(caller, method, row));
  const uint32_t role = Bit(RoleOf(caller.identity));
  for (const Grant& grant : row->grants) {
    if ((grant.roles & role) != 0 && (grant.kinds & Bit(resource.kind)) != 0 &&
        Covers(caller.identity, resource)) {
      return absl::OkStatus();
    }
  }
  return errors::NotYours(Describe(caller), method, Describe(resource));
}

std::vector<std::string_view> AuthorizedMethods() {
  std::vector<std::string_view> methods;
  for (const Row& row : kTable) methods.push_back(row.method);
  return methods;
}

}  // namespace muster
