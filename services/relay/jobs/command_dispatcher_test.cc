#include "services/relay/jobs/command_dispatcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "services/common/base/fake_clock.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

class CommandDispatcherTest : public ::testing::Test {
 protected:
  CommandDispatcherTest() {
    topology_.Listen(
        [this](const std::vector<std::string>& names) { dispatcher_.OnReachable(names); }, {});
  }

  std::shared_ptr<RecordedLink> Attach(const std::string& name, bool is_relay = false) {
    auto link = std::make_shared<RecordedLink>();
    EXPECT_TRUE(topology_.Attach(AttachedEntry(name, "root", clock_.Now(), is_relay), link).ok());
    return link;
  }

  static v1::JobCommand Command(const std::vector<std::string>& nodes) {
    v1::JobCommand command;
    command.set_job("j1");
    command.mutable_command()->set_command("signed");
    for (const std::string& node : nodes) {
      v1::JobCommand::Target& target = *command.add_targets();
      target.set_node(node);
      target.add_proof("proof of " + node);
    }
    ToProto(absl::Seconds(60), command.mutable_begin_within());
    ToProto(absl::Seconds(100), command.mutable_end_within());
    ToProto(absl::Seconds(40), command.mutable_wait_within());
    return command;
  }

  // Returns the nodes of the sent commands; "cancel: ..." for a cancel.
  static std::vector<std::string> Sent(RecordedLink& link) {
    std::vector<std::string> nodes;
    for (const v1::AttachResponse& message : link.Take()) {
      for (const auto& target : message.command().targets()) {
        EXPECT_EQ(target.proof(0), "proof of " + target.node());
        nodes.push_back(target.node());
      }
      for (const std::string& node : message.cancel().nodes()) nodes.push_back("cancel: " + node);
    }
    return nodes;
  }

  static v1::JobRecords Final(const std::string& node) {
    v1::JobRecords records;
    v1::JobRecord& record = *records.add_records();
    record.set_job("j1");
    record.set_node(node);
    record.mutable_final();
    return records;
  }

  FakeClock clock_;
  Topology topology_{{.name = "root"}, clock_};
  CommandDispatcher dispatcher_{topology_, clock_};
};

TEST_F(CommandDispatcherTest, CommandForBranchGoesToItsRelay) {
  const auto n1 = Attach("n1");
  const auto r1 = Attach("r1", true);
  ASSERT_TRUE(topology_
                  .ApplyUpdate("r1",
                               {AttachedEntry("n2", "r1", clock_.Now()),
                                AttachedEntry("n3", "r1", clock_.Now())},
                               {}, true)
                  .ok());
  dispatcher_.Dispatch(Command({"n1", "n2", "n3", "n9"}));
  EXPECT_EQ(Sent(*n1), std::vector<std::string>{"n1"});
  EXPECT_EQ(Sent(*r1), (std::vector<std::string>{"n2", "n3"}));
}

TEST_F(CommandDispatcherTest, CommandForUnreachableNodeIsSentWhenItAttaches) {
  dispatcher_.Dispatch(Command({"n1"}));
  clock_.Advance(absl::Seconds(20));
  const auto n1 = Attach("n1");
  const auto messages = n1->Take();
  ASSERT_EQ(messages.size(), 1U);
  const absl::Duration left = FromProto(messages[0].command().begin_within());
  EXPECT_LT(left, absl::Seconds(40)) << "each hop subtracts a little";
  EXPECT_GT(left, absl::Seconds(38));
}

TEST_F(CommandDispatcherTest, ReattachedNodeReceivesCommandAgainUntilItsFinalRecord) {
  Attach("n1");
  dispatcher_.Dispatch(Command({"n1"}));
  EXPECT_EQ(Sent(*Attach("n1")), std::vector<std::string>{"n1"});
  dispatcher_.HandleRecords(Final("n1"));
  EXPECT_TRUE(Sent(*Attach("n1")).empty());
  EXPECT_EQ(dispatcher_.open(), 0U);
}

// The node attaches again, or another agent with its identity does.
TEST_F(CommandDispatcherTest, StartedCommandIsNotSentAgainButItsCancelIs) {
  Attach("n1");
  dispatcher_.Dispatch(Command({"n1"}));
  v1::JobRecords records;
  records.add_records()->set_job("j1");
  records.mutable_records(0)->set_node("n1");
  records.mutable_records(0)->mutable_started();
  dispatcher_.HandleRecords(records);
  EXPECT_TRUE(Sent(*Attach("n1")).empty());
  EXPECT_TRUE(dispatcher_.WasSent("j1", "n1"));
  v1::JobCancel cancel;
  cancel.set_job("j1");
  dispatcher_.Cancel(cancel);
  EXPECT_EQ(Sent(*Attach("n1")), std::vector<std::string>{"cancel: n1"});
}

