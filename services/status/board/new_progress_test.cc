#include "services/status/board/new_progress.h"

#include <memory>

#include "gtest/gtest.h"
#include "services/status/board/pair_table.h"

namespace muster {
namespace {

class NewProgressTest : public ::testing::Test {
 protected:
  Pair& AddPair(const std::string& node) {
    Pair& pair = pairs_.Add("facts", node, absl::ZeroDuration());
    pairs_.Hear(pair, absl::Seconds(1)).progress = std::make_unique<v1::Progress>();
    return pair;
  }

  PairTable pairs_;
  NewProgress new_progress_;
};

TEST_F(NewProgressTest, PairIsDrainedOnceWithItsNewestProgress) {
  Pair& pair = AddPair("n1");
  new_progress_.Add(pair);
  new_progress_.Add(pair);
  pair.work->progress->set_completed(7);
  const auto drained = new_progress_.Drain("r");
  ASSERT_EQ(drained.size(), 1u);
  EXPECT_EQ(drained[0].first.run(), "r");
  EXPECT_EQ(drained[0].first.plugin(), "facts");
  EXPECT_EQ(drained[0].first.node(), "n1");
  EXPECT_EQ(drained[0].second.completed(), 7);
  EXPECT_TRUE(new_progress_.Drain("r").empty());
}

TEST_F(NewProgressTest, PairIsDrainedAgainAfterNewProgress) {
  Pair& pair = AddPair("n1");
  new_progress_.Add(pair);
  new_progress_.Drain("r");
  new_progress_.Add(pair);
  EXPECT_EQ(new_progress_.Drain("r").size(), 1u);
}

TEST_F(NewProgressTest, PairWithAnOutcomeIsLeftOut) {
  Pair& pair = AddPair("n1");
  new_progress_.Add(pair);
  pair.outcome = v1::OUTCOME_GENUINE;
  EXPECT_TRUE(new_progress_.Drain("r").empty());
}

}  // namespace
}  // namespace muster
