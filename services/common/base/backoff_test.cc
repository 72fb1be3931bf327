#include "services/common/base/backoff.h"

#include <algorithm>
#include <stop_token>

#include "gtest/gtest.h"

namespace muster {
namespace {

// The longest of many first waits after `failures` failures.
absl::Duration LongestWait(const BackoffOptions& options, int failures) {
  absl::Duration longest;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Backoff backoff(options, seed);
    for (int i = 0; i < failures; ++i) backoff.Next(std::nullopt);
    longest = std::max(longest, backoff.Next(std::nullopt));
  }
  return longest;
}

TEST(BackoffTest, CeilingDoublesUpToTheLargest) {
  const BackoffOptions options{absl::Seconds(2), absl::Seconds(10)};
  absl::Duration ceiling = absl::Seconds(2);
  for (int failures = 0; failures < 100; ++failures) {
    const absl::Duration longest = LongestWait(options, failures);
    EXPECT_LE(longest, ceiling) << failures;
    EXPECT_GT(longest, ceiling * 0.9) << failures;
    ceiling = std::min(ceiling * 2, options.most);
  }
}

TEST(BackoffTest, ResetStartsWithTheFirstCeiling) {
  Backoff backoff(BackoffOptions{absl::Seconds(1), absl::Hours(1)}, 1);
  for (int i = 0; i < 10; ++i) backoff.Next(std::nullopt);
  backoff.Reset();
  EXPECT_LE(backoff.Next(std::nullopt), absl::Seconds(1));
}

TEST(BackoffTest, WaitIsNotShorterThanTheLeast) {
  Backoff backoff(BackoffOptions{absl::Seconds(2), absl::Seconds(4), absl::Seconds(1)}, 1);
  absl::Duration shortest = absl::InfiniteDuration();
  for (int i = 0; i < 200; ++i) {
    const absl::Duration wait = backoff.Next(std::nullopt);
    EXPECT_LE(wait, absl::Seconds(4));
    shortest = std::min(shortest, wait);
  }
  EXPECT_GE(shortest, absl::Seconds(1));
  EXPECT_LT(shortest, absl::Seconds(1.1));
}

TEST(BackoffTest, ServersWaitIsTheLeast) {
  Backoff backoff(1);
  for (int i = 0; i < 20; ++i) {
    const absl::Duration wait = backoff.Next(absl::Seconds(7));
    EXPECT_GE(wait, absl::Seconds(7));
    EXPECT_LE(wait, absl::Seconds(14));
  }
}

TEST(BackoffTest, WaitForReturnsFalseIfStopIsRequested) {
  std::stop_source stop;
  EXPECT_TRUE(WaitFor(absl::ZeroDuration(), stop.get_token()));
  stop.request_stop();
  EXPECT_FALSE(WaitFor(absl::InfiniteDuration(), stop.get_token()));
}

}  // namespace
}  // namespace muster
