#include "services/relay/upstream/parent_link.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/errors/relay.h"
#include "services/common/identity/command_revocations.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/testing/parent_link_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kBatchWithin = absl::Milliseconds(10);
constexpr char kHeard[] = "0123456789abcdef";  // a run
constexpr char kMissed[] = "123456789abcdef0";

class ParentLinkTest : public ParentLinkFixture {};

TEST_F(ParentLinkTest, WelcomeSetsThePathAndIsPassedOnToTheChildren) {
  const auto child = AttachChild("n1");
  Start();
  int changes = 0;
  const auto watch = link_->OnChange([&] { ++changes; });
  EXPECT_FALSE(link_->connected());
  Accept(1, {"root", "r1"});
  EXPECT_TRUE(link_->connected());
  EXPECT_EQ(changes, 1);
  EXPECT_THAT(topology_.path(), ElementsAre("root", "r1", "r2"));
  const auto sent = child->Take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_THAT(sent[0].welcome().path(), ElementsAre("root", "r1", "r2"));
  EXPECT_TRUE(sent[0].welcome().connected());
}

// A child may have been disconnected when the run ended, as may this relay.
TEST_F(ParentLinkTest, WelcomesNameTheRunsThatEnded) {
  const auto child = AttachChild("n1");
  StartAccepted();
  v1::AttachResponse message;
  message.mutable_collection_ended()->set_run(kHeard);
  Deliver(message);
  EXPECT_THAT(link_->ended_runs(), ElementsAre(kHeard));
  child->Take();
  message.mutable_welcome()->set_connected(true);
  for (const char* run : {kHeard, kMissed}) message.mutable_welcome()->add_ended_runs(run);
  Deliver(message);
  const auto sent = child->Take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_THAT(sent[0].welcome().ended_runs(), ElementsAre(kHeard, kMissed));
}

TEST_F(ParentLinkTest, RunThatAWelcomeLacksIsForgottenByTheChildrenToo) {
  StartAccepted();
  v1::AttachResponse message;
  message.mutable_collection_ended()->set_run(kHeard);
  Deliver(message);
  const auto child = AttachChild("n1");
  message.mutable_welcome()->set_connected(true);
  Deliver(message);
  EXPECT_THAT(child->Take().at(0).welcome().ended_runs(), IsEmpty());
}

TEST_F(ParentLinkTest, RunThatIsOfferedAgainHasNotEnded) {
  StartAccepted();
  v1::AttachResponse message;
  message.mutable_collection_ended()->set_run(kHeard);
  Deliver(message);
  message.mutable_collection()->set_run(kHeard);
  Deliver(message);
  EXPECT_THAT(link_->ended_runs(), IsEmpty());
}

TEST_F(ParentLinkTest, RevokedRelayEndsItsChildrenUntilItIsWelcomedAgain) {
  StartAccepted();
  const auto child = AttachChild("n1");
  EXPECT_TRUE(link_->MayAttach().ok());
  connector_->at(1).End(errors::IdentityRevoked("spiffe://fleet.test/service/relay/r2"));
  executor_.AwaitIdle();
  EXPECT_EQ(ReasonOf(child->end()), "RELAY_REVOKED");
  EXPECT_EQ(ReasonOf(link_->MayAttach()), "RELAY_REVOKED");
  AwaitRetry();
  Accept();
  EXPECT_TRUE(link_->MayAttach().ok());
}

TEST_F(ParentLinkTest, RelayThatTheGateRefusesAsRevokedEndsItsChildren) {
  Start();
  const auto child = AttachChild("n1");
  End();
  EXPECT_TRUE(child->end().ok()) << "another failure";
  AwaitRetry();
  connector_->at(1).End(
      absl::PermissionDeniedError("REVOKED: this identity was revoked. Ask an operator."));
  executor_.AwaitIdle();
  EXPECT_EQ(ReasonOf(child->end()), "RELAY_REVOKED");
}

TEST_F(ParentLinkTest, DescendantOfThisRelayIsLeft) {
  Start();
  Accept(1, {"root", "r2", "r1"});
  ASSERT_TRUE(connector_->at(1).cancelled());
  EXPECT_EQ(ReasonOf(*connector_->at(1).cancelled()), "RELAY_LOOP");
  EXPECT_FALSE(link_->connected());
}

