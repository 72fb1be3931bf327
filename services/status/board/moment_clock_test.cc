#include "services/status/board/moment_clock.h"

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

TEST(MomentClockTest, SmallJumpsOfTheWallClockAreIgnored) {
  FakeClock clock(absl::FromUnixSeconds(1000));
  MomentClock moments(clock);
  EXPECT_EQ(moments.Now().wall, absl::FromUnixSeconds(1000));
  clock.Advance(absl::Seconds(5));
  clock.JumpWall(clock.Now() + absl::Milliseconds(200));
  EXPECT_EQ(moments.Now().wall, absl::FromUnixSeconds(1005));
  EXPECT_EQ(moments.Now().monotonic, absl::Seconds(5));
}

TEST(MomentClockTest, ClockThatWasSetIsFollowed) {
  FakeClock clock(absl::FromUnixSeconds(1000));
  MomentClock moments(clock);
  moments.Now();
  clock.JumpWall(absl::FromUnixSeconds(400));
  EXPECT_EQ(moments.Now().wall, absl::FromUnixSeconds(400));
  EXPECT_EQ(moments.Now().WallOf(-absl::Seconds(1)), absl::FromUnixSeconds(399));
}

}  // namespace
}  // namespace muster
