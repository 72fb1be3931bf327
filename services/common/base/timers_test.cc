#include "services/common/base/timers.h"

#include <future>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

constexpr size_t kLimit = 4;

TEST(TimerServiceTest, RunsInOrderOfDueTime) {
  std::promise<std::vector<int>> done;
  std::vector<int> order;
  const auto timers = MakeTimerService(kLimit);
  ASSERT_TRUE(timers
                  ->Schedule(absl::Milliseconds(40),
                             [&] {
                               order.push_back(2);
                               done.set_value(order);
                             })
                  .ok());
  ASSERT_TRUE(timers->Schedule(absl::Milliseconds(1), [&] { order.push_back(1); }).ok());
  EXPECT_EQ(done.get_future().get(), (std::vector<int>{1, 2}));
}

TEST(TimerServiceTest, CancelledTimersNeverRun) {
  std::promise<void> later;
  bool ran = false;
  const auto timers = MakeTimerService(kLimit);
  const auto id = timers->Schedule(absl::Milliseconds(20), [&] { ran = true; });
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(timers->Cancel(*id));
  EXPECT_FALSE(timers->Cancel(*id));
  EXPECT_FALSE(timers->Cancel(12345));
  ASSERT_TRUE(timers->Schedule(absl::Milliseconds(30), [&] { later.set_value(); }).ok());
  later.get_future().get();
  EXPECT_FALSE(ran);
}

TEST(TimerServiceTest, RefusesMoreThanItsLimit) {
  const auto timers = MakeTimerService(kLimit);
  for (size_t i = 0; i < kLimit; ++i) ASSERT_TRUE(timers->Schedule(absl::Hours(1), [] {}).ok());
  const auto refused = timers->Schedule(absl::Hours(1), [] {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused.status()), "TOO_MANY_TIMERS");
}

TEST(TimerServiceTest, ScheduleAlwaysIgnoresTheLimit) {
  std::promise<void> done;
  const auto timers = MakeTimerService(/*max_timers=*/0);
  EXPECT_FALSE(timers->Schedule(absl::ZeroDuration(), [] {}).ok());
  EXPECT_NE(timers->ScheduleAlways(absl::ZeroDuration(), [&] { done.set_value(); }), 0u);
  done.get_future().get();
}

TEST(TimerServiceTest, StoppedServiceDropsCallbacks) {
  const auto timers = MakeTimerService(kLimit);
  bool ran = false;
  timers->ScheduleAlways(absl::Hours(1), [&] { ran = true; });
  timers->Stop();
  EXPECT_EQ(timers->ScheduleAlways(absl::ZeroDuration(), [&] { ran = true; }), 0u);
  timers->Stop();
  EXPECT_FALSE(ran);
}

TEST(TimerServiceTest, CallbacksMaySchedule) {
  std::promise<void> done;
  const auto timers = MakeTimerService(kLimit);
  ASSERT_TRUE(
      timers
          ->Schedule(absl::ZeroDuration(),
                     [&] {
                       EXPECT_TRUE(
                           timers->Schedule(absl::ZeroDuration(), [&] { done.set_value(); }).ok());
                     })
          .ok());
  done.get_future().get();
}

TEST(TimerServiceTest, DestructionDropsWaitingCallbacks) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> observer = held;
  auto timers = MakeTimerService(kLimit);
  ASSERT_TRUE(timers->Schedule(absl::InfiniteDuration(), [held = std::move(held)] {}).ok());
  EXPECT_FALSE(observer.expired());
  timers.reset();
  EXPECT_TRUE(observer.expired());
}

}  // namespace
}  // namespace muster
