#include "services/common/base/fake_clock.h"

#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(FakeClockTest, StandsStillUntilMoved) {
  FakeClock clock(absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  EXPECT_EQ(clock.MonotonicNow(), absl::Seconds(5));
}

TEST(FakeClockTest, WallTimeJumpsAlone) {
  FakeClock clock(absl::FromUnixSeconds(100));
  clock.JumpWall(absl::FromUnixSeconds(40));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(40));
  EXPECT_EQ(clock.MonotonicNow(), absl::ZeroDuration());
}

TEST(FakeClockTest, FiresEachTimerAtItsMoment) {
  FakeClock clock;
  std::vector<absl::Duration> fired;
  const auto note = [&] { fired.push_back(clock.MonotonicNow()); };
  ASSERT_TRUE(clock.Schedule(absl::Seconds(3), note).ok());
  ASSERT_TRUE(clock
                  .Schedule(absl::Seconds(1),
                            [&] {
                              note();
                              ASSERT_TRUE(clock.Schedule(absl::Seconds(1), note).ok());
                            })
                  .ok());
  ASSERT_TRUE(clock.Schedule(absl::Seconds(9), note).ok());
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(fired, (std::vector{absl::Seconds(1), absl::Seconds(2), absl::Seconds(3)}));
  EXPECT_EQ(clock.waiting_timers(), 1u);
}

TEST(FakeClockTest, ScheduleAlwaysIgnoresTheLimitUntilStop) {
  FakeClock clock(absl::UnixEpoch(), /*max_timers=*/0);
  int runs = 0;
  clock.ScheduleAlways(absl::Seconds(1), [&] { ++runs; });
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(runs, 1);
  clock.ScheduleAlways(absl::Seconds(1), [&] { ++runs; });
  clock.Stop();
  clock.ScheduleAlways(absl::Seconds(1), [&] { ++runs; });
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(runs, 1);
}

TEST(FakeClockTest, CancelsAndRefuses) {
  FakeClock clock(absl::UnixEpoch(), 1);
  bool ran = false;
  const auto id = clock.Schedule(absl::Seconds(1), [&] { ran = true; });
  ASSERT_TRUE(id.ok());
  EXPECT_FALSE(clock.Schedule(absl::Seconds(1), [] {}).ok());
  EXPECT_TRUE(clock.Cancel(*id));
  clock.Advance(absl::Hours(1));
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace muster
