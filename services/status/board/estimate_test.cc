#include "services/status/board/estimate.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kBegin = absl::Hours(5);

Durations HandleActivity(std::initializer_list<int> seconds) {
  Durations durations;
  for (const int s : seconds) durations.Add(absl::Seconds(s));
  return durations;
}

TEST(EstimateTest, FewerThanThreeFinishedPairsGiveNoEstimate) {
  EXPECT_FALSE(EstimateEnd(HandleActivity({}), kBegin, kBegin, kBegin));
  EXPECT_FALSE(EstimateEnd(HandleActivity({60, 60}), kBegin, kBegin, kBegin));
  EXPECT_TRUE(EstimateEnd(HandleActivity({60, 60, 60}), kBegin, kBegin, kBegin));
}

TEST(EstimateTest, RangeReachesFromTheMedianToTheSlowEnd) {
  const auto range = EstimateEnd(HandleActivity({60, 60, 60, 60, 600}), kBegin, kBegin, kBegin);
  ASSERT_TRUE(range);
  EXPECT_GE(range->earliest, kBegin + absl::Seconds(60));
  EXPECT_LE(range->earliest, kBegin + absl::Seconds(75));
  EXPECT_GE(range->latest, kBegin + absl::Seconds(600));
  EXPECT_LE(range->latest, kBegin + absl::Seconds(720));
}

TEST(EstimateTest, LatestEndFollowsTheNewestPair) {
  const absl::Duration now = kBegin + absl::Seconds(30);
  const auto range = EstimateEnd(HandleActivity({60, 60, 60}), kBegin, now, now);
  ASSERT_TRUE(range);
  EXPECT_GE(range->earliest, now + absl::Seconds(60));
}

TEST(EstimateTest, ShorterDurationsThanThePairsAgeDoNotCount) {
  const absl::Duration now = kBegin + absl::Seconds(120);
  const auto range = EstimateEnd(HandleActivity({60, 60, 60, 60, 600}), kBegin, kBegin, now);
  ASSERT_TRUE(range);
  EXPECT_GE(range->earliest, kBegin + absl::Seconds(600));
}

TEST(EstimateTest, PairOlderThanEveryDurationGivesNoEstimate) {
  EXPECT_FALSE(
      EstimateEnd(HandleActivity({60, 60, 60}), kBegin, kBegin, kBegin + absl::Seconds(120)));
  // Nor because a younger one could be estimated.
  const absl::Duration now = kBegin + absl::Seconds(120);
  EXPECT_FALSE(EstimateEnd(HandleActivity({60, 60, 60}), kBegin, now, now));
}

TEST(EstimateTest, DurationOfAnyLengthHasABucket) {
  Durations durations;
  durations.Add(-absl::Seconds(1));
  durations.Add(absl::ZeroDuration());
  durations.Add(absl::Hours(24 * 365));
  durations.Add(absl::InfiniteDuration());
  EXPECT_EQ(durations.count(), 4);
  EXPECT_LE(*durations.Quantile(0.1), absl::Milliseconds(1));
  EXPECT_GE(*durations.Quantile(1), absl::Hours(24 * 30));
}

}  // namespace
}  // namespace muster
