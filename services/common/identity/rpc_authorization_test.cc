#include "services/common/identity/rpc_authorization.h"

#include <map>
#include <set>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-01.muster";
constexpr char kRunA[] = "aaaaaaaaaaaaaaaa";
constexpr char kRunB[] = "bbbbbbbbbbbbbbbb";

Caller Direct(Identity::Name name) { return {{kFleet, std::move(name)}, std::nullopt, "", ""}; }
Caller Forwarded(Identity::Name name) {
  Caller caller = Direct(std::move(name));
  caller.via = Identity{kFleet, ServiceIdentity{ServiceRole::kGateway, "g"}};
  return caller;
}

Caller Operator() { return Direct(UserIdentity{"ann"}); }
Caller Aggregator() { return Direct(ServiceIdentity{ServiceRole::kAggregator, "a"}); }
Caller Status() { return Direct(ServiceIdentity{ServiceRole::kStatus, "s"}); }
Caller Gateway() { return Direct(ServiceIdentity{ServiceRole::kGateway, "g"}); }
Caller Relay() { return Direct(ServiceIdentity{ServiceRole::kRelay, "r"}); }
Caller Jobs() { return Direct(ServiceIdentity{ServiceRole::kJobs, "j"}); }
Caller Node() { return Direct(NodeIdentity{"n1"}); }
Caller RunNode() { return Direct(RunNodeIdentity{kRunA, "p", "n1"}); }
Caller RunPlugin() { return Direct(RunPluginIdentity{kRunA, "p"}); }
Caller Listener() { return Direct(RunListenerIdentity{kRunA}); }
Caller Viewer() { return Direct(RunViewerIdentity{kRunA}); }

// One letter for each role.
const std::map<char, Caller> kCallers = {{'o', Operator()}, {'a', Aggregator()}, {'s', Status()},
                                         {'g', Gateway()},  {'r', Relay()},      {'j', Jobs()},
                                         {'n', Node()},     {'1', RunNode()},    {'*', RunPlugin()},
                                         {'l', Listener()}, {'v', Viewer()}};

