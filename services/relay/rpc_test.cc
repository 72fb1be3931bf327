// The rules for every RPC and every listener of a relay.
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/attachment.pb.h"
#include "muster/v1/contents.pb.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/identities.pb.h"
#include "muster/v1/jobs.pb.h"
#include "muster/v1/join.pb.h"
#include "muster/v1/results.pb.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/secrets.pb.h"
#include "muster/v1/shares.pb.h"
#include "muster/v1/status.pb.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/testing/rpc_walk.h"
#include "services/relay/testing/relay_fixture.h"

namespace muster {
namespace {

using testing::CallEmpty;
using testing::ExpectBadTextIsAnswered;
using ::testing::HasSubstr;
using testing::kRelayTestFleet;
using testing::MethodsOf;
using ::testing::Not;
using testing::PathOf;
using testing::RelayTestFleet;
using ::testing::StartsWith;
using testing::TestRelay;

constexpr char kRun[] = "0123456789abcdef";

// Every method of every service that a relay serves, and of one that it does not.
std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  const google::protobuf::FileDescriptor* const files[] = {
      v1::AttachRequest::descriptor()->file(),
      v1::Command::descriptor()->file(),
      v1::SharedFile::descriptor()->file(),
      v1::ReadContentRequest::descriptor()->file(),
      v1::Secret::descriptor()->file(),
      v1::JoinRequest::descriptor()->file(),
      v1::SubmitResultRequest::descriptor()->file(),
      v1::Run::descriptor()->file(),
      v1::RunStatus::descriptor()->file(),
      v1::StreamHeartbeatsRequest::descriptor()->file(),
      v1::Operator::descriptor()->file()};
  return MethodsOf(files);
}

class RelayRpcTest : public ::testing::Test {
 protected:
  RelayRpcTest() {
    relay_.Stop();
    relay_.config.join_listen = {"127.0.0.1", 0};
    relay_.Start();
  }

  // Returns one identity of each role that a certificate can have.
  static std::vector<Identity::Name> AllRoles() {
    return {UserIdentity{"ann"},
            ServiceIdentity{ServiceRole::kAggregator, "a"},
            ServiceIdentity{ServiceRole::kStatus, "s"},
            ServiceIdentity{ServiceRole::kGateway, "g"},
            ServiceIdentity{ServiceRole::kRelay, "r1"},
            ServiceIdentity{ServiceRole::kJobs, "j"},
            NodeIdentity{"n1"},
            RunNodeIdentity{kRun, "p", "n1"},
            RunPluginIdentity{kRun, "p"},
            RunViewerIdentity{kRun}};
  }

  RelayTestFleet::Credential Issue(const Identity::Name& name) const {
    return std::visit(
        [this](const auto& one) {
          if constexpr (std::is_constructible_v<FleetName, decltype(one)>) {
            return fleet_.Issue(one);
          } else {
            return fleet_.IssueForRun(one);
          }
        },
        name);
  }

  std::shared_ptr<grpc::Channel> Connect(const Identity::Name& name) const {
    const RelayTestFleet::Credential credential = Issue(name);
    const ChannelIdentity identity = {kRelayTestFleet, fleet_.root_pem(), credential.chain_pem,
                                      credential.key_pem};
    return MakeChannel(relay_.target(), MakeChannelCredentials(identity, {ServiceRole::kRelay}),
                       true);
  }

  const RelayTestFleet fleet_;
  TestRelay relay_{fleet_, "root", nullptr};
};

TEST_F(RelayRpcTest, RolesMayCallWhatTheTablePermits) {
  std::set<std::string> rows;
  for (const std::string_view row : AuthorizedMethods()) rows.emplace(row);
  ASSERT_GE(Methods().size(), 45u);
  for (const Identity::Name& name : AllRoles()) {
    const Caller caller = {{kRelayTestFleet, name}, std::nullopt, "", ""};
    SCOPED_TRACE(std::string(RoleName(RoleOf(caller.identity))));
    const auto channel = Connect(name);
    for (const auto* method : Methods()) {
      const std::string path = PathOf(*method);
      SCOPED_TRACE(path);
      EXPECT_TRUE(rows.contains(path));
      const grpc::Status status = CallEmpty(channel, path);
      if (!CheckRole(caller, path).ok()) {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
        EXPECT_THAT(status.error_message(), StartsWith("ROLE_NOT_ALLOWED"));
        continue;
      }
      EXPECT_THAT(status.error_message(), Not(StartsWith("ROLE_NOT_ALLOWED")));
      EXPECT_THAT(status.error_message(), Not(HasSubstr("did not authorise")));
      EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    }
  }
}

TEST_F(RelayRpcTest, TextThatIsNotUtf8IsAnswered) {
  for (const Identity::Name& name : AllRoles()) {
    SCOPED_TRACE(std::string(RoleName(RoleOf({kRelayTestFleet, name}))));
    ExpectBadTextIsAnswered(Connect(name), Methods());
  }
  EXPECT_TRUE(CallEmpty(Connect(UserIdentity{"ann"}), "/muster.v1.JobService/ListJobs").ok());
}

TEST_F(RelayRpcTest, UnknownMethodIsRejected) {
  for (const char* path : {"/muster.v1.JobService/Explode", "/muster.v1.RelayService/Reload"}) {
    EXPECT_EQ(CallEmpty(Connect(UserIdentity{"ann"}), path).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(RelayRpcTest, OpenListenerPermitsJoinOnly) {
  const auto channel = MakeChannel(
      relay_.join_target(),
      MakeOpenChannelCredentials(kRelayTestFleet, fleet_.root_pem(), {ServiceRole::kRelay}), true);
  int joins = 0;
  for (const auto* method : Methods()) {
    const std::string path = PathOf(*method);
    SCOPED_TRACE(path);
    const grpc::Status status = CallEmpty(channel, path);
    if (path == "/muster.v1.JoinService/Join" || path == "/muster.v1.JoinService/Rejoin") {
      ++joins;  // forwarded to an aggregator that does not run
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    } else {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
    }
  }
  EXPECT_EQ(joins, 2);
}

TEST_F(RelayRpcTest, CallWithoutCertificateIsRejected) {
  const auto channel = MakeChannel(
      relay_.target(),
      MakeOpenChannelCredentials(kRelayTestFleet, fleet_.root_pem(), {ServiceRole::kRelay}), true);
  EXPECT_EQ(CallEmpty(channel, "/muster.v1.JoinService/Join").error_code(),
            grpc::StatusCode::UNAVAILABLE);
  // A certificate of another fleet is rejected too.
  const RelayTestFleet other;
  const RelayTestFleet::Credential stranger = other.Issue(UserIdentity{"ann"});
  const ChannelIdentity identity = {kRelayTestFleet, fleet_.root_pem(), stranger.chain_pem,
                                    stranger.key_pem};
  EXPECT_EQ(CallEmpty(MakeChannel(relay_.target(),
                                  MakeChannelCredentials(identity, {ServiceRole::kRelay}), true),
                      "/muster.v1.JobService/ListJobs")
                .error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace muster
