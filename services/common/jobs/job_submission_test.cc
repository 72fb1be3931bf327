#include "services/common/jobs/job_submission.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

v1::Command CommandFor(const std::vector<std::string>& nodes) {
  v1::Command command;
  const TargetSet targets(nodes);
  command.mutable_targets()->set_nodes_sha256(targets.root());
  command.mutable_targets()->set_count(static_cast<int64_t>(targets.size()));
  return command;
}

v1::SubmitJobRequest MessageWith(const std::vector<std::string>& nodes) {
  v1::SubmitJobRequest message;
  for (const std::string& node : nodes) message.add_nodes(node);
  return message;
}

std::string Refusal(const v1::SubmitJobRequest& message, const v1::Command& command) {
  return ReasonOf(CheckSubmission(message, command).status());
}

TEST(JobSubmissionTest, SignedNodesAreReturned) {
  const auto targets = CheckSubmission(MessageWith({"n2", "n1"}), CommandFor({"n1", "n2"}));
  ASSERT_TRUE(targets.ok()) << targets.status();
  EXPECT_EQ((*targets)->names(), std::vector<std::string>({"n1", "n2"}));
}

TEST(JobSubmissionTest, CommandForAllHasNoNodes) {
  v1::Command command;
  command.mutable_targets()->set_all(true);
  const auto targets = CheckSubmission({}, command);
  ASSERT_TRUE(targets.ok()) << targets.status();
  EXPECT_EQ(*targets, nullptr);
  EXPECT_EQ(Refusal(MessageWith({"n1"}), command), "INVALID_COMMAND");
}

TEST(JobSubmissionTest, OtherNodesThanTheSignedOnesAreRefused) {
  const v1::Command command = CommandFor({"n1", "n2"});
  EXPECT_EQ(Refusal(MessageWith({}), command), "INVALID_COMMAND");
  EXPECT_EQ(Refusal(MessageWith({"n1"}), command), "INVALID_COMMAND");
  EXPECT_EQ(Refusal(MessageWith({"n1", "n2", "n3"}), command), "INVALID_COMMAND");
  EXPECT_EQ(Refusal(MessageWith({"n1", "a b"}), command), "INVALID_NAME");
}

TEST(JobSubmissionTest, NumberOfNodesIsNamedWithItsLimit) {
  v1::SubmitJobRequest message;
  for (int i = 0; i < 50'001; ++i) message.add_nodes("n");
  const absl::Status refused = CheckSubmission(message, CommandFor({"n"})).status();
  EXPECT_EQ(ReasonOf(refused), "INVALID_COMMAND");
  EXPECT_EQ(refused.message(), "a command for 50001 nodes: the limit is 50000");
}

TEST(JobSubmissionTest, ParallelAndWaitAreBounded) {
  const v1::Command command = CommandFor({"n1"});
  v1::SubmitJobRequest message = MessageWith({"n1"});
  message.mutable_wait();  // 0 s
  EXPECT_EQ(Refusal(message, command), "");
  message.mutable_wait()->set_seconds(-1);
  EXPECT_EQ(Refusal(message, command), "INVALID_COMMAND");
  message.mutable_wait()->set_seconds(INT64_MAX);
  EXPECT_EQ(Refusal(message, command), "INVALID_COMMAND");
  message.mutable_wait()->set_seconds(1);
  message.mutable_wait()->set_nanos(-1);
  EXPECT_EQ(Refusal(message, command), "INVALID_COMMAND");
  message.clear_wait();
  message.set_parallel(-1);
  EXPECT_EQ(Refusal(message, command), "INVALID_COMMAND");
}

}  // namespace
}  // namespace muster
