#include "services/common/base/mutex.h"

#include <chrono>
#include <latch>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// An event of one thread for which others wait.
struct Shared {
  Mutex mutex;
  CondVar changed;
  StoppableCondVar stoppable;
  int value ABSL_GUARDED_BY(mutex) = 0;

  void Set(int now) {
    MutexLock lock(mutex);
    value = now;
    changed.NotifyAll();
    stoppable.NotifyAll();
  }
};

// Returns whether another thread could acquire `mutex` now.
bool IsFree(Mutex& mutex) {
  bool acquired = false;
  std::thread([&] {
    if (!mutex.TryLock()) return;
    acquired = true;
    mutex.Unlock();
  }).join();
  return acquired;
}

TEST(MutexTest, IncrementsUnderLockAreNotLost) {
  Shared shared;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10'000; ++j) {
        MutexLock lock(shared.mutex);
        ++shared.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(shared.mutex);
  EXPECT_EQ(shared.value, 40'000);
}

TEST(MutexTest, TryLockOfHeldMutexFails) {
  Mutex mutex;
  EXPECT_TRUE(IsFree(mutex));
  mutex.Lock();
  EXPECT_FALSE(IsFree(mutex));
  mutex.Unlock();
  EXPECT_TRUE(IsFree(mutex));
}

TEST(MutexLockTest, HoldsTheMutexUntilItsEnd) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(IsFree(mutex));
  }
  EXPECT_TRUE(IsFree(mutex));
}

TEST(MutexLockTest, MutexIsReleasedAndAcquiredAgain) {
  Mutex mutex;
  MutexLock lock(mutex);
  lock.Unlock();
  EXPECT_TRUE(IsFree(mutex));
  lock.Lock();
  EXPECT_FALSE(IsFree(mutex));
}

// The analysis takes the end of the scope for a release even after Unlock.
TEST(MutexLockTest, UnlockedLockReleasesNothingAtItsEnd) {
  Mutex mutex;
  [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    {
      MutexLock lock(mutex);
      lock.Unlock();
      mutex.Lock();
    }
    EXPECT_FALSE(IsFree(mutex));
    mutex.Unlock();
  }();
}

TEST(CondVarTest, WaitReturnsAfterNotification) {
  Shared shared;
  std::thread setter([&] { shared.Set(1); });
  MutexLock lock(shared.mutex);
  while (shared.value != 1) shared.changed.Wait(shared.mutex);
  EXPECT_FALSE(IsFree(shared.mutex));
  lock.Unlock();
  setter.join();
}

TEST(CondVarTest, NotifyOneWakesAWaiter) {
  Shared shared;
  std::thread waiter([&] {
    MutexLock lock(shared.mutex);
    while (shared.value != 1) shared.changed.Wait(shared.mutex);
  });
  {
    MutexLock lock(shared.mutex);
    shared.value = 1;
  }
  shared.changed.NotifyOne();
  waiter.join();
}

TEST(CondVarTest, WaitPastItsLimitReturnsFalse) {
  Shared shared;
  MutexLock lock(shared.mutex);
  const auto is_set = [&]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared.mutex) { return shared.value != 0; };
  EXPECT_FALSE(shared.changed.WaitUntil(shared.mutex, std::chrono::steady_clock::now()));
  EXPECT_FALSE(shared.changed.WaitFor(shared.mutex, absl::Milliseconds(1), is_set));
  EXPECT_FALSE(shared.changed.WaitFor(shared.mutex, -absl::InfiniteDuration(), is_set));
  EXPECT_FALSE(IsFree(shared.mutex));
  shared.value = 1;
  EXPECT_TRUE(shared.changed.WaitFor(shared.mutex, absl::ZeroDuration(), is_set));
}

TEST(CondVarTest, InfiniteLimitWaitsForTheCondition) {
  Shared shared;
  std::thread setter([&] { shared.Set(1); });
  {
    MutexLock lock(shared.mutex);
    EXPECT_TRUE(shared.changed.WaitFor(
        shared.mutex, absl::InfiniteDuration(),
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared.mutex) { return shared.value == 1; }));
  }
  setter.join();
}

TEST(StoppableCondVarTest, WaitEndsWhenTheConditionHolds) {
  Shared shared;
  std::stop_source stop;
  std::thread setter([&] { shared.Set(1); });
  {
    MutexLock lock(shared.mutex);
    EXPECT_TRUE(shared.stoppable.Wait(
        shared.mutex, stop.get_token(),
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared.mutex) { return shared.value == 1; }));
    while (shared.value != 1) shared.stoppable.Wait(shared.mutex);
    EXPECT_FALSE(IsFree(shared.mutex));
  }
  setter.join();
}

TEST(StoppableCondVarTest, WaitEndsWhenAStopIsRequested) {
  Shared shared;
  std::stop_source stop;
  std::latch waits(1);
  std::thread stopper([&] {
    waits.wait();
    stop.request_stop();
  });
  bool first = true;
  {
    MutexLock lock(shared.mutex);
    EXPECT_FALSE(
        shared.stoppable.WaitFor(shared.mutex, stop.get_token(), absl::InfiniteDuration(), [&] {
          if (std::exchange(first, false)) waits.count_down();
          return false;
        }));
    EXPECT_FALSE(IsFree(shared.mutex));
  }
  stopper.join();
}

TEST(StoppableCondVarTest, WaitPastItsLimitReturnsFalse) {
  Shared shared;
  MutexLock lock(shared.mutex);
  EXPECT_FALSE(shared.stoppable.WaitFor(shared.mutex, std::stop_token(), absl::Milliseconds(1),
                                        [] { return false; }));
  EXPECT_FALSE(IsFree(shared.mutex));
}

}  // namespace
}  // namespace muster
