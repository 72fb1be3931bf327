#include "services/common/rpc/call_backlog.h"

#include <gtest/gtest.h>

#include <memory>

namespace muster {
namespace {

constexpr bool kForwards = true;

TEST(CallBacklogTest, ClientThatForwardsNothingMayResetFewCallsAtATime) {
  CallBacklog::Total total = 0;
  CallBacklog backlog(total);
  for (int i = 0; i < 10 * CallBacklog::kMaxReset; ++i) {
    ASSERT_FALSE(backlog.IsExceeded(1, 1, false)) << i;
    backlog.Add();
    backlog.Remove();
  }
  EXPECT_FALSE(backlog.IsExceeded(CallBacklog::kMaxCalls, 0, false));
  EXPECT_FALSE(backlog.IsExceeded(CallBacklog::kMaxReset, CallBacklog::kMaxReset, false));
  for (int i = 0; i < CallBacklog::kMaxReset; ++i) backlog.Add();
  EXPECT_TRUE(backlog.IsExceeded(1, 1, false));
}

TEST(CallBacklogTest, CallsThatTheServerHasNotEndedAreBounded) {
  CallBacklog::Total total = 0;
  CallBacklog backlog(total);
  for (int i = 0; i < CallBacklog::kMaxCalls; ++i) {
    ASSERT_FALSE(backlog.IsExceeded(1, 1, kForwards)) << i;
    backlog.Add();
  }
  EXPECT_TRUE(backlog.IsExceeded(1, 0, kForwards));
  backlog.Remove();
  EXPECT_FALSE(backlog.IsExceeded(1, 0, kForwards));
}

TEST(CallBacklogTest, ResetCallsOfAllConnectionsAreBoundedUntilTheyEnd) {
  CallBacklog::Total total = 0;
  CallBacklog other(total);
  CallBacklog few(total);
  const auto reset = [](CallBacklog& backlog, int calls) {
    const bool exceeded = backlog.IsExceeded(calls, calls, kForwards);
    for (int i = 0; i < calls; ++i) backlog.Add();
    return exceeded;
  };
  EXPECT_FALSE(reset(other, CallBacklog::kFewReset));
  EXPECT_FALSE(reset(few, CallBacklog::kFewReset));
  {
    CallBacklog many(total);
    EXPECT_FALSE(reset(many, CallBacklog::kMaxCalls - 1));
    CallBacklog more(total);
    EXPECT_FALSE(reset(more, CallBacklog::kMaxResetInAll - total));
    EXPECT_FALSE(reset(few, 0)) << "a few are allowed always";
    EXPECT_TRUE(reset(other, 1));
  }
  EXPECT_EQ(total, 2 * CallBacklog::kFewReset + 1);
  EXPECT_FALSE(reset(other, 1)) << "the connections are closed";
  for (int i = 0; i < CallBacklog::kFewReset + 2; ++i) other.Remove();
  EXPECT_EQ(total, CallBacklog::kFewReset);
}

}  // namespace
}  // namespace muster
