#include "services/status/board/lost_pairs.h"

#include <map>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/status/board/pair_table.h"

namespace muster {
namespace {

constexpr absl::Duration kLostAfter = absl::Minutes(3);

class LostPairsTest : public ::testing::Test {
 protected:
  LostPairsTest() { lost_.SetLostAfter(kLostAfter); }

  // A pair whose sender sent its last heartbeat at `last_seen`.
  Pair& Silent(const std::string& node, absl::Duration last_seen) {
    Pair& pair = table_.Add("facts", node, {});
    auto sender = std::make_shared<Sender>("spiffe://f/node/" + node, node);
    sender->set_presence(v1::PRESENCE_SUSPECT, last_seen);
    sender->set_last_seen(last_seen);
    table_.Hear(pair, {}).sender = sender;
    senders_[node] = sender;
    table_.SetReason(pair, v1::REASON_NOT_RESPONDING, last_seen);
    lost_.Update(pair, last_seen);
    return pair;
  }

  void Tick(absl::Duration at) { lost_.Tick({absl::UnixEpoch() + at, at}); }

  PairTable table_;
  VerdictLog verdicts_;
  LostPairs lost_{"0123456789abcdef", verdicts_};
  std::map<std::string, std::shared_ptr<Sender>> senders_;
};

TEST_F(LostPairsTest, SilentPairIsLostAfterItsTime) {
  Pair& pair = Silent("n1", absl::Seconds(10));
  Tick(absl::Seconds(10) + kLostAfter - absl::Milliseconds(1));
  EXPECT_EQ(verdicts_.standing(), 0u);
  Tick(absl::Seconds(10) + kLostAfter);
  ASSERT_EQ(verdicts_.standing(), 1u);
  EXPECT_TRUE(pair.work->lost);
  const v1::Verdict verdict = verdicts_.Next(0)->verdict;
  EXPECT_EQ(verdict.lost().key().node(), "n1");
  EXPECT_EQ(verdict.lost().since().seconds(), 10);
  EXPECT_EQ(lost_.waiting(), 0u) << "a lost pair costs nothing more";
}

TEST_F(LostPairsTest, HeartbeatWithoutUpdateDefersTheVerdict) {
  Silent("n1", absl::Seconds(10));
  senders_["n1"]->set_last_seen(absl::Seconds(60));
  Tick(absl::Seconds(10) + kLostAfter);
  EXPECT_EQ(verdicts_.standing(), 0u);
  Tick(absl::Seconds(60) + kLostAfter);
  EXPECT_EQ(verdicts_.standing(), 1u);
}

TEST_F(LostPairsTest, ReturnedSenderWithdrawsTheVerdict) {
  Pair& pair = Silent("n1", {});
  Tick(kLostAfter);
  ASSERT_EQ(verdicts_.standing(), 1u);
  senders_["n1"]->set_presence(v1::PRESENCE_ONLINE, kLostAfter);
  lost_.Update(pair, kLostAfter);
  EXPECT_EQ(verdicts_.standing(), 0u);
  EXPECT_FALSE(pair.work->lost);
  Tick(absl::Hours(1));
  EXPECT_EQ(verdicts_.standing(), 0u);
}

TEST_F(LostPairsTest, DoubtedSenderIsNotLost) {
  Pair& pair = Silent("n1", {});
  senders_["n1"]->set_doubted(true);
  lost_.Update(pair, absl::Seconds(1));
  Tick(absl::Hours(1));
  EXPECT_EQ(verdicts_.standing(), 0u);
  senders_["n1"]->set_doubted(false);
  lost_.Update(pair, absl::Hours(1));
  Tick(absl::Hours(1));
  EXPECT_EQ(verdicts_.standing(), 1u);
}

TEST_F(LostPairsTest, EndOfTheRunWithdrawsAllVerdicts) {
  Pair& lost = Silent("n1", {});
  Pair& silent = Silent("n2", absl::Minutes(1));
  Tick(kLostAfter);
  ASSERT_EQ(verdicts_.standing(), 1u);
  EXPECT_FALSE(lost_.SetLostAfter(kLostAfter));
  EXPECT_TRUE(lost_.SetLostAfter(absl::InfiniteDuration()));
  for (Pair* const pair : {&lost, &silent}) lost_.Update(*pair, kLostAfter);
  EXPECT_EQ(verdicts_.standing(), 0u);
  EXPECT_EQ(lost_.waiting(), 0u);
}

TEST_F(LostPairsTest, PairThatIsNotJudgedYetGetsItsVerdictAfterUpdate) {
  Pair& pair = Silent("n1", {});
  table_.SetReason(pair, v1::REASON_RUNNING, {});
  Tick(kLostAfter);
  EXPECT_EQ(verdicts_.standing(), 0u);
  table_.SetReason(pair, v1::REASON_CRASHED, kLostAfter);
  lost_.Update(pair, kLostAfter);
  Tick(kLostAfter);
  EXPECT_EQ(verdicts_.standing(), 1u);
}

TEST_F(LostPairsTest, FinishedPairIsNotLost) {
  Pair& pair = Silent("n1", {});
  pair.outcome = v1::OUTCOME_ERROR;
  lost_.Update(pair, absl::Seconds(1));
  EXPECT_EQ(lost_.waiting(), 0u);
}

}  // namespace
}  // namespace muster
