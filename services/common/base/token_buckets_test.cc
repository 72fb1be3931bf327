#include "services/common/base/token_buckets.h"

#include <string_view>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr TokenBuckets::Rate kRate = {.per_second = 2, .burst = 3};
constexpr absl::Duration kStart = absl::Hours(1);

TEST(TokenBucketsTest, BurstIsGrantedThenTheRate) {
  TokenBuckets buckets;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buckets.Take("a", kRate, kStart), absl::ZeroDuration());
  EXPECT_EQ(buckets.Take("a", kRate, kStart), absl::Milliseconds(500));
  EXPECT_EQ(buckets.Take("a", kRate, kStart + absl::Milliseconds(500)), absl::ZeroDuration());
  EXPECT_EQ(buckets.Take("a", kRate, kStart + absl::Milliseconds(500)), absl::Milliseconds(500));
}

TEST(TokenBucketsTest, FullBucketGrantsNoMoreThanItsBurst) {
  TokenBuckets buckets;
  EXPECT_EQ(buckets.Take("a", kRate, kStart), absl::ZeroDuration());
  const absl::Duration later = kStart + absl::Hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buckets.Take("a", kRate, later), absl::ZeroDuration());
  EXPECT_GT(buckets.Take("a", kRate, later), absl::ZeroDuration());
}

TEST(TokenBucketsTest, KeysHaveBucketsOfTheirOwn) {
  TokenBuckets buckets;
  for (int i = 0; i < 4; ++i) buckets.Take("a", kRate, kStart);
  EXPECT_EQ(buckets.Take("b", kRate, kStart), absl::ZeroDuration());
}

TEST(TokenBucketsTest, KeysBeyondAFullTableAreAcceptedUntilABucketIsFullAgain) {
  TokenBuckets buckets(/*max_keys=*/2);
  const auto take_all = [&](std::string_view key, absl::Duration now) {
    int taken = 0;
    while (taken < 10 && buckets.Take(key, kRate, now) == absl::ZeroDuration()) ++taken;
    return taken;
  };
  EXPECT_EQ(take_all("a", kStart), 3);
  EXPECT_EQ(take_all("b", kStart), 3);
  EXPECT_EQ(take_all("c", kStart), 10);
  EXPECT_EQ(take_all("a", kStart), 0);
  EXPECT_EQ(take_all("c", kStart + absl::Seconds(2)), 3);
}

}  // namespace
}  // namespace muster
