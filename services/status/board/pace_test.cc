#include "services/status/board/pace.h"

#include "gtest/gtest.h"
#include "services/status/board/reasons.h"

namespace muster {
namespace {

TEST(PaceTest, RateCountsFromTheFirstReport) {
  Motion motion;
  EXPECT_FALSE(motion.Moved(100, absl::Seconds(0)));
  EXPECT_FALSE(motion.Rate(absl::Seconds(60))) << "it has not counted up";
  EXPECT_EQ(motion.Moved(120, absl::Seconds(5)), absl::Seconds(5));
  EXPECT_FALSE(motion.Rate(absl::Seconds(9))) << "too short to say";
  EXPECT_DOUBLE_EQ(*motion.Rate(absl::Seconds(10)), 2);
  EXPECT_DOUBLE_EQ(*motion.Rate(absl::Seconds(20)), 1) << "standing still counts";
}

TEST(PaceTest, RestartedProgressCountsFromItsRestart) {
  Motion motion;
  motion.Moved(0, absl::Seconds(0));
  motion.Moved(1000, absl::Seconds(10));
  motion.Moved(0, absl::Seconds(20));
  motion.Moved(10, absl::Seconds(30));
  EXPECT_DOUBLE_EQ(*motion.Rate(absl::Seconds(30)), 1);
}

TEST(PaceTest, StuckTimeFollowsTheStepsOfThePlugin) {
  Durations steps;
  EXPECT_EQ(StuckAfter(steps), kStuckAtLeast);
  for (int i = 0; i < 100; ++i) steps.Add(absl::Seconds(1));
  EXPECT_EQ(StuckAfter(steps), kStuckAtLeast);
  for (int i = 0; i < 10; ++i) steps.Add(absl::Minutes(10));
  EXPECT_GE(StuckAfter(steps), absl::Minutes(30));
  EXPECT_LE(StuckAfter(steps), absl::Minutes(36));
}

TEST(PaceTest, SlowPairIsSlowerThanNineInTenOfFiveOthers) {
  EXPECT_FALSE(SlowBelow({1, 10, 10, 10, 10})) << "four others";
  const auto below = SlowBelow({10, 10, 1, 10, 10, 10});
  ASSERT_TRUE(below);
  EXPECT_LT(1, *below);
  EXPECT_GE(10, *below);
}

TEST(PaceTest, EqualPairsAreNotSlow) {
  const auto below = SlowBelow({10, 10, 10, 10, 9, 10, 10, 10});
  ASSERT_TRUE(below);
  EXPECT_GT(9, *below) << "the last of a field that is close together";
}

TEST(PaceTest, AtMostATenthOfThePairsIsSlow) {
  std::vector<double> rates;
  for (int i = 1; i <= 101; ++i) rates.push_back(i);
  const auto below = SlowBelow(rates);
  ASSERT_TRUE(below);
  EXPECT_DOUBLE_EQ(*below, 11) << "ten of a hundred others are slower";
}

}  // namespace
}  // namespace muster
