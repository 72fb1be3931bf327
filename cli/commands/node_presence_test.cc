#include "cli/commands/node_presence.h"

#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

class NodePresenceTest : public ::testing::Test {
 protected:
  NodePresenceTest() {
    enrolled_.set_name("n1");
    (*attached_)["n1"].set_attached(true);
    (*attached_)["n1"].mutable_change_time()->set_seconds(100);
  }

  // Returns the presence of a node that sent its last heartbeat at `last_seen`. It is attached
  // since 100.
  std::string Of(v1::Presence presence, int64_t last_seen) {
    (*presences_)["n1"].set_presence(presence);
    (*presences_)["n1"].mutable_last_heartbeat()->set_seconds(last_seen);
    (*presences_)["n1"].mutable_presence_since()->set_seconds(last_seen + 180);
    return PresenceOf(enrolled_, presences_, attached_);
  }

  v1::EnrolledNode enrolled_;
  std::optional<PresenceMap> presences_ = PresenceMap();
  std::optional<AttachedMap> attached_ = AttachedMap();
};

// An agent with work sends a heartbeat after it has attached.
TEST_F(NodePresenceTest, AgentThatAttachedAfterItsLastHeartbeatIsIdle) {
  EXPECT_EQ(Of(v1::PRESENCE_SUSPECT, 99), "idle");
  EXPECT_EQ(Of(v1::PRESENCE_LOST, 99), "idle");
}

TEST_F(NodePresenceTest, AttachedAgentThatFellSilentHasItsPresence) {
  EXPECT_EQ(Of(v1::PRESENCE_SUSPECT, 101), "suspect");
  EXPECT_EQ(Of(v1::PRESENCE_LOST, 101), "lost");
}

TEST_F(NodePresenceTest, AttachedAgentThatIsOfflineIsIdle) {
  EXPECT_EQ(Of(v1::PRESENCE_OFFLINE, 101), "idle");
}

TEST_F(NodePresenceTest, WorkingAgentHasItsPresence) {
  EXPECT_EQ(Of(v1::PRESENCE_ONLINE, 99), "online");
  EXPECT_EQ(Of(v1::PRESENCE_LATE, 99), "late");
}

TEST_F(NodePresenceTest, DetachedAgentHasItsPresence) {
  (*attached_)["n1"].set_attached(false);
  EXPECT_EQ(Of(v1::PRESENCE_LOST, 99), "lost");
  attached_.reset();
  EXPECT_EQ(Of(v1::PRESENCE_OFFLINE, 99), "offline");
}

TEST_F(NodePresenceTest, TimeIsThatOfThePresenceByHeartbeats) {
  const auto shown = [&] {
    return PresenceWithTime(enrolled_, presences_, attached_, absl::FromUnixSeconds(1000));
  };
  EXPECT_EQ(shown(), "-");
  Of(v1::PRESENCE_ONLINE, 101);
  EXPECT_TRUE(shown().starts_with("online since ")) << shown();
  Of(v1::PRESENCE_LOST, 99);
  EXPECT_EQ(shown(), "idle");
  Of(v1::PRESENCE_ONLINE, 101);
  enrolled_.set_revoked(true);
  EXPECT_EQ(shown(), "revoked");
}

TEST_F(NodePresenceTest, EitherServiceTellsOfADuplicateAgent) {
  EXPECT_EQ(HasDuplicateAgent(enrolled_, presences_, attached_), false);
  (*presences_)["n1"].set_duplicate_agent(true);
  EXPECT_EQ(HasDuplicateAgent(enrolled_, presences_, std::nullopt), true);
  EXPECT_EQ(HasDuplicateAgent(enrolled_, std::nullopt, attached_), false);
  (*attached_)["n1"].mutable_duplicate_agent_time()->set_seconds(1);
  EXPECT_EQ(HasDuplicateAgent(enrolled_, std::nullopt, attached_), true);
  EXPECT_EQ(HasDuplicateAgent(enrolled_, std::nullopt, std::nullopt), std::nullopt) << "no answer";
  enrolled_.set_revoked(true);
  EXPECT_EQ(HasDuplicateAgent(enrolled_, presences_, attached_), false)
      << "it can no longer attach";
}

TEST_F(NodePresenceTest, DuplicateAgentsHaveANextStep) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  WarnOfDuplicateAgents(console, {});
  EXPECT_EQ(err.str(), "");
  WarnOfDuplicateAgents(console, {"n1", "n2"});
  EXPECT_EQ(err.str().find("Two agents use the identity of n1"), 0u) << err.str();
  EXPECT_NE(err.str().find("\n next: Stop one of the two processes"), std::string::npos);
}

TEST_F(NodePresenceTest, AttachmentSaysSinceWhenANodeIsNotAttached) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  EXPECT_EQ(AttachmentText(enrolled_, std::nullopt, now), "?");
  attached_->erase("n1");
  EXPECT_EQ(AttachmentText(enrolled_, attached_, now), "no, and not within the last week");
  auto& child = (*attached_)["n1"];
  child.set_relay("r1");
  child.set_attached(true);
  EXPECT_EQ(AttachmentText(enrolled_, attached_, now), "r1");
  child.set_attached(false);
  child.mutable_change_time()->set_seconds(60);
  EXPECT_EQ(AttachmentText(enrolled_, attached_, now),
            "no, since 00:01:00 UTC (it was attached to r1)");
}

TEST_F(NodePresenceTest, NodeWithoutHeartbeatsHasNone) {
  EXPECT_EQ(PresenceOf(enrolled_, presences_, attached_), "-");
  EXPECT_EQ(PresenceOf(enrolled_, std::nullopt, attached_), "?");
  enrolled_.set_revoked(true);
  EXPECT_EQ(PresenceOf(enrolled_, presences_, attached_), "revoked");
}

}  // namespace
}  // namespace muster::cli
