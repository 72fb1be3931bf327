#include "services/agent/jobs/retry_gate.h"

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

class RetryGateTest : public ::testing::Test {
 protected:
  // Advances until the gate opens; returns how long it was closed.
  absl::Duration AwaitOpen() {
    const absl::Duration begin = clock_.MonotonicNow();
    while (!gate_.is_open() && clock_.MonotonicNow() - begin < absl::Minutes(1)) {
      clock_.Advance(absl::Milliseconds(100));
      executor_.AwaitIdle();
    }
    return clock_.MonotonicNow() - begin;
  }

  FakeClock clock_;
  Executor executor_{{"test", 1}};
  int opened_ = 0;
  RetryGate gate_{clock_, executor_, [this] { ++opened_; }};
};

TEST_F(RetryGateTest, ClosedGateOpensWithinItsBackoff) {
  EXPECT_TRUE(gate_.is_open());
  for (int failure = 1; failure <= 20; ++failure) {
    gate_.Close();
    EXPECT_FALSE(gate_.is_open());
    EXPECT_LE(AwaitOpen(), absl::Milliseconds(30'100)) << failure;
    EXPECT_EQ(opened_, failure);
  }
}

TEST_F(RetryGateTest, ResetShortensTheNextWait) {
  for (int failure = 1; failure <= 20; ++failure) {
    gate_.Close();
    AwaitOpen();
  }
  gate_.Reset();
  EXPECT_TRUE(gate_.is_open());
  gate_.Close();
  EXPECT_LE(AwaitOpen(), absl::Milliseconds(1'100));
}

TEST_F(RetryGateTest, StoppedGateStaysClosed) {
  gate_.Close();
  gate_.Stop();
  clock_.Advance(absl::Hours(1));
  executor_.AwaitIdle();
  EXPECT_FALSE(gate_.is_open());
  EXPECT_EQ(opened_, 0);
}

}  // namespace
}  // namespace muster
