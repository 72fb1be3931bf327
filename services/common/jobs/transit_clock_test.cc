#include "services/common/jobs/transit_clock.h"

#include <gtest/gtest.h>

#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

v1::JobCommand SentAt(absl::Duration clock) {
  v1::JobCommand command;
  ToProto(absl::Seconds(60), command.mutable_begin_within());
  ToProto(absl::Seconds(10), command.mutable_wait_within());
  ToProto(absl::Seconds(30), command.mutable_end_within());
  ToProto(clock, command.mutable_clock());
  return command;
}

TEST(TransitClockTest, TimeInTransitReducesTheTimesToStartAndToWait) {
  TransitClock clock;
  clock.Welcome(absl::Seconds(1'000), absl::Seconds(5), true);
  v1::JobCommand command = SentAt(absl::Seconds(1'010));
  clock.Adjust(absl::Seconds(15), &command);
  EXPECT_EQ(FromProto(command.begin_within()), absl::Seconds(60)) << "it arrived at once";
  clock.Adjust(absl::Seconds(35), &command);
  EXPECT_EQ(FromProto(command.begin_within()), absl::Seconds(40));
  EXPECT_EQ(FromProto(command.wait_within()), absl::ZeroDuration());
  EXPECT_EQ(FromProto(command.end_within()), absl::Seconds(30));
}

TEST(TransitClockTest, FastestWelcomeOfAStreamCounts) {
  TransitClock clock;
  clock.Welcome(absl::Seconds(100), absl::Seconds(20), true);
  clock.Welcome(absl::Seconds(110), absl::Seconds(25), false);  // 5 s faster
  clock.Welcome(absl::Seconds(120), absl::Seconds(40), false);
  v1::JobCommand command = SentAt(absl::Seconds(130));
  clock.Adjust(absl::Seconds(50), &command);
  EXPECT_EQ(FromProto(command.begin_within()), absl::Seconds(55));
  clock.Welcome(absl::Seconds(7), absl::Seconds(60), true);
  command = SentAt(absl::Seconds(8));
  clock.Adjust(absl::Seconds(61), &command);
  EXPECT_EQ(FromProto(command.begin_within()), absl::Seconds(60)) << "another stream";
}

TEST(TransitClockTest, CommandBeforeAnyWelcomeIsUnchanged) {
  v1::JobCommand command = SentAt(absl::Seconds(1));
  TransitClock().Adjust(absl::Seconds(1'000), &command);
  EXPECT_EQ(FromProto(command.begin_within()), absl::Seconds(60));
}

}  // namespace
}  // namespace muster