// The whole table in a second, compact form for reviewers.
const std::map<std::string, std::string> kExpected = {
    {"/muster.v1.RunService/CreateRun", "o"},
    {"/muster.v1.RunService/GetRun", "ogn1*"},
    {"/muster.v1.RunService/ListRuns", "og"},
    {"/muster.v1.RunService/WatchRun", "ogn1*"},
    {"/muster.v1.RunService/CancelRun", "o"},
    {"/muster.v1.RunService/DeleteRun", "o"},
    {"/muster.v1.RunService/PinRun", "o"},
    {"/muster.v1.RunService/UnpinRun", "o"},
    {"/muster.v1.RunService/PreviewRetention", "o"},
    {"/muster.v1.RunService/IssueCredential", "o"},
    {"/muster.v1.RunService/IssueViewerCredential", "o"},
    {"/muster.v1.RunService/SetStatusListener", "o"},
    {"/muster.v1.ResultService/OpenUpload", "rn1*"},
    {"/muster.v1.ResultService/Upload", "rn1*"},
    {"/muster.v1.ResultService/SubmitResult", "rn1*"},
    {"/muster.v1.ResultService/GetResult", "on1*"},
    {"/muster.v1.ResultService/DeclineRedelivery", "n1"},
    {"/muster.v1.ResultService/ListResults", "o"},
    {"/muster.v1.ResultService/ReadResult", "on1"},
    {"/muster.v1.VerificationService/VerifyStore", "o"},
    {"/muster.v1.ArchiveService/GetArchive", "o"},
    {"/muster.v1.ArchiveService/ReadArchive", "o"},
    {"/muster.v1.StatusService/GetStatus", "on1*v"},
    {"/muster.v1.StatusService/WatchStatus", "ov"},
    {"/muster.v1.StatusService/ListNodes", "o"},
    {"/muster.v1.StatusService/GetNode", "o"},
    {"/muster.v1.HeartbeatService/StreamHeartbeats", "n1*"},
    {"/muster.v1.HeartbeatService/RelayHeartbeats", "r"},
    {"/muster.v1.HeartbeatService/SendHeartbeat", "n1*"},
    {"/muster.v1.StatusService/ReportProgress", "n1*"},
    {"/muster.v1.IdentityService/RenewCertificate", "oasgrjn"},
    {"/muster.v1.IdentityService/AddOperator", "o"},
    {"/muster.v1.IdentityService/RevokeOperator", "o"},
    {"/muster.v1.IdentityService/ListOperators", "o"},
    {"/muster.v1.IdentityService/IssueCommandCertificate", "og"},
    {"/muster.v1.IdentityService/GetCommandRevocations", "orj"},
    {"/muster.v1.JoinService/Join", "r"},
    {"/muster.v1.JoinService/Rejoin", "r"},
    {"/muster.v1.AttachService/Attach", "rn"},
    {"/muster.v1.AttachService/ListAttached", "og"},
    {"/muster.v1.JobService/SubmitJob", "ogj"},
    {"/muster.v1.JobService/GetJob", "ogj"},
    {"/muster.v1.JobService/ListJobs", "o"},
    {"/muster.v1.JobService/WatchJob", "ogj"},
    {"/muster.v1.JobService/CancelJob", "ogj"},
    {"/muster.v1.TemplateService/CreateTemplateType", "o"},
    {"/muster.v1.TemplateService/GetTemplateType", "o"},
    {"/muster.v1.TemplateService/ListTemplateTypes", "o"},
    {"/muster.v1.TemplateService/CreateTemplate", "o"},
    {"/muster.v1.TemplateService/GetTemplate", "o"},
    {"/muster.v1.TemplateService/ListTemplates", "o"},
    {"/muster.v1.DeploymentService/PlanDeployment", "o"},
    {"/muster.v1.DeploymentService/CreateDeployment", "o"},
    {"/muster.v1.DeploymentService/GetDeployment", "o"},
    {"/muster.v1.DeploymentService/ListDeployments", "o"},
    {"/muster.v1.DeploymentService/CancelDeployment", "o"},
    {"/muster.v1.ConformanceService/ListConformance", "o"},
    {"/muster.v1.ConformanceService/GetConformance", "o"},
    {"/muster.v1.ConformanceService/GetBaseline", "o"},
    {"/muster.v1.ConformanceService/SetBaseline", "o"},
    {"/muster.v1.ConformanceService/RemoveBaseline", "o"},
    {"/muster.v1.SecretService/PutSecret", "o"},
    {"/muster.v1.SecretService/ListSecrets", "o"},
    {"/muster.v1.SecretService/DeleteSecret", "o"},
    {"/muster.v1.SecretService/FetchSecrets", "n"},
    {"/muster.v1.WorkspaceService/ListWorkspaces", "o"},
    {"/muster.v1.WorkspaceService/GetWorkspace", "o"},
    {"/muster.v1.WorkspaceService/RestoreWorkspace", "o"},
    {"/muster.v1.WorkspaceService/UnlockWorkspace", "o"},
    {"/muster.v1.WorkspaceService/DeleteWorkspace", "o"},
    {"/muster.v1.WorkspaceService/SaveWorkspace", "n"},
    {"/muster.v1.ContentService/FindContents", "o"},
    {"/muster.v1.ContentService/UploadContent", "o"},
    {"/muster.v1.ContentService/ReadContent", "n"},
    {"/muster.v1.ShareService/OpenShare", "rn"},
    {"/muster.v1.ShareService/UploadShare", "rn"},
    {"/muster.v1.ShareService/GetShare", "orn"},
    {"/muster.v1.ShareService/ReadShare", "orn"},
    {"/muster.v1.ShareService/ListShares", "on"},
    {"/muster.v1.ShareService/RemoveShare", "orn"},
    {"/muster.v1.ShareService/ReportShare", "r"},
    {"/muster.v1.ShareService/AnswerShareQuery", "r"},
    {"/muster.v1.AuditService/ListAuditRecords", "o"},
    {"/muster.v1.AuditService/RecordShareRemoval", "r"},
    {"/muster.v1.AuditService/RecordJob", "r"},
    {"/muster.v1.AuditService/RecordServiceChange", "j"},
    {"/muster.v1.EnrollmentService/CreateJoinToken", "o"},
    {"/muster.v1.EnrollmentService/ListJoinTokens", "o"},
    {"/muster.v1.EnrollmentService/RevokeJoinToken", "o"},
    {"/muster.v1.EnrollmentService/ListEnrolledNodes", "o"},
    {"/muster.v1.EnrollmentService/GetEnrolledNode", "or"},
    {"/muster.v1.EnrollmentService/LabelNode", "o"},
    {"/muster.v1.EnrollmentService/RevokeNode", "o"},
    {"/muster.v1.EnrollmentService/RemoveNode", "o"},
    {"/muster.v1.ChangeService/FollowChanges", "sgrj"},
    {"/muster.v1.ListenerService/SignListenerCertificate", "g"},
    {"/muster.v1.ListenerService/ReportListener", "g"},
    {"/muster.v1.ListenerService/ReleaseListener", "g"},
    {"/muster.v1.ListenerService/GetStatusListener", "g"},
    {"/muster.v1.ListenerService/ReportStatusListener", "g"},
    {"/muster.v1.VerdictService/FollowVerdicts", "a"},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "oasgrjn1*v"},
    {"/grpc.health.v1.Health/Check", "oasgrjn1*v"},
    {"/grpc.health.v1.Health/Watch", "oasgrjn1*v"},
    {"/grpc.channelz.v1.Channelz/GetTopChannels", "o"},
    {"/grpc.channelz.v1.Channelz/GetServers", "o"},
    {"/grpc.channelz.v1.Channelz/GetServer", "o"},
    {"/grpc.channelz.v1.Channelz/GetServerSockets", "o"},
    {"/grpc.channelz.v1.Channelz/GetChannel", "o"},
    {"/grpc.channelz.v1.Channelz/GetSubchannel", "o"},
    {"/grpc.channelz.v1.Channelz/GetSocket", "o"},
};