TEST_F(ParentLinkTest, ParentAtTheMaximumDepthIsLeft) {
  Start();
  std::vector<std::string> path;
  for (size_t i = 0; i < kMaxDepth; ++i) path.push_back(absl::StrCat("a", i));
  Accept(1, path);
  ASSERT_TRUE(connector_->at(1).cancelled());
  EXPECT_EQ(ReasonOf(*connector_->at(1).cancelled()), "RELAY_TOO_DEEP");
}

// The root relay needs a route for the acks.
TEST_F(ParentLinkTest, TopologyPrecedesRecords) {
  StartAccepted();
  AttachChild("n1");
  Receive("n1");
  EXPECT_THAT(Sent(), ElementsAre("topology +n1 complete", "records n1"));
  AttachChild("n2");
  Advance(absl::Seconds(1));
  Receive("n2");
  EXPECT_THAT(Sent(), ElementsAre("topology +n2", "records n2"));
}

TEST_F(ParentLinkTest, FirstListIsCompleteInItsLastMessage) {
  for (int i = 0; i < 501; ++i) AttachChild(absl::StrCat("n", i));
  StartAccepted();
  link_->Tick();
  const auto sent = connector_->at(1).TakeSent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].topology().descendants_size(), 500);
  EXPECT_FALSE(sent[0].topology().complete());
  EXPECT_EQ(sent[1].topology().descendants_size(), 1);
  EXPECT_TRUE(sent[1].topology().complete());
  link_->Tick();
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ParentLinkTest, PreferredParentReceivesTheWholeTopology) {
  AttachChild("n1");
  Start({1, 2});
  End(1);
  Accept(2);
  link_->Tick();
  EXPECT_THAT(Sent(2), ElementsAre("hello", "topology +n1 complete"));
  for (int i = 0; i < 10 && connector_->connections(1) < 2; ++i) Advance(absl::Seconds(1));
  ASSERT_EQ(connector_->connections(1), 2u);
  Accept(1, {"r3"});
  EXPECT_TRUE(connector_->at(2).cancelled());
  EXPECT_THAT(topology_.path(), ElementsAre("r3", "r2"));
  Receive("n1");
  EXPECT_THAT(Sent(1), ElementsAre("hello", "topology +n1 complete", "records n1"));
}

TEST_F(ParentLinkTest, RecordsThatArriveTogetherAreSentTogether) {
  StartAccepted();
  link_->Tick();
  Sent();
  for (const char* node : {"n1", "n2", "n3"}) Receive(node);
  EXPECT_THAT(Sent(), ElementsAre("records n1"));
  EXPECT_EQ(done_, 1);
  Advance(kBatchWithin);
  EXPECT_THAT(Sent(), ElementsAre("records n2 n3"));
  EXPECT_EQ(done_, 3);
}

TEST_F(ParentLinkTest, ManyBytesAreSentImmediatelyWithWhatWaits) {
  StartAccepted();
  link_->Tick();
  Receive("n1");
  Sent();
  Receive("n2");
  EXPECT_THAT(Sent(), IsEmpty());
  Receive("n3", 40 << 10);
  EXPECT_THAT(Sent(), ElementsAre("records n2 n3"));
  EXPECT_EQ(done_, 3);
}

TEST_F(ParentLinkTest, RecordsThatExceedOneMessageAreSentInTwo) {
  StartAccepted();
  link_->Tick();
  Receive("n1");
  Sent();
  Receive("n2", 10 << 10);
  Receive("n3", 250 << 10);
  EXPECT_THAT(Sent(), ElementsAre("records n2", "records n3"));
  EXPECT_EQ(done_, 3);
}

TEST_F(ParentLinkTest, MessagesWaitInOrderWhileTheQueueIsFull) {
  StartAccepted();
  connector_->at(1).SetFull(true);
  AttachChild("n1");
  Receive("n1");
  Advance(absl::Seconds(1));
  Receive("n1");
  EXPECT_EQ(done_, 0);
  EXPECT_THAT(Sent(), IsEmpty());
  connector_->at(1).Drain();
  EXPECT_THAT(Sent(), ElementsAre("topology +n1 complete", "records n1", "records n1"));
  EXPECT_EQ(done_, 2);
}

