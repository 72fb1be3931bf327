// A node that returns to its preferred relay.
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "services/agent/testing/attached_node_fixture.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

TEST_F(AttachedNodeTest, NodeReturnsToItsPreferredRelayWithAllRecords) {
  relay_.Stop();
  other_.Start();
  other_.acknowledges = false;  // it has reported nothing upstream
  Begin();
  ASSERT_TRUE(other_.AwaitHellos(1));
  const v1::Command command =
      Send(other_, {"/bin/sh", "-c",
                    "echo on; while [ ! -e " + folder_ + "/go ]; do sleep 0.01; done; echo off"});
  ASSERT_TRUE(
      other_.AwaitJob(command.job(), [](const ReceivedJob& job) { return !job.out.empty(); }));
  relay_.Start();
  ASSERT_TRUE(
      relay_.AwaitJob(command.job(), [](const ReceivedJob& job) { return !job.out.empty(); }));
  std::ofstream(folder_ + "/go").put('\n');
  ASSERT_TRUE(relay_.AwaitJob(command.job(), HasFinal));
  EXPECT_EQ(relay_.job(command.job()).out, "on\noff\n");
  EXPECT_TRUE(other_.AwaitNobody());
  const v1::Command next = Send(relay_, {"/bin/echo", "hello"});
  ASSERT_TRUE(relay_.AwaitJob(next.job(), HasFinal));
}

TEST_F(AttachedNodeTest, NodeDoesNotReturnToADisconnectedRelay) {
  relay_.Stop();
  relay_.connected = false;
  other_.Start();
  Begin();
  ASSERT_TRUE(other_.AwaitHellos(1));
  relay_.Start();
  ASSERT_TRUE(relay_.AwaitHellos(2));  // it looked, and looked again
  const v1::Command command = Send(other_, {"/bin/echo", "hello"});
  ASSERT_TRUE(other_.AwaitJob(command.job(), HasFinal));
  EXPECT_EQ(other_.hellos().size(), 1);
  relay_.connected = true;
  EXPECT_TRUE(other_.AwaitNobody());
  EXPECT_EQ(other_.hellos().size(), 1);
}

TEST_F(AttachedNodeTest, AnotherAddressOfTheSameRelayIsNotPreferred) {
  FakeRelay same(tree_, "r2");
  same.Start();
  tree_.WriteNodeFolder(folder_, kNode, {same.target(), other_.target()},
                        commands_.authority().certificate().ToPem());
  same.Stop();
  other_.Start();
  Begin();
  ASSERT_TRUE(other_.AwaitHellos(1));
  same.Start();
  ASSERT_TRUE(same.AwaitGreetings(2));
  EXPECT_EQ(same.hellos().size(), 0);
  EXPECT_EQ(other_.hellos().size(), 1);
}

// A command of the former relay waits while the node attaches to the preferred one, whose machine
// runs for longer: its clock must not make the command late.
TEST_F(AttachedNodeTest, TransitIsMeasuredByTheClockOfTheRelayThatSentTheCommand) {
  relay_.Stop();
  other_.clock = absl::Seconds(1'000);
  relay_.clock = absl::Seconds(1'000'000);
  other_.Start();
  collections_.SetBlocked(true);
  Begin();
  ASSERT_TRUE(other_.AwaitHellos(1));
  v1::AttachResponse message;
  message.mutable_collection()->set_run("0123456789abcdef");
  other_.Send(message);
  const v1::Command command = TestCommands::Exec({"/bin/true"});
  v1::JobCommand& sent = *message.mutable_command();
  sent = commands_.ForNode(command, kNode);
  ToProto(absl::Seconds(1'000), sent.mutable_clock());
  ToProto(absl::Minutes(10), sent.mutable_begin_within());
  other_.Send(message);
  ASSERT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return !collections_.offers.empty();
  }));
  relay_.Start();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  collections_.SetBlocked(false);
  ASSERT_TRUE(relay_.AwaitJob(command.job(), HasFinal));
  EXPECT_EQ(relay_.job(command.job()).final->outcome(), v1::JOB_OUTCOME_EXITED);
}

}  // namespace
}  // namespace muster