TEST_F(CommandDispatcherTest, HeldCommandIsSentOnRelease) {
  dispatcher_.Hold();
  const auto n1 = Attach("n1");
  dispatcher_.Dispatch(Command({"n1", "n2"}));
  const auto n2 = Attach("n2");
  EXPECT_TRUE(Sent(*n1).empty());
  EXPECT_TRUE(Sent(*n2).empty());
  dispatcher_.Release();
  EXPECT_EQ(Sent(*n1), std::vector<std::string>{"n1"});
  EXPECT_EQ(Sent(*n2), std::vector<std::string>{"n2"});
  dispatcher_.Release();
  EXPECT_TRUE(Sent(*n1).empty());
}

TEST_F(CommandDispatcherTest, CommandIsNotSentAfterItsTimeToStart) {
  dispatcher_.Dispatch(Command({"n1"}));
  clock_.Advance(absl::Seconds(61));
  EXPECT_TRUE(Sent(*Attach("n1")).empty());
  clock_.Advance(absl::Minutes(3));
  dispatcher_.Tick();
  EXPECT_EQ(dispatcher_.open(), 0U);
}

TEST_F(CommandDispatcherTest, CancelIsSentAlsoToNodesThatAttachLater) {
  const auto n1 = Attach("n1");
  dispatcher_.Dispatch(Command({"n1", "n2"}));
  EXPECT_EQ(Sent(*n1), std::vector<std::string>{"n1"});
  v1::JobCancel cancel;
  cancel.set_job("j1");
  dispatcher_.Cancel(cancel);
  EXPECT_EQ(Sent(*n1), std::vector<std::string>{"cancel: n1"});
  EXPECT_EQ(Sent(*Attach("n2")), std::vector<std::string>{"cancel: n2"}) << "not the command";
}

TEST_F(CommandDispatcherTest, AcksGoToTheChildrenOfTheirNodes) {
  const auto n1 = Attach("n1");
  const auto n2 = Attach("n2");
  v1::RecordsAck ack;
  for (const char* node : {"n1", "n2", "n9"}) {
    ack.add_reached()->set_node(node);
  }
  dispatcher_.SendAcks(ack);
  const auto messages = n1->Take();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].records_ack().reached_size(), 1);
  EXPECT_EQ(n2->Take().size(), 1U);
}

TEST_F(CommandDispatcherTest, CommandIsNotSentToNodeThatAttachesAfterTheTimeToWait) {
  Attach("n2");
  dispatcher_.Dispatch(Command({"n1", "n2"}));
  clock_.Advance(absl::Seconds(41));
  EXPECT_TRUE(Sent(*Attach("n1")).empty());
  EXPECT_EQ(Sent(*Attach("n2")), std::vector<std::string>{"n2"}) << "it may have lost it";
}

TEST_F(CommandDispatcherTest, WithdrawnCommandThatWasNeverSentIsNotSentLater) {
  dispatcher_.Dispatch(Command({"n1"}));
  EXPECT_FALSE(dispatcher_.WasSent("j1", "n1"));
  EXPECT_EQ(dispatcher_.Withdraw("j1", {"n1"}, absl::Minutes(1)), std::vector<std::string>{"n1"});
  EXPECT_TRUE(Sent(*Attach("n1")).empty());
  EXPECT_EQ(dispatcher_.open(), 0U);
}

TEST_F(CommandDispatcherTest, WithdrawnCommandThatWasSentIsCancelledAlsoAfterAReattachment) {
  const auto n1 = Attach("n1");
  dispatcher_.Dispatch(Command({"n1"}));
  EXPECT_TRUE(dispatcher_.WasSent("j1", "n1"));
  n1->Take();
  EXPECT_TRUE(dispatcher_.Withdraw("j1", {"n1"}, absl::Minutes(1)).empty());
  EXPECT_EQ(Sent(*n1), std::vector<std::string>{"cancel: n1"});
  EXPECT_EQ(Sent(*Attach("n1")), std::vector<std::string>{"cancel: n1"});
  dispatcher_.Finish("j1", "n1");
  EXPECT_TRUE(Sent(*Attach("n1")).empty());
}

