#include "services/aggregator/runs/redelivery_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "services/aggregator/testing/test_state.h"

namespace muster {
namespace {

using testing::TestState;

class RedeliveryWaitTest : public ::testing::Test {
 protected:
  RedeliveryWaitTest() {
    state_.Plan({"n1", "n2"});
    CommitResult lost = Genuine(KeyOf("n1"), "content");
    lost.result.body.clear();
    lost.result.blob = "runs/a/results/1";  // no such file
    state_.Apply(lost);
  }

  absl::Duration Verify() {
    const auto wait = wait_.Verify(state_.Run(), failures_, stop_);
    EXPECT_TRUE(wait.ok()) << wait.status();
    return wait.value_or(absl::InfiniteDuration());
  }

  TestState state_;
  ReadFailures failures_{state_.clock};
  std::atomic<bool> stop_ = false;
  RedeliveryWait wait_{state_.store(), state_.blobs(), state_.clock, "spiffe://f.muster/user/ann"};
};

TEST_F(RedeliveryWaitTest, DamageIsRecordedAndWaitedForOnce) {
  EXPECT_EQ(*wait_.Remaining(state_.Run()), absl::ZeroDuration());
  EXPECT_EQ(Verify(), absl::Microseconds(kGrace));
  EXPECT_EQ(state_.Run().damaged, 1);
  state_.clock.Advance(absl::Microseconds(kGrace) - absl::Seconds(1));
  EXPECT_EQ(*wait_.Remaining(state_.Run()), absl::Seconds(1));
  state_.clock.Advance(absl::Seconds(1));
  EXPECT_EQ(*wait_.Remaining(state_.Run()), absl::ZeroDuration());
  EXPECT_EQ(Verify(), absl::ZeroDuration());
  wait_.Forget(kRun);
  EXPECT_EQ(*wait_.Remaining(state_.Run()), absl::Microseconds(kGrace));
}

TEST_F(RedeliveryWaitTest, DeclinedResultIsNotWaitedFor) {
  EXPECT_GT(Verify(), absl::ZeroDuration());
  state_.Apply(DeclineRedelivery{.key = KeyOf("n1"), .reason = "not kept"});
  EXPECT_EQ(*wait_.Remaining(state_.Run()), absl::ZeroDuration());
  EXPECT_EQ(Verify(), absl::ZeroDuration());  // it is not requested again
}

TEST_F(RedeliveryWaitTest, VerificationEndsWhenTheProcessStops) {
  stop_ = true;
  EXPECT_TRUE(absl::IsCancelled(wait_.Verify(state_.Run(), failures_, stop_).status()));
}

}  // namespace
}  // namespace muster
