#include "services/relay/files/retry_schedule.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/errors/results.h"
#include "services/common/errors/shares.h"

namespace muster {
namespace {

class RetryScheduleTest : public ::testing::Test {
 protected:
  bool Start(const std::string& task) {
    return schedule_.Start(task, [](absl::AnyInvocable<void()>) { return true; }, [] {});
  }
  // Returns the time until the task can start again.
  absl::Duration Wait(const std::string& task) {
    absl::Duration waited;
    while (!Start(task)) {
      clock_.Advance(absl::Milliseconds(10));
      waited += absl::Milliseconds(10);
    }
    return waited;
  }

  FakeClock clock_;
  RetrySchedule schedule_{clock_, {.first = absl::Seconds(1), .most = absl::Seconds(30)}};
  const absl::Status failed_ = absl::UnavailableError("down");
};

TEST_F(RetryScheduleTest, TaskInProgressDoesNotStartAgain) {
  EXPECT_TRUE(Start("a"));
  EXPECT_FALSE(Start("a"));
  EXPECT_TRUE(Start("b"));
  EXPECT_EQ(schedule_.in_progress(), 2u);
}

TEST_F(RetryScheduleTest, TaskThatIsNotAcceptedCanStartAgain) {
  EXPECT_FALSE(schedule_.Start("a", [](absl::AnyInvocable<void()>) { return false; }, [] {}));
  EXPECT_TRUE(Start("a"));
}

TEST_F(RetryScheduleTest, BackoffDoublesUpToTheLongest) {
  ASSERT_TRUE(Start("a"));
  absl::Duration ceiling = absl::Seconds(1);
  for (int i = 0; i < 8; ++i) {
    schedule_.Finish("a", failed_);
    EXPECT_LE(Wait("a"), ceiling + absl::Milliseconds(10));
    ceiling = std::min(ceiling * 2, absl::Seconds(30));
  }
}

TEST_F(RetryScheduleTest, WaitIsNotShorterThanTheLeast) {
  ASSERT_TRUE(Start("a"));
  schedule_.Finish("a", absl::OkStatus(), absl::Minutes(1));
  EXPECT_GE(Wait("a"), absl::Minutes(1));
  schedule_.Finish("a", errors::TooManyUploads(1), absl::Seconds(1));
  EXPECT_GE(Wait("a"), *RetryAfterOf(errors::TooManyUploads(1)));
}

TEST_F(RetryScheduleTest, PeerMayAskForALongerDelay) {
  ASSERT_TRUE(Start("a"));
  schedule_.Finish("a", errors::TooManyUploads(1));
  EXPECT_GE(Wait("a"), *RetryAfterOf(errors::TooManyUploads(1)));
}

TEST_F(RetryScheduleTest, ResetEndsTheBackoff) {
  ASSERT_TRUE(Start("a"));
  schedule_.Finish("a", failed_, absl::Minutes(1));
  EXPECT_FALSE(Start("a"));
  schedule_.ResetBackoff();
  EXPECT_TRUE(Start("a"));
}

TEST_F(RetryScheduleTest, RetainKeepsTasksInProgress) {
  ASSERT_TRUE(Start("a"));
  ASSERT_TRUE(Start("b"));
  schedule_.Finish("b", failed_, absl::Minutes(1));
  schedule_.Retain([](const std::string&) { return false; });
  EXPECT_FALSE(Start("a"));
  EXPECT_TRUE(Start("b"));
}

TEST_F(RetryScheduleTest, ThirdMismatchCannotSucceed) {
  EXPECT_TRUE(schedule_.CannotSucceed("a", errors::TargetUnknown("n1")));
  EXPECT_FALSE(schedule_.CannotSucceed("a", failed_));
  EXPECT_FALSE(schedule_.CannotSucceed("a", errors::DigestMismatch()));
  EXPECT_FALSE(schedule_.CannotSucceed("a", errors::SizeMismatch(1, 2)));
  EXPECT_TRUE(schedule_.CannotSucceed("a", errors::DigestMismatch()));
  EXPECT_FALSE(schedule_.CannotSucceed("b", errors::DigestMismatch()));
}

}  // namespace
}  // namespace muster
