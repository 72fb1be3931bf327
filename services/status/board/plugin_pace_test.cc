#include "services/status/board/plugin_pace.h"

#include <deque>
#include <vector>

#include "gtest/gtest.h"
#include "services/status/board/pair.h"

namespace muster {
namespace {

class PluginPaceTest : public ::testing::Test {
 protected:
  PluginPaceTest() : pairs_(6) {
    for (Pair& pair : pairs_) pair.work = std::make_unique<Work>();
  }

  std::deque<Pair> pairs_;
  PluginPace pace_;
};

TEST_F(PluginPaceTest, PairWithoutMovementIsStuckOnce) {
  pace_.Moved(pairs_[0], 1, absl::Seconds(0));
  pace_.Moved(pairs_[1], 1, absl::Seconds(1));
  EXPECT_EQ(pace_.PopStuck(kStuckAtLeast - absl::Milliseconds(1)), nullptr);
  EXPECT_EQ(pace_.PopStuck(kStuckAtLeast), &pairs_[0]);
  EXPECT_EQ(pace_.PopStuck(kStuckAtLeast), nullptr);
  EXPECT_EQ(pace_.PopStuck(kStuckAtLeast + absl::Seconds(1)), &pairs_[1]);
  EXPECT_EQ(pace_.PopStuck(absl::Hours(1)), nullptr);
}

TEST_F(PluginPaceTest, MovementDefersStuck) {
  pace_.Moved(pairs_[0], 1, absl::Seconds(0));
  pace_.Moved(pairs_[1], 1, absl::Seconds(1));
  pace_.Moved(pairs_[0], 2, absl::Seconds(2));
  EXPECT_EQ(pace_.PopStuck(kStuckAtLeast + absl::Seconds(1)), &pairs_[1]);
  EXPECT_EQ(pace_.PopStuck(kStuckAtLeast + absl::Seconds(1)), nullptr);
  EXPECT_EQ(pace_.PopStuck(kStuckAtLeast + absl::Seconds(2)), &pairs_[0]);
}

TEST_F(PluginPaceTest, LongStepsExtendTheTime) {
  for (int i = 0; i < 20; ++i) pace_.Moved(pairs_[0], i, i * absl::Minutes(10));
  EXPECT_EQ(pace_.stuck_after(), kStuckAtLeast);
  pace_.Compare(pairs_, absl::Minutes(190));
  EXPECT_GE(pace_.stuck_after(), absl::Minutes(30));
  EXPECT_EQ(pace_.PopStuck(absl::Minutes(190) + absl::Minutes(29)), nullptr);
}

TEST_F(PluginPaceTest, FinishedPairIsNeverStuck) {
  pace_.Moved(pairs_[0], 1, absl::Seconds(0));
  pairs_[0].outcome = v1::OUTCOME_GENUINE;
  pace_.Finish(pairs_[0], absl::Seconds(1));
  EXPECT_EQ(pace_.PopStuck(absl::Hours(1)), nullptr);
  Pair unheard;
  pace_.Finish(unheard, absl::Seconds(1));
}

TEST_F(PluginPaceTest, SlowestPairIsComparedWithFinishedOnes) {
  for (int second = 0; second <= 20; ++second) {
    for (size_t i = 0; i < pairs_.size(); ++i) {
      pace_.Moved(pairs_[i], second * (i == 3 ? 1 : 10), absl::Seconds(second));
    }
  }
  EXPECT_EQ(pace_.Compare(pairs_, absl::Seconds(20)), (std::vector<Pair*>{&pairs_[3]}));
  EXPECT_TRUE(pairs_[3].work->slow);
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (i == 3) continue;
    pairs_[i].outcome = v1::OUTCOME_GENUINE;
    pace_.Finish(pairs_[i], absl::Seconds(20));
  }
  EXPECT_TRUE(pace_.Compare(pairs_, absl::Seconds(20)).empty()) << "nothing has changed";
  EXPECT_TRUE(pairs_[3].work->slow);
}

}  // namespace
}  // namespace muster
