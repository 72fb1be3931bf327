#include "services/common/joining/join_targets.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/errors/rpc.h"

namespace muster {
namespace {

const absl::Status kUnreachable = absl::UnavailableError("no connection");
const absl::Status kRelayRevoked = absl::PermissionDeniedError("REVOKED");
const absl::Status kNodeRevoked = absl::PermissionDeniedError("NODE_REVOKED");
const absl::Status kOverloaded = absl::ResourceExhaustedError("OVERLOADED");

// Returns the outcome for targets that answer with `answers`, in this order.
absl::Status Ask(const std::vector<absl::Status>& answers) {
  std::vector<std::string> targets;
  for (size_t i = 0; i < answers.size(); ++i) targets.push_back(std::to_string(i));
  return AskJoinTargets(targets,
                        [&](const std::string& target) -> absl::StatusOr<v1::NodeCertificate> {
                          const absl::Status& answer = answers[std::stoul(target)];
                          if (!answer.ok()) return answer;
                          return v1::NodeCertificate();
                        })
      .status();
}

TEST(JoinTargetsTest, NextTargetIsAskedAfterARefusal) {
  EXPECT_EQ(Ask({kRelayRevoked, absl::UnauthenticatedError(""), absl::InvalidArgumentError(""),
                 absl::OkStatus()}),
            absl::OkStatus());
}

TEST(JoinTargetsTest, LastRefusalIsReturnedIfEveryAnswerIsARefusal) {
  EXPECT_EQ(Ask({kRelayRevoked, kNodeRevoked}), kNodeRevoked);
  EXPECT_EQ(Ask({kNodeRevoked, kUnreachable}), kNodeRevoked);
  EXPECT_EQ(Ask({kUnreachable, kNodeRevoked}), kNodeRevoked);
}

TEST(JoinTargetsTest, OtherFailureOfATargetPrecedesARefusal) {
  EXPECT_EQ(Ask({kOverloaded, kRelayRevoked}), kOverloaded);
  EXPECT_EQ(Ask({kRelayRevoked, kOverloaded}), kOverloaded);
  EXPECT_EQ(Ask({kOverloaded, kUnreachable}), kOverloaded);
}

TEST(JoinTargetsTest, UnreachableTargetsFailWithUnavailable) {
  EXPECT_EQ(Ask({absl::DeadlineExceededError(""), kUnreachable}), kUnreachable);
}

TEST(JoinTargetsTest, TunnelIsAskedOnlyAfterAProxyPreventedAConnection) {
  std::vector<std::string> asked;
  absl::Status failure = errors::Unreachable("cannot connect to a:1: Connection refused");
  const auto ask = [&](const std::string& target) -> absl::StatusOr<v1::NodeCertificate> {
    asked.push_back(target);
    return failure;
  };
  EXPECT_FALSE(AskJoinTargets({"a:1", "wss://g:1"}, ask).ok());
  EXPECT_THAT(asked, ::testing::ElementsAre("a:1"));
  failure = errors::Http2Refused("a:1");
  EXPECT_FALSE(AskJoinTargets({"a:1", "wss://g:1"}, ask).ok());
  EXPECT_THAT(asked, ::testing::ElementsAre("a:1", "a:1", "wss://g:1"));
  asked.clear();
  failure = absl::PermissionDeniedError("revoked");
  EXPECT_FALSE(AskJoinTargets({"a:1", "wss://g:1"}, ask).ok());
  EXPECT_THAT(asked, ::testing::ElementsAre("a:1"));
  EXPECT_FALSE(AskJoinTargets({"wss://g:1"}, ask).ok());
  EXPECT_THAT(asked, ::testing::ElementsAre("a:1", "wss://g:1"));
}

}  // namespace
}  // namespace muster
