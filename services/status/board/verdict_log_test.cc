#include "services/status/board/verdict_log.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kNow = absl::Hours(1);
constexpr absl::Duration kLostAfter = absl::Minutes(3);

PairFacts Silent(v1::Presence presence, absl::Duration since) {
  PairFacts facts;
  facts.heard_of = true;
  facts.has_sender = true;
  facts.presence = presence;
  facts.last_seen = kNow - since;
  return facts;
}

bool Lost(const PairFacts& facts) { return LostAt(facts, kLostAfter) <= kNow; }

TEST(VerdictsTest, PairIsLostAfterTheLimitOfItsRun) {
  EXPECT_TRUE(Lost(Silent(v1::PRESENCE_LOST, kLostAfter)));
  EXPECT_TRUE(Lost(Silent(v1::PRESENCE_SUSPECT, kLostAfter)));
  EXPECT_TRUE(Lost(Silent(v1::PRESENCE_OFFLINE, kLostAfter)));
  EXPECT_FALSE(Lost(Silent(v1::PRESENCE_LOST, kLostAfter - absl::Seconds(1))));
}

TEST(VerdictsTest, PairIsNotLostBeforeThreeHeartbeatsAreMissing) {
  EXPECT_FALSE(Lost(Silent(v1::PRESENCE_ONLINE, absl::Hours(1))));
  EXPECT_FALSE(Lost(Silent(v1::PRESENCE_LATE, absl::Hours(1))));
}

TEST(VerdictsTest, PairThatTheServiceMayHaveMissedIsNotLost) {
  EXPECT_FALSE(Lost(Silent(v1::PRESENCE_UNKNOWN, absl::Hours(1))));
  PairFacts doubted = Silent(v1::PRESENCE_LOST, absl::Hours(1));
  doubted.doubted = true;
  EXPECT_FALSE(Lost(doubted));
}

TEST(VerdictsTest, FinishedPairsAndOldSidecarsAreNotLost) {
  PairFacts finished = Silent(v1::PRESENCE_LOST, absl::Hours(1));
  finished.outcome = v1::OUTCOME_GENUINE;
  EXPECT_FALSE(Lost(finished));
  PairFacts sidecar = Silent(v1::PRESENCE_LOST, absl::Hours(1));
  sidecar.has_sender = false;
  EXPECT_FALSE(Lost(sidecar));
}

TEST(VerdictsTest, AbandonedPairIsSilentSinceItsProcessWasReplaced) {
  PairFacts facts = Silent(v1::PRESENCE_ONLINE, absl::Seconds(1));
  facts.abandoned = true;
  facts.abandoned_at = kNow - kLostAfter;
  EXPECT_TRUE(Lost(facts));
  facts.abandoned_at = kNow - absl::Seconds(10);
  EXPECT_FALSE(Lost(facts));
}

v1::Verdict LostVerdict(const std::string& node) {
  v1::Verdict verdict;
  verdict.mutable_lost()->mutable_key()->set_node(node);
  return verdict;
}

TEST(VerdictsTest, FollowerGetsStandingVerdictsThenNewOnes) {
  VerdictLog log;
  log.Add(LostVerdict("a"));
  log.Add(LostVerdict("b"));
  log.WithdrawLost(LostVerdict("a").lost().key());
  const auto first = log.Next(0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->verdict.lost().key().node(), "b");
  EXPECT_FALSE(log.Next(first->number));
  int woken = 0;
  auto watch = log.Watch([&woken] { ++woken; });
  v1::Verdict no_agent;
  no_agent.mutable_start_grace_expired()->set_run("r");
  log.Add(no_agent);
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(log.Next(first->number)->verdict.has_start_grace_expired());
  log.WithdrawStartGraceExpired("r");
  EXPECT_FALSE(log.Next(first->number));
  watch.reset();
  log.Add(no_agent);
  EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace muster
