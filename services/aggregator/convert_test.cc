#include "services/aggregator/convert.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(ConvertTest, RunInPostProcessingSaysUntilWhenAndWhy) {
  RunRecord run;
  run.state = RunState::kPostProcessing;
  run.settled_at = 10 * kSecond;  // all missing pairs were lost before the deadline
  run.deadline_at = 20 * kSecond;
  run.seal_grace = 5 * kSecond;
  run.seal_fault = "full";
  EXPECT_FALSE(ToProto(run).has_seal_time());
  run.timed_out = 1;
  EXPECT_EQ(ToProto(run).seal_time().seconds(), 15);
  EXPECT_EQ(ToProto(run).seal_fault(), "full");
  run.state = RunState::kCancelled;
  EXPECT_FALSE(ToProto(run).has_seal_time());
  EXPECT_EQ(ToProto(run).seal_fault(), "");
}

}  // namespace
}  // namespace muster
