#include "services/relay/topology/child_session.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/errors/relay.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/testing/child_session_fixture.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using testing::Child;
using testing::kInterval;
using testing::UriOf;

using ChildSessionTest = testing::ChildSessionFixture;

TEST_F(ChildSessionTest, HelloAttachesTheChild) {
  const Child child = Connect(NodeIdentity{"n1"});
  ASSERT_EQ(child.stream->sent.size(), 1u);
  EXPECT_EQ(child.stream->sent[0].greeting().relay(), kSelf);
  EXPECT_EQ(child.stream->reads, 1);
  Deliver(child, Hello(child));
  ASSERT_EQ(child.stream->sent.size(), 2u);
  EXPECT_THAT(child.stream->sent[1].welcome().path(), ElementsAre("root"));
  EXPECT_TRUE(child.stream->sent[1].welcome().connected());
  EXPECT_EQ(child.stream->reads, 2);
  EXPECT_EQ(topology_.Route("n1"), child.session);
  child.session->HandleEnd();
  EXPECT_EQ(topology_.Route("n1"), nullptr);
}

TEST_F(ChildSessionTest, WelcomeOfADisconnectedRelaySaysSo) {
  upstream_.SetConnected(false);
  const Child child = Connect(NodeIdentity{"n1"});
  Deliver(child, Hello(child));
  EXPECT_FALSE(child.stream->sent[1].welcome().connected());
}

TEST_F(ChildSessionTest, WelcomeNamesTheRunsThatHaveEnded) {
  upstream_.SetEndedRuns({"r1", "r2"});
  const Child child = Connect(NodeIdentity{"n1"});
  Deliver(child, Hello(child));
  ASSERT_EQ(child.stream->sent.size(), 2u);
  EXPECT_THAT(child.stream->sent[1].welcome().ended_runs(), ElementsAre("r1", "r2"));
}

TEST_F(ChildSessionTest, RevokedRelayAcceptsNoChild) {
  upstream_.may_attach = errors::RelayRevoked("root");
  const Child child = Connect(NodeIdentity{"n1"});
  Deliver(child, Hello(child));
  EXPECT_EQ(ReasonOf(*child.stream->end), "RELAY_REVOKED");
  EXPECT_EQ(topology_.Route("n1"), nullptr);
}

TEST_F(ChildSessionTest, SecondStreamTakesOver) {
  const Child first = Attach(NodeIdentity{"n1"});
  const Child second = Attach(NodeIdentity{"n1"});
  EXPECT_EQ(ReasonOf(*first.stream->end), "TAKEN_OVER");
  first.session->HandleEnd();
  EXPECT_EQ(topology_.Route("n1"), second.session);
}

TEST_F(ChildSessionTest, OlderProcessIsNotWelcome) {
  const Child younger = Attach(NodeIdentity{"n1"});
  const Child older = Connect(NodeIdentity{"n1"});
  older.stream->TakeSent();
  v1::AttachRequest hello = Hello(older);
  hello.mutable_hello()->set_instance_id("2");
  hello.mutable_hello()->mutable_uptime()->set_seconds(1);
  Deliver(older, hello);
  EXPECT_EQ(ReasonOf(*older.stream->end), "DUPLICATE_AGENT");
  EXPECT_THAT(older.stream->sent, IsEmpty());
  EXPECT_FALSE(younger.stream->end);
  EXPECT_EQ(topology_.Route("n1"), younger.session);
}

TEST_F(ChildSessionTest, LateHelloOfAnEndedStreamLeavesTheNextStreamAttached) {
  const Child child = Connect(NodeIdentity{"n1"});
  child.session->HandleEnd();
  const Child next = Attach(NodeIdentity{"n1"});
  Deliver(child, Hello(child));
  EXPECT_EQ(topology_.Route("n1"), next.session);
  EXPECT_FALSE(next.stream->end);
}

TEST_F(ChildSessionTest, LinkOfTheChildIsKnown) {
  const Child child = Connect(NodeIdentity{"n1"});
  v1::AttachRequest hello = Hello(child);
  hello.mutable_hello()->set_link("websocket wss://g:1");
  Deliver(child, hello);
  EXPECT_EQ(topology_.Find("n1")->link, "websocket wss://g:1");
  const Child direct = Connect(NodeIdentity{"n1"});
  Deliver(direct, Hello(direct));
  EXPECT_EQ(topology_.Find("n1")->link, "") << "its next stream uses none";
}

