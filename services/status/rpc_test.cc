// Rules for every RPC of the status service.
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/status.pb.h"
#include "muster/v1/verdicts.pb.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/testing/rpc_walk.h"
#include "testing/fixtures/test_status.h"

namespace muster {
namespace {

using testing::CallEmpty;
using testing::ExpectBadTextIsAnswered;
using testing::MethodsOf;
using testing::PathOf;
using testing::TestFleet;
using testing::TestIdentity;
using testing::TestStatus;

// Every method of every service that the status service's binary describes by reflection.
std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  const google::protobuf::FileDescriptor* const files[] = {
      v1::RunStatus::descriptor()->file(), v1::StreamHeartbeatsRequest::descriptor()->file(),
      v1::Verdict::descriptor()->file()};
  return MethodsOf(files);
}

class StatusRpcTest : public ::testing::Test {
 protected:
  TestFleet fleet_;
  TestStatus status_{fleet_};
};

TEST_F(StatusRpcTest, EveryMethodIsServedAndRejectsCallersWithoutARole) {
  std::set<std::string> rows;
  for (const std::string_view row : AuthorizedMethods()) rows.emplace(row);
  const auto channel =
      status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kStatus, "other"}));
  ASSERT_GE(Methods().size(), 8u);
  for (const auto* method : Methods()) {
    const std::string path = PathOf(*method);
    SCOPED_TRACE(path);
    EXPECT_TRUE(rows.contains(path));
    const grpc::Status status = CallEmpty(channel, path);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  }
}

TEST_F(StatusRpcTest, EveryHandlerAuthorizesItsCaller) {
  fleet_.CreateRun({"hostfacts"}, {"n1"});
  const TestIdentity callers[] = {fleet_.admin(), fleet_.Issue(NodeIdentity{"n1"}),
                                  fleet_.Issue(ServiceIdentity{ServiceRole::kAggregator, "other"})};
  for (const auto* method : Methods()) {
    SCOPED_TRACE(PathOf(*method));
    for (const TestIdentity& caller : callers) {
      const grpc::Status status = CallEmpty(status_.Connect(caller), PathOf(*method));
      EXPECT_EQ(status.error_message().find("did not authorise"), std::string::npos)
          << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
      EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    }
  }
}

TEST_F(StatusRpcTest, TextThatIsNotUtf8IsAnswered) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  const TestIdentity callers[] = {fleet_.admin(), fleet_.Credential(run, "hostfacts", "n1"),
                                  fleet_.Issue(NodeIdentity{"n1"}),
                                  fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"})};
  for (const TestIdentity& caller : callers) {
    ExpectBadTextIsAnswered(status_.Connect(caller), Methods());
  }
  EXPECT_TRUE(status_.Get(run).ok());
}

TEST_F(StatusRpcTest, OnlyTheAggregatorReceivesVerdicts) {
  const auto path = "/muster.v1.VerdictService/FollowVerdicts";
  EXPECT_TRUE(
      CallEmpty(status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kAggregator, "other"})),
                path)
          .ok());
  EXPECT_EQ(CallEmpty(status_.Connect(fleet_.admin()), path).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace muster