TEST(RpcAuthorizationTest, RolesMayCallExactlyTheExpectedMethods) {
  std::set<std::string> methods;
  for (const std::string_view method : AuthorizedMethods()) {
    EXPECT_TRUE(methods.emplace(method).second) << "two rows: " << method;
    EXPECT_TRUE(kExpected.contains(std::string(method))) << method;
  }
  for (const auto& [method, allowed] : kExpected) {
    EXPECT_TRUE(methods.contains(method)) << method;
    for (const auto& [letter, caller] : kCallers) {
      const absl::Status status = CheckRole(caller, method);
      const bool expected = allowed.find(letter) != std::string::npos;
      EXPECT_EQ(status.ok(), expected) << method << " " << letter << " " << status;
      EXPECT_EQ(ReasonOf(status), expected ? "" : "ROLE_NOT_ALLOWED");
    }
  }
}

TEST(RpcAuthorizationTest, MethodWithoutRowIsRefused) {
  for (const char* method : {"", "/", "/muster.v1.RunService/Getrun", "muster.v1.RunService/GetRun",
                             "/muster.v1.RunService/GetRun/", "/muster.v1.RunService/DropTables"}) {
    for (const auto& [letter, caller] : kCallers) {
      EXPECT_EQ(ReasonOf(CheckRole(caller, method)), "UNKNOWN_METHOD") << method;
      EXPECT_FALSE(Authorize(caller, method, Resource::Fleet()).ok()) << method;
    }
  }
}

TEST(RpcAuthorizationTest, RunCredentialAccessesOnlyItsPair) {
  const Resource own = Resource::Pair(kRunA, "p", "n1");
  for (const char* method :
       {"/muster.v1.ResultService/OpenUpload", "/muster.v1.ResultService/Upload",
        "/muster.v1.ResultService/SubmitResult", "/muster.v1.ResultService/GetResult",
        "/muster.v1.StatusService/ReportProgress", "/muster.v1.StatusService/GetStatus"}) {
    SCOPED_TRACE(method);
    EXPECT_TRUE(Authorize(RunNode(), method, own).ok());
    EXPECT_TRUE(Authorize(Forwarded(RunNodeIdentity{kRunA, "p", "n1"}), method, own).ok());
    EXPECT_TRUE(Authorize(Node(), method, own).ok());
    EXPECT_TRUE(Authorize(Node(), method, Resource::Pair(kRunB, "q", "n1")).ok());
    EXPECT_TRUE(Authorize(RunPlugin(), method, own).ok());
    EXPECT_TRUE(Authorize(RunPlugin(), method, Resource::Pair(kRunA, "p", "n2")).ok());
    const auto reason = [&](const Caller& caller, const Resource& resource) {
      return ReasonOf(Authorize(caller, method, resource));
    };
    EXPECT_EQ(reason(RunNode(), Resource::Pair(kRunB, "p", "n1")), "NOT_YOURS");
    EXPECT_EQ(reason(RunNode(), Resource::Pair(kRunA, "q", "n1")), "NOT_YOURS");
    EXPECT_EQ(reason(RunNode(), Resource::Pair(kRunA, "p", "n2")), "NOT_YOURS");
    EXPECT_EQ(reason(RunPlugin(), Resource::Pair(kRunB, "p", "n1")), "NOT_YOURS");
    EXPECT_EQ(reason(RunPlugin(), Resource::Pair(kRunA, "q", "n1")), "NOT_YOURS");
    EXPECT_EQ(reason(Node(), Resource::Pair(kRunA, "p", "n2")), "NOT_YOURS");
    EXPECT_EQ(reason(Node(), Resource::Pair(kRunA, "p", "global")), "NOT_YOURS");
    // Another kind of resource does not bypass the check.
    EXPECT_EQ(reason(RunNode(), Resource::Run(kRunA)), "NOT_YOURS");
    EXPECT_EQ(reason(RunNode(), Resource::Fleet()), "NOT_YOURS");
    EXPECT_EQ(reason(RunNode(), Resource::Own()), "NOT_YOURS");
  }
}