TEST_F(ChildSessionTest, HelloWithATextThatIsTooLongIsRejected) {
  const std::vector<std::function<void(v1::AttachRequest::Hello&)>> texts = {
      [](auto& hello) { hello.set_instance_id(std::string(65, 'x')); },
      [](auto& hello) { hello.set_version(std::string(65, 'x')); },
      [](auto& hello) { hello.set_link(std::string(1025, 'x')); },
      [](auto& hello) { hello.add_relay_targets(std::string(301, 'x')); }};
  for (const auto& set_text : texts) {
    const Child child = Connect(NodeIdentity{"n1"});
    v1::AttachRequest hello = Hello(child);
    set_text(*hello.mutable_hello());
    Deliver(child, hello);
    ASSERT_TRUE(child.stream->end) << hello.hello().ShortDebugString();
    EXPECT_EQ(ReasonOf(*child.stream->end), "INVALID_ATTACHMENT");
  }
  EXPECT_EQ(topology_.Route("n1"), nullptr);
}

TEST_F(ChildSessionTest, FirstMessageOtherThanHelloEndsTheStream) {
  const Child child = Connect(NodeIdentity{"n1"});
  v1::AttachRequest heartbeat;
  heartbeat.mutable_beat();
  Deliver(child, heartbeat);
  EXPECT_EQ(ReasonOf(*child.stream->end), "INVALID_ATTACHMENT");
}

TEST_F(ChildSessionTest, StatementOfAnotherNodeEndsTheStream) {
  const Child child = Connect(NodeIdentity{"n1"});
  Deliver(child, Hello(Connect(NodeIdentity{"n2"})));
  EXPECT_EQ(ReasonOf(*child.stream->end), "STATEMENT_REFUSED");
  EXPECT_EQ(topology_.Route("n1"), nullptr);
}

TEST_F(ChildSessionTest, StatementForAnotherKeyEndsTheStream) {
  const Child child = Connect(NodeIdentity{"n1"});
  v1::AttachRequest hello = Hello(child);
  hello.mutable_hello()->mutable_statement()->set_relay_key_sha256(std::string(32, 'x'));
  Deliver(child, hello);
  EXPECT_EQ(ReasonOf(*child.stream->end), "STATEMENT_REFUSED");
}

TEST_F(ChildSessionTest, HeartbeatIsSentAfterAnIntervalWithoutMessages) {
  const Child child = Attach(NodeIdentity{"n1"});
  clock_.Advance(kInterval - absl::Seconds(1));
  child.session->Tick();
  EXPECT_THAT(child.stream->sent, IsEmpty());
  clock_.Advance(absl::Seconds(1));
  child.session->Tick();
  ASSERT_EQ(child.stream->sent.size(), 1u);
  EXPECT_TRUE(child.stream->sent[0].has_beat());
}

TEST_F(ChildSessionTest, HeartbeatsDoNotQueueBehindAStuckWrite) {
  const Child child = Attach(NodeIdentity{"n1"});
  child.session->Send({});  // never sent by the connection
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(kInterval);
    v1::AttachRequest heartbeat;
    heartbeat.mutable_beat();
    Deliver(child, heartbeat);
    child.session->Tick();
  }
  EXPECT_EQ(child.stream->sent.size(), 1u);
}

TEST_F(ChildSessionTest, SilentChildLosesItsStreamAfterThreeIntervals) {
  const Child child = Attach(NodeIdentity{"n1"});
  clock_.Advance(3 * kInterval);
  child.session->Tick();
  EXPECT_FALSE(child.stream->end);
  clock_.Advance(absl::Seconds(1));
  child.session->Tick();
  EXPECT_TRUE(absl::IsDeadlineExceeded(*child.stream->end));
}

TEST_F(ChildSessionTest, ChildThatDoesNotTakeItsMessagesIsCancelled) {
  const Child child = Attach(NodeIdentity{"n1"});
  child.stream->full = true;
  child.session->Send({});
  EXPECT_TRUE(child.stream->cancelled);
  EXPECT_EQ(ReasonOf(*child.stream->end), "CHILD_STUCK");
}

TEST_F(ChildSessionTest, NextMessageOfANodeIsReadWhenItsRecordsAreAccepted) {
  const Child child = Attach(NodeIdentity{"n1"});
  Deliver(child, RecordOf("n1"));
  EXPECT_EQ(records_.received.size(), 1u);
  EXPECT_EQ(child.stream->reads, 0);
  records_.AcceptAll();
  EXPECT_EQ(child.stream->reads, 1);
}