TEST_F(ParentLinkTest, LostParentDropsRecordsAndAsksForMore) {
  StartAccepted();
  connector_->at(1).SetFull(true);
  Receive("n1");
  Receive("n1");
  EXPECT_EQ(done_, 0);
  End();
  EXPECT_EQ(done_, 2);
  EXPECT_FALSE(link_->connected());
  Receive("n1");
  EXPECT_EQ(done_, 3) << "without a parent";
}

TEST_F(ParentLinkTest, DestructorDropsRecords) {
  StartAccepted();
  connector_->at(1).SetFull(true);
  Receive("n1");
  link_.reset();
  EXPECT_EQ(done_, 1);
}

TEST_F(ParentLinkTest, CommandReachesItsNodeWithoutItsTimeInTransit) {
  const auto child = AttachChild("n1");
  Start();
  connector_->at(1).Greet();
  v1::AttachResponse welcome;
  ToProto(absl::Seconds(15), welcome.mutable_welcome()->mutable_interval());
  ToProto(absl::ZeroDuration(), welcome.mutable_welcome()->mutable_clock());
  Deliver(welcome);
  child->Take();
  clock_.Advance(absl::Seconds(20));
  v1::AttachResponse message;
  v1::JobCommand& command = *message.mutable_command();
  command.set_job("j1");
  command.add_targets()->set_node("n1");
  ToProto(absl::ZeroDuration(), command.mutable_clock());  // 20 s in transit
  ToProto(absl::Seconds(60), command.mutable_begin_within());
  ToProto(absl::Seconds(60), command.mutable_wait_within());
  Deliver(message);
  const auto sent = child->Take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].command().job(), "j1");
  EXPECT_LE(FromProto(sent[0].command().begin_within()), absl::Seconds(40));
}

TEST_F(ParentLinkTest, MessagesOfTheParentReachTheirPart) {
  const auto child = AttachChild("n1");
  StartAccepted();
  child->Take();
  v1::AttachResponse message;
  message.mutable_cancel()->set_job("j1");
  message.mutable_cancel()->add_nodes("n1");
  Deliver(message);
  message.mutable_records_ack()->add_reached()->set_node("n1");
  Deliver(message);
  message.mutable_revocations()->set_version(7);
  ASSERT_TRUE(SignCommandRevocations(kParentLinkFleet, commands_.authority().key(),
                                     message.mutable_revocations())
                  .ok());
  Deliver(message);
  message.mutable_collection_ended()->set_run(kHeard);
  Deliver(message);
  message.mutable_shares();
  Deliver(message);
  message.mutable_share_query();
  Deliver(message);
  const auto sent = child->Take();
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[0].cancel().job(), "j1");
  EXPECT_EQ(sent[1].records_ack().reached_size(), 1);
  EXPECT_EQ(sent[2].revocations().version(), 7);
  EXPECT_EQ(sent[3].collection_ended().run(), kHeard);
  EXPECT_EQ(trust_.commands_version(), 7);
  EXPECT_EQ(shares_, 2);
  message.mutable_revoked()->add_subjects("spiffe://fleet.test/node/n1");
  Deliver(message);
  EXPECT_EQ(ReasonOf(child->end()), "IDENTITY_REVOKED");
}

TEST_F(ParentLinkTest, RevocationOfANewStreamDoesNotCompleteTheListOfTheFormerOne) {
  const auto is_revoked = [this](const std::string& serial) {
    return trust_.IsRevoked(
        {{kParentLinkFleet, NodeIdentity{"n1"}}, std::nullopt, "issuer", serial});
  };
  trust_.Revoke({"issuer:01", "issuer:02"});
  StartAccepted();
  v1::AttachResponse part;
  part.mutable_revoked()->add_subjects("issuer:01");
  part.mutable_revoked()->set_reset(true);
  part.mutable_revoked()->set_more(true);
  Deliver(part);
  End();
  AwaitRetry();
  Accept();
  v1::AttachResponse fresh;
  fresh.mutable_revoked()->add_subjects("issuer:03");
  Deliver(fresh);
  EXPECT_TRUE(is_revoked("02"));
  EXPECT_TRUE(is_revoked("03"));
}

}  // namespace
}  // namespace muster
