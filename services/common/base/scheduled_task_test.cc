#include "services/common/base/scheduled_task.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

class ScheduledTaskTest : public ::testing::Test {
 protected:
  // Advances the clock and waits for the runs that are due.
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }

  // Makes small_ refuse tasks until empty_small_ is set.
  void FillSmall() {
    std::promise<void> began;
    ASSERT_TRUE(small_.Post([&] {
      began.set_value();
      empty_small_.get_future().get();
    }));
    began.get_future().get();
    ASSERT_TRUE(small_.Post([] {}));
  }

  FakeClock clock_;
  Executor executor_{{"test", 2, 16}};
  std::promise<void> empty_small_;
  Executor small_{{"small", 1, 1}};
  std::atomic<int> runs_ = 0;
};

TEST_F(ScheduledTaskTest, RunsOnceAtItsTime) {
  ScheduledTask task(clock_, executor_, [this] { ++runs_; });
  task.RunAfter(absl::Seconds(2));
  Advance(absl::Seconds(1));
  EXPECT_EQ(runs_, 0);
  Advance(absl::Seconds(1));
  EXPECT_EQ(runs_, 1);
  Advance(absl::Hours(1));
  EXPECT_EQ(runs_, 1);
}

TEST_F(ScheduledTaskTest, RunAfterReplacesTheScheduledRun) {
  ScheduledTask task(clock_, executor_, [this] { ++runs_; });
  task.RunAfter(absl::Seconds(1));
  task.RunAfter(absl::Seconds(3));
  Advance(absl::Seconds(2));
  EXPECT_EQ(runs_, 0);
  Advance(absl::Seconds(1));
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(clock_.waiting_timers(), 0u);
}

TEST_F(ScheduledTaskTest, RunNowDoesNotWaitForTheScheduledRun) {
  ScheduledTask task(clock_, executor_, [this] { ++runs_; });
  task.RunAfter(absl::Seconds(1));
  task.RunNow();
  executor_.AwaitIdle();
  EXPECT_EQ(runs_, 1);
  Advance(absl::Seconds(1));
  EXPECT_EQ(runs_, 2);
}

TEST_F(ScheduledTaskTest, RunNowDuringARunIsFollowedByAnotherWhateverTheRunSchedules) {
  std::unique_ptr<ScheduledTask> task;
  task = std::make_unique<ScheduledTask>(clock_, executor_, [&] {
    if (++runs_ == 1) task->RunNow();
    task->RunAfter(absl::Hours(1));
  });
  task->RunNow();
  executor_.AwaitIdle();
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(clock_.waiting_timers(), 1u);
}

TEST_F(ScheduledTaskTest, RunNowThatTheExecutorRefusesIsRepeatedSoon) {
  FillSmall();
  ScheduledTask task(clock_, small_, [this] { ++runs_; });
  task.RunAfter(absl::Hours(1));
  task.RunNow();
  empty_small_.set_value();
  small_.AwaitIdle();
  EXPECT_EQ(runs_, 0);
  clock_.Advance(absl::Seconds(1));
  small_.AwaitIdle();
  EXPECT_EQ(runs_, 1);
}

TEST_F(ScheduledTaskTest, RefusedRunNowIsNotDelayedByRunAfter) {
  FillSmall();
  ScheduledTask task(clock_, small_, [this] { ++runs_; });
  task.RunNow();
  task.RunAfter(absl::Hours(1));
  empty_small_.set_value();
  small_.AwaitIdle();
  clock_.Advance(absl::Milliseconds(100));
  small_.AwaitIdle();
  EXPECT_EQ(runs_, 1);
  clock_.Advance(absl::Hours(1));
  small_.AwaitIdle();
  EXPECT_EQ(runs_, 2) << "the scheduled run stays scheduled";
  EXPECT_EQ(clock_.waiting_timers(), 0u);
}

TEST_F(ScheduledTaskTest, FunctionThatSchedulesItselfRunsPeriodically) {
  std::unique_ptr<ScheduledTask> task;
  task = std::make_unique<ScheduledTask>(clock_, executor_, [&] {
    ++runs_;
    task->RunAfter(absl::Seconds(1));
  });
  task->RunAfter(absl::ZeroDuration());
  Advance(absl::ZeroDuration());
  for (int second = 0; second < 5; ++second) Advance(absl::Seconds(1));
  EXPECT_EQ(runs_, 6);
}

TEST_F(ScheduledTaskTest, RunThatIsDueDuringARunFollowsIt) {
  std::promise<void> began;
  std::promise<void> go_on;
  std::atomic<int> parallel = 0;
  ScheduledTask task(clock_, executor_, [&] {
    EXPECT_EQ(++parallel, 1);
    if (++runs_ == 1) {
      began.set_value();
      go_on.get_future().get();
    }
    --parallel;
  });
  task.RunAfter(absl::ZeroDuration());
  clock_.Advance(absl::ZeroDuration());
  began.get_future().get();
  task.RunAfter(absl::ZeroDuration());
  clock_.Advance(absl::ZeroDuration());
  go_on.set_value();
  executor_.AwaitIdle();
  EXPECT_EQ(runs_, 2);
}

TEST_F(ScheduledTaskTest, RefusedRunIsTriedAgain) {
  FillSmall();
  ScheduledTask task(clock_, small_, [this] { ++runs_; });
  task.RunAfter(absl::ZeroDuration());
  clock_.Advance(absl::ZeroDuration());
  EXPECT_EQ(small_.refused(), 1u);
  empty_small_.set_value();
  small_.AwaitIdle();
  EXPECT_EQ(runs_, 0);
  clock_.Advance(absl::Milliseconds(100));
  small_.AwaitIdle();
  EXPECT_EQ(runs_, 1);
}

TEST_F(ScheduledTaskTest, StopCancelsTheScheduledRun) {
  ScheduledTask task(clock_, executor_, [this] { ++runs_; });
  task.RunAfter(absl::Seconds(1));
  task.Stop();
  EXPECT_EQ(clock_.waiting_timers(), 0u);
  task.RunAfter(absl::ZeroDuration());
  Advance(absl::Seconds(2));
  EXPECT_EQ(runs_, 0);
}

TEST_F(ScheduledTaskTest, StopWaitsForARun) {
  std::promise<void> began;
  std::promise<void> go_on;
  std::atomic<bool> ended = false;
  auto task = std::make_unique<ScheduledTask>(clock_, executor_, [&] {
    began.set_value();
    go_on.get_future().get();
    ended = true;
  });
  task->RunAfter(absl::ZeroDuration());
  clock_.Advance(absl::ZeroDuration());
  began.get_future().get();
  std::thread release([&] { go_on.set_value(); });
  task.reset();
  EXPECT_TRUE(ended);
  release.join();
}

}  // namespace
}  // namespace muster
