// Tests the parts of heartbeats without a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "services/client/clean_text.h"
#include "services/client/heartbeat_schedule.h"
#include "services/client/sender_activity.h"
#include "services/common/base/backoff.h"

namespace muster::client {
namespace {

constexpr absl::Duration kStart = absl::Seconds(1000);

TEST(HeartbeatScheduleTest, FirstIsDueImmediatelyAndLaterOnesAtTheRandomisedInterval) {
  HeartbeatSchedule schedule(1);
  schedule.Opened(kStart);
  EXPECT_LE(schedule.Due(false), kStart);
  absl::Duration shortest = absl::InfiniteDuration();
  absl::Duration longest;
  for (int i = 0; i < 1000; ++i) {
    schedule.Sent(kStart, false);
    schedule.Answered(absl::Seconds(100));
    shortest = std::min(shortest, schedule.Due(false) - kStart);
    longest = std::max(longest, schedule.Due(false) - kStart);
  }
  EXPECT_GE(shortest, absl::Seconds(80));
  EXPECT_LT(shortest, absl::Seconds(85));
  EXPECT_LE(longest, absl::Seconds(120));
  EXPECT_GT(longest, absl::Seconds(115));
}

TEST(HeartbeatScheduleTest, ChangesAreDueAtMostFourTimesASecond) {
  HeartbeatSchedule schedule(1);
  schedule.Opened(kStart);
  schedule.Sent(kStart, true);
  EXPECT_EQ(schedule.Due(true), kStart + absl::Milliseconds(250));
  const absl::Duration later = kStart + absl::Seconds(5);
  schedule.Sent(later, false);
  EXPECT_LE(schedule.Due(true), later) << "the last change is long ago";
}

TEST(HeartbeatScheduleTest, ProbeIsAnsweredOnceAndImmediately) {
  HeartbeatSchedule schedule(1);
  schedule.Opened(kStart);
  schedule.Sent(kStart, true);
  schedule.Probed();
  EXPECT_LT(schedule.Due(false), kStart);
  schedule.Sent(kStart, false);
  EXPECT_GT(schedule.Due(false), kStart);
}

TEST(HeartbeatScheduleTest, IntervalIsLimited) {
  HeartbeatSchedule schedule(1);
  schedule.Opened(kStart);
  for (const absl::Duration said :
       {-absl::Seconds(5), absl::ZeroDuration(), absl::InfiniteDuration()}) {
    schedule.Sent(kStart, false);
    schedule.Answered(said);
    EXPECT_GE(schedule.Due(false), kStart + absl::Milliseconds(200)) << said;
    EXPECT_LE(schedule.Due(false), kStart + absl::Hours(2)) << said;
  }
}

TEST(HeartbeatScheduleTest, UnansweredConnectionIsGivenUp) {
  HeartbeatSchedule schedule(1);
  schedule.Opened(kStart);
  EXPECT_EQ(schedule.GiveUp(), kStart + absl::Seconds(30));
  schedule.Sent(kStart + absl::Seconds(2), true);
  EXPECT_EQ(schedule.GiveUp(), kStart + absl::Seconds(30));
  schedule.Answered(absl::Minutes(1));
  EXPECT_EQ(schedule.GiveUp(), absl::InfiniteDuration());
  schedule.Sent(kStart + absl::Minutes(1), false);
  EXPECT_EQ(schedule.GiveUp(), kStart + absl::Minutes(4));
}

TEST(ReconnectBackoffTest, DelayIsBetweenOneAndFortyFiveSeconds) {
  Backoff backoff(kReconnectBackoff, 1);
  absl::Duration longest;
  for (int i = 0; i < 2000; ++i) {
    const absl::Duration next = backoff.Next(std::nullopt);
    EXPECT_GE(next, absl::Seconds(1));
    EXPECT_LE(next, absl::Seconds(45));
    if (i == 0) {
      EXPECT_LE(next, absl::Seconds(8));
    }
    longest = std::max(longest, next);
  }
  EXPECT_GT(longest, absl::Seconds(41));
}

TEST(ReconnectBackoffTest, ServerWithoutHeartbeatsIsCalledAtMostEveryFourSeconds) {
  Backoff backoff(kUnservedBackoff, 1);
  absl::Duration longest;
  for (int i = 0; i < 2000; ++i) {
    const absl::Duration next = backoff.Next(std::nullopt);
    EXPECT_GE(next, absl::Seconds(4));
    EXPECT_LE(next, absl::Minutes(10));
    longest = std::max(longest, next);
  }
  EXPECT_GT(longest, absl::Minutes(9));
}

TEST(CleanTextTest, Utf8IsKeptAndOtherBytesAreReplaced) {
  EXPECT_EQ(CleanText("disk 3\n\xC3\xA4", 100), "disk 3\n\xC3\xA4");
  EXPECT_EQ(CleanText("a\xFF\xC3", 100), "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(CleanText("ab\xC3\xA4", 3), "ab") << "not within a character";
  EXPECT_EQ(CleanText(std::string(1 << 20, 'x'), 4096).size(), 4096U);
  EXPECT_EQ(CleanText("", 10), "");
}

TEST(SenderActivityTest, NewestReportIsKeptUntilItIsSent) {
  SenderActivity activity;
  Progress progress;
  progress.completed = 1;
  activity.KeepProgress(progress);
  const uint64_t first = activity.Get().version;
  progress.completed = 2;
  activity.KeepProgress(progress);
  activity.HandleAck(first);
  ASSERT_TRUE(activity.Get().progress) << "a newer one is kept since";
  EXPECT_EQ(activity.Get().progress->completed, 2);
  activity.HandleAck(activity.Get().version);
  EXPECT_FALSE(activity.Get().progress);
}

TEST(SenderActivityTest, AppendAndInvalidReportsAreNotKept) {
  SenderActivity activity;
  Progress append;
  append.append_completed = 1;
  activity.KeepProgress(append);
  Progress negative;
  negative.completed = -1;
  activity.KeepProgress(negative);
  Progress huge;
  huge.total = std::numeric_limits<int64_t>::max();
  activity.KeepProgress(huge);
  EXPECT_FALSE(activity.Get().progress);
}

TEST(SenderActivityTest, ScopeRestoresThePreviousPhase) {
  SenderActivity activity;
  activity.SetPhase(Phase::kChecking, "names");
  {
    const PhaseScope scope(activity, Phase::kDelivering);
    EXPECT_EQ(activity.Get().phase, Phase::kDelivering);
    EXPECT_EQ(activity.Get().message, "");
  }
  EXPECT_EQ(activity.Get().phase, Phase::kChecking);
  EXPECT_EQ(activity.Get().message, "names");
}

}  // namespace
}  // namespace muster::client