TEST(RpcAuthorizationTest, RunCredentialReadsOnlyItsRun) {
  for (const char* method : {"/muster.v1.RunService/GetRun", "/muster.v1.RunService/WatchRun"}) {
    for (const Caller& caller : {RunNode(), RunPlugin()}) {
      EXPECT_TRUE(Authorize(caller, method, Resource::Run(kRunA)).ok());
      EXPECT_EQ(ReasonOf(Authorize(caller, method, Resource::Run(kRunB))), "NOT_YOURS");
      EXPECT_EQ(ReasonOf(Authorize(caller, method, Resource::Run(""))), "NOT_YOURS");
    }
    EXPECT_TRUE(Authorize(Operator(), method, Resource::Run(kRunB)).ok());
    EXPECT_TRUE(Authorize(Gateway(), method, Resource::Run(kRunB)).ok());
  }
}

TEST(RpcAuthorizationTest, ViewerReadsOnlyTheStatusOfItsRun) {
  for (const char* method :
       {"/muster.v1.StatusService/GetStatus", "/muster.v1.StatusService/WatchStatus"}) {
    for (const Caller& caller : {Viewer(), Forwarded(RunViewerIdentity{kRunA})}) {
      EXPECT_TRUE(Authorize(caller, method, Resource::Run(kRunA)).ok());
      EXPECT_EQ(ReasonOf(Authorize(caller, method, Resource::Run(kRunB))), "NOT_YOURS");
      EXPECT_EQ(ReasonOf(Authorize(caller, method, Resource::Fleet())), "NOT_YOURS");
    }
  }
}

TEST(RpcAuthorizationTest, OperatorMayNotDeliver) {
  EXPECT_EQ(ReasonOf(Authorize(Operator(), "/muster.v1.ResultService/SubmitResult",
                               Resource::Pair(kRunA, "p", "n1"))),
            "ROLE_NOT_ALLOWED");
}

TEST(RpcAuthorizationTest, StatusOfTheNewestRunNeedsNoName) {
  const char* method = "/muster.v1.StatusService/GetStatus";
  EXPECT_TRUE(Authorize(Operator(), method, Resource::Fleet()).ok());
  EXPECT_TRUE(Authorize(Operator(), method, Resource::Run(kRunA)).ok());
}

TEST(RpcAuthorizationTest, CallerBehindTheGatewayHasOnlyItsOwnRights) {
  // An operator behind the gateway is an operator.
  EXPECT_TRUE(Authorize(Forwarded(UserIdentity{"ann"}), "/muster.v1.RunService/CancelRun",
                        Resource::Run(kRunA))
                  .ok());
  // Behind the gateway no identity may make the calls between services, not even a service.
  for (const char* method : {"/muster.v1.ChangeService/FollowChanges",
                             "/muster.v1.ListenerService/SignListenerCertificate",
                             "/muster.v1.ListenerService/GetStatusListener"}) {
    EXPECT_EQ(ReasonOf(CheckRole(Forwarded(UserIdentity{"ann"}), method)), "ROLE_NOT_ALLOWED");
    EXPECT_EQ(ReasonOf(CheckRole(Forwarded(ServiceIdentity{ServiceRole::kGateway, "g"}), method)),
              "ROLE_NOT_ALLOWED");
  }
  // A node declines a delivery to the aggregator itself, or through relays.
  EXPECT_EQ(ReasonOf(CheckRole(Forwarded(NodeIdentity{"n1"}),
                               "/muster.v1.ResultService/DeclineRedelivery")),
            "ROLE_NOT_ALLOWED");
  // No other role forwards.
  Caller caller = Operator();
  caller.via = Identity{kFleet, ServiceIdentity{ServiceRole::kStatus, "s"}};
  EXPECT_EQ(ReasonOf(CheckRole(caller, "/muster.v1.RunService/GetRun")), "ROLE_NOT_ALLOWED");
}

