#include "services/common/base/clock.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(SystemClockTest, WallTimeIsTheMachines) {
  const absl::Time before = absl::Now();
  const absl::Time now = SystemClock().Now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, absl::Now());
}

TEST(SystemClockTest, MonotonicTimeNeverGoesBack) {
  absl::Duration last = SystemClock().MonotonicNow();
  EXPECT_GE(last, absl::ZeroDuration());
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration now = SystemClock().MonotonicNow();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace muster