TEST_F(ChildSessionTest, ChildIsNotSilentWhileItsRecordsWaitForTheSink) {
  const Child child = Attach(NodeIdentity{"n1"});
  Deliver(child, RecordOf("n1"));
  clock_.Advance(4 * kInterval);
  child.session->Tick();
  EXPECT_FALSE(child.stream->end);
  records_.AcceptAll();
  clock_.Advance(4 * kInterval);
  child.session->Tick();
  EXPECT_TRUE(child.stream->end);
}

TEST_F(ChildSessionTest, RelayMaySendMoreBeforeItsRecordsAreAccepted) {
  const Child child = Attach(ServiceIdentity{ServiceRole::kRelay, "r1"}, /*is_relay=*/true);
  ASSERT_TRUE(
      topology_.ApplyUpdate("r1", {AttachedEntry("n1", "r1", clock_.Now())}, {}, true).ok());
  int messages = 0;
  while (child.stream->reads == messages) {
    Deliver(child, RecordOf("n1", 28 << 10));
    ASSERT_LT(++messages, 100);
  }
  EXPECT_GT(messages * (28 << 10), 1 << 20);
  records_.AcceptAll();
  EXPECT_EQ(child.stream->reads, messages);
}

TEST_F(ChildSessionTest, RecordsOfForeignNodesAreDropped) {
  const Child child = Attach(ServiceIdentity{ServiceRole::kRelay, "r1"}, /*is_relay=*/true);
  Deliver(child, RecordOf("n1"));
  EXPECT_FALSE(child.stream->end);
  EXPECT_EQ(record_filter_.removed(), 1);
  EXPECT_THAT(records_.received, IsEmpty());
  EXPECT_EQ(child.stream->reads, 1);
}

TEST_F(ChildSessionTest, MessageWithoutRecordsDoesNotWaitAtTheSink) {
  const Child child = Attach(NodeIdentity{"n1"});
  v1::AttachRequest empty;
  empty.mutable_records();
  for (int i = 1; i <= 3; ++i) {
    Deliver(child, empty);
    EXPECT_EQ(child.stream->reads, i);
  }
  EXPECT_THAT(records_.received, IsEmpty());
}

TEST_F(ChildSessionTest, RecordOfAnotherNodeEndsTheStream) {
  const Child child = Attach(NodeIdentity{"n1"});
  Deliver(child, RecordOf("n2"));
  EXPECT_EQ(ReasonOf(*child.stream->end), "INVALID_ATTACHMENT");
  EXPECT_THAT(records_.received, IsEmpty());
}

TEST_F(ChildSessionTest, RelayWithManyForgedStatementsLosesItsStream) {
  const Child child = Attach(ServiceIdentity{ServiceRole::kRelay, "r1"}, /*is_relay=*/true);
  v1::AttachRequest forged;
  for (int i = 0; i < 500; ++i) {
    auto& descendant = *forged.mutable_topology()->add_descendants();
    *descendant.mutable_statement() = Hello(child).hello().statement();
    descendant.mutable_statement()->set_child(UriOf(NodeIdentity{absl::StrCat("n", i)}));
    descendant.set_relay("r1");
    descendant.set_attached(true);
  }
  for (int i = 0; i < 2; ++i) Deliver(child, forged, 500 / kStatementsOfTurn + 1);
  EXPECT_EQ(child.stream->reads, 2);
  Deliver(child, forged);
  EXPECT_EQ(ReasonOf(*child.stream->end), "TOO_MANY_INVALID_STATEMENTS");
}

TEST_F(ChildSessionTest, UpdateThatForgetsMoreThan500DescendantsEndsTheStream) {
  const Child child = Attach(ServiceIdentity{ServiceRole::kRelay, "r1"}, /*is_relay=*/true);
  v1::AttachRequest update;
  for (int i = 0; i < 500; ++i) update.mutable_topology()->add_forgotten_uris("x");
  Deliver(child, update);
  EXPECT_FALSE(child.stream->end);
  update.mutable_topology()->add_forgotten_uris("x");
  Deliver(child, update);
  ASSERT_TRUE(child.stream->end);
  EXPECT_EQ(ReasonOf(*child.stream->end), "INVALID_ATTACHMENT");
}

TEST_F(ChildSessionTest, TopologyUpdateOfANodeEndsTheStream) {
  const Child child = Attach(NodeIdentity{"n1"});
  v1::AttachRequest update;
  update.mutable_topology()->set_complete(true);
  Deliver(child, update);
  EXPECT_EQ(ReasonOf(*child.stream->end), "INVALID_ATTACHMENT");
}

}  // namespace
}  // namespace muster