TEST(RpcAuthorizationTest, GatewayGivesNoNameToAKeyAndTakesNoneAway) {
  for (const char* method :
       {"/muster.v1.IdentityService/RenewCertificate", "/muster.v1.IdentityService/AddOperator",
        "/muster.v1.IdentityService/IssueCommandCertificate",
        "/muster.v1.IdentityService/RevokeOperator", "/muster.v1.EnrollmentService/CreateJoinToken",
        "/muster.v1.EnrollmentService/RemoveNode", "/muster.v1.RunService/IssueCredential",
        "/muster.v1.ConformanceService/SetBaseline",
        "/muster.v1.ConformanceService/RemoveBaseline"}) {
    EXPECT_TRUE(CheckRole(Operator(), method).ok());
    const absl::Status refused = CheckRole(Forwarded(UserIdentity{"ann"}), method);
    EXPECT_EQ(ReasonOf(refused), "ROLE_NOT_ALLOWED") << method;
    EXPECT_NE(refused.message().find("through a gateway"), absl::string_view::npos) << refused;
  }
}

TEST(RpcAuthorizationTest, ViewerCredentialIssuedThroughAGatewayOnlyReadsAStatus) {
  EXPECT_TRUE(
      CheckRole(Forwarded(UserIdentity{"ann"}), "/muster.v1.RunService/IssueViewerCredential")
          .ok());
  for (const std::string_view method : AuthorizedMethods()) {
    const bool status = method == "/muster.v1.StatusService/GetStatus" ||
                        method == "/muster.v1.StatusService/WatchStatus";
    if (!method.starts_with("/muster.v1.")) continue;
    EXPECT_EQ(CheckRole(Viewer(), method).ok(), status) << method;
  }
}

TEST(RpcAuthorizationTest, NodeBehindARelayOnlyDeliversAndReadsItsRunsAndSecrets) {
  const std::set<std::string> forwarded = {"/muster.v1.RunService/GetRun",
                                           "/muster.v1.RunService/WatchRun",
                                           "/muster.v1.ResultService/OpenUpload",
                                           "/muster.v1.ResultService/Upload",
                                           "/muster.v1.ResultService/SubmitResult",
                                           "/muster.v1.ResultService/GetResult",
                                           "/muster.v1.ResultService/DeclineRedelivery",
                                           "/muster.v1.StatusService/ReportProgress",
                                           "/muster.v1.ContentService/ReadContent",
                                           "/muster.v1.HeartbeatService/StreamHeartbeats",
                                           "/muster.v1.HeartbeatService/SendHeartbeat",
                                           "/muster.v1.SecretService/FetchSecrets",
                                           "/muster.v1.WorkspaceService/SaveWorkspace"};
  Caller caller = Node();
  caller.via = Identity{kFleet, ServiceIdentity{ServiceRole::kRelay, "r"}};
  for (const std::string_view method : AuthorizedMethods()) {
    EXPECT_EQ(CheckRole(caller, method).ok(), forwarded.contains(std::string(method))) << method;
  }
  const char* const deliver = "/muster.v1.ResultService/SubmitResult";
  EXPECT_TRUE(Authorize(caller, deliver, Resource::Pair(kRunA, "p", "n1")).ok());
  EXPECT_EQ(ReasonOf(Authorize(caller, deliver, Resource::Pair(kRunA, "p", "n2"))), "NOT_YOURS");
}

TEST(RpcAuthorizationTest, RefusalNamesCallerMethodAndNextStep) {
  const absl::Status status =
      CheckRole(Forwarded(RunPluginIdentity{kRunA, "p"}), "/muster.v1.RunService/CancelRun");
  EXPECT_EQ(status.message(),
            "spiffe://aaaaaaaaaaaaaaaa.fleet-01.muster/plugin/p (run credential of any node, "
            "forwarded by spiffe://fleet-01.muster/service/gateway/g) may not call "
            "/muster.v1.RunService/CancelRun");
  EXPECT_EQ(NextStepOf(status), "Use the certificate of one of: operator.");
  const absl::Status other =
      Authorize(Node(), "/muster.v1.ResultService/SubmitResult", Resource::Pair(kRunA, "p", "n2"));
  EXPECT_EQ(other.message(),
            "spiffe://fleet-01.muster/node/n1 (node) may not call "
            "/muster.v1.ResultService/SubmitResult for plugin p on node n2 of run "
            "aaaaaaaaaaaaaaaa");
  EXPECT_NE(NextStepOf(other), "");
}

}  // namespace
}  // namespace muster