TEST_F(CommandDispatcherTest, UnknownCommandIsCancelledWhileItsTimeLasts) {
  EXPECT_TRUE(dispatcher_.Withdraw("j1", {"n1"}, absl::Minutes(1)).empty());
  EXPECT_EQ(Sent(*Attach("n1")), std::vector<std::string>{"cancel: n1"});
  clock_.Advance(absl::Minutes(2));
  dispatcher_.Tick();
  EXPECT_TRUE(Sent(*Attach("n1")).empty());
}

TEST_F(CommandDispatcherTest, CancelOfAnUnknownJobIsForwarded) {
  const auto n1 = Attach("n1");
  v1::JobCancel cancel;
  cancel.set_job("j1");
  cancel.add_nodes("n1");
  dispatcher_.Cancel(cancel);
  EXPECT_EQ(Sent(*n1), std::vector<std::string>{"cancel: n1"});
  EXPECT_EQ(dispatcher_.open(), 0U);
}

TEST_F(CommandDispatcherTest, HeldDispatcherSendsCancels) {
  dispatcher_.Hold();
  const auto n1 = Attach("n1");
  dispatcher_.Dispatch(Command({"n1"}), true);
  EXPECT_TRUE(Sent(*n1).empty());
  dispatcher_.Withdraw("j1", {"n1"}, absl::Minutes(1));
  EXPECT_EQ(Sent(*n1), std::vector<std::string>{"cancel: n1"});
}

TEST_F(CommandDispatcherTest, CommandThatMayHaveBeenSentIsSentAgainAfterTheTimeToWait) {
  dispatcher_.Dispatch(Command({"n1"}), true);
  EXPECT_TRUE(dispatcher_.WasSent("j1", "n1"));
  clock_.Advance(absl::Seconds(41));
  EXPECT_EQ(Sent(*Attach("n1")), std::vector<std::string>{"n1"});
}

TEST_F(CommandDispatcherTest, CommandsOfAParentAreBoundedUntilTheyEnd) {
  v1::JobCommand command = Command({"n1"});
  command.mutable_command()->set_command(std::string(1000, 'x'));
  CommandDispatcher relay(topology_, clock_, 3000);
  for (const char* job : {"j1", "j2", "j3"}) {
    v1::JobCommand of_job = command;
    of_job.set_job(job);
    relay.Dispatch(of_job);
  }
  EXPECT_EQ(relay.open(), 2U);
  for (int i = 0; i < 10; ++i) relay.Dispatch(command);
  relay.Finish("j1", "n1");
  relay.Dispatch(command);
  EXPECT_EQ(relay.open(), 2U);
  clock_.Advance(absl::Minutes(10));
  relay.Tick();
  EXPECT_EQ(relay.open(), 0U);
  relay.Dispatch(command);
  EXPECT_EQ(relay.open(), 1U);
}

TEST_F(CommandDispatcherTest, RepeatedCommandIsCountedWithItsLargerTarget) {
  v1::JobCommand command = Command({"n1"});
  CommandDispatcher relay(topology_, clock_, 3000);
  relay.Dispatch(command);
  command.mutable_targets(0)->add_proof(std::string(2000, 'x'));
  relay.Dispatch(command);
  v1::JobCommand second = Command({"n1"});
  second.set_job("j2");
  second.mutable_command()->set_command(std::string(1000, 'x'));
  relay.Dispatch(second);
  EXPECT_EQ(relay.open(), 1U) << "no space is left";
  relay.Finish(command.job(), "n1");
  relay.Dispatch(second);
  EXPECT_EQ(relay.open(), 1U);
}

TEST_F(CommandDispatcherTest, CancelOfAnotherNodeIsSentAndNotKept) {
  const auto n2 = Attach("n2");
  dispatcher_.Dispatch(Command({"n1"}));
  v1::JobCancel cancel;
  cancel.set_job(Command({"n1"}).job());
  cancel.add_nodes("n2");
  cancel.add_nodes("n3");
  dispatcher_.Cancel(cancel);
  EXPECT_EQ(n2->Take().size(), 1U);
  const auto n3 = Attach("n3");
  dispatcher_.OnReachable({"n2", "n3"});
  EXPECT_TRUE(n2->Take().empty());
  EXPECT_TRUE(n3->Take().empty());
}

}  // namespace
}  // namespace muster
