// Requirements on every RPC and every listener of the aggregator.
#include <google/protobuf/descriptor.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/archives.pb.h"
#include "muster/v1/audit.pb.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/enrollment.pb.h"
#include "muster/v1/identities.pb.h"
#include "muster/v1/join.pb.h"
#include "muster/v1/listeners.pb.h"
#include "muster/v1/results.pb.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/verification.pb.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/testing/rpc_walk.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::CallEmpty;
using testing::ExpectBadTextIsAnswered;
using testing::MethodsOf;
using testing::PathOf;
using testing::TestFleet;
using testing::TestIdentity;

// Returns every method of every service that the aggregator's binary describes by reflection.
std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  const google::protobuf::FileDescriptor* const files[] = {
      v1::Run::descriptor()->file(),
      v1::SubmitResultRequest::descriptor()->file(),
      v1::Archive::descriptor()->file(),
      v1::FollowChangesRequest::descriptor()->file(),
      v1::Operator::descriptor()->file(),
      v1::ReportListenerRequest::descriptor()->file(),
      v1::JoinToken::descriptor()->file(),
      v1::JoinRequest::descriptor()->file(),
      v1::RecordShareRemovalRequest::descriptor()->file(),
      v1::VerifyStoreRequest::descriptor()->file(),
  };
  return MethodsOf(files);
}

class RpcTest : public ::testing::Test {
 protected:
  TestFleet fleet_;
};

TEST_F(RpcTest, MethodsHaveARowAndRefuseOtherRoles) {
  std::set<std::string> rows;
  for (const std::string_view row : AuthorizedMethods()) rows.emplace(row);
  // A listener's identity is a server; it may call no method.
  const TestIdentity nobody = fleet_.Issue(ServiceIdentity{ServiceRole::kAggregator, "other"});
  const auto channel = fleet_.Connect(nobody);
  for (const auto* method : Methods()) {
    const std::string path = PathOf(*method);
    SCOPED_TRACE(path);
    EXPECT_TRUE(rows.contains(path));
    if (method->name() == "RenewCertificate")
      continue;  // every service may renew its own certificate
    const grpc::Status status = CallEmpty(channel, path);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  }
}

TEST_F(RpcTest, HandlersAuthoriseEveryCall) {
  const auto as_operator = fleet_.Connect(fleet_.admin());
  const auto as_gateway =
      fleet_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "test"}));
  for (const auto* method : Methods()) {
    SCOPED_TRACE(PathOf(*method));
    for (const auto& channel : {as_operator, as_gateway}) {
      const grpc::Status status = CallEmpty(channel, PathOf(*method));
      EXPECT_EQ(status.error_message().find("did not authorise"), std::string::npos)
          << status.error_message();
    }
  }
}

TEST_F(RpcTest, TextThatIsNotUtf8IsAnsweredAndTheFeedContinues) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  const auto methods = Methods();
  ExpectBadTextIsAnswered(fleet_.Connect(fleet_.admin()), methods);
  ExpectBadTextIsAnswered(
      fleet_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "test"})), methods);
  ExpectBadTextIsAnswered(fleet_.Connect(fleet_.Credential(run, "hostfacts", "n1")), methods);
  const auto status = fleet_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kStatus, "test"}));
  EXPECT_TRUE(CallEmpty(status, "/muster.v1.ChangeService/FollowChanges").ok());
  fleet_.CreateRun({"hostfacts"}, {"n1"});
}

TEST_F(RpcTest, UnknownMethodIsRefused) {
  const grpc::Status status =
      CallEmpty(fleet_.Connect(fleet_.admin()), "/muster.v1.RunService/Explode");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(RpcTest, OnlyTheGatewayForwardsIdentities) {
  grpc::GenericStub stub(fleet_.Connect(fleet_.admin()));
  grpc::ClientContext context;
  context.AddMetadata("muster-forwarded-identity",
                      absl::StrCat("spiffe://", fleet_.name(), "/user/eve"));
  grpc::CompletionQueue queue;
  const grpc::Slice none;
  const grpc::ByteBuffer request(&none, 1);
  const auto call =
      stub.PrepareUnaryCall(&context, "/muster.v1.RunService/ListRuns", request, &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(status.error_message().find("IDENTITY_NOT_FORWARDABLE"), std::string::npos);
}

}  // namespace
}  // namespace muster
