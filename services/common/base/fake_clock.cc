#include "services/common/base/fake_clock.h"

#include <algorithm>
#include <utility>

#include "services/common/errors/base.h"

namespace muster {

FakeClock::FakeClock(absl::Time start, size_t max_timers)
    : max_timers_(max_timers), wall_origin_(start) {}

absl::Time FakeClock::Now() const {
  MutexLock lock(mutex_);
  return wall_origin_ + elapsed_;
}

absl::Duration FakeClock::MonotonicNow() const {
  MutexLock lock(mutex_);
  return elapsed_;
}

absl::StatusOr<TimerId> FakeClock::Schedule(absl::Duration delay,
                                            absl::AnyInvocable<void()> callback) {
  MutexLock lock(mutex_);
  if (queue_.size() >= max_timers_) return errors::TooManyTimers(static_cast<int64_t>(max_timers_));
  return Add(delay, callback);
}

TimerId FakeClock::ScheduleAlways(absl::Duration delay, absl::AnyInvocable<void()> callback) {
  MutexLock lock(mutex_);
  return Add(delay, callback);
}

TimerId FakeClock::Add(absl::Duration delay, absl::AnyInvocable<void()>& callback) {
  if (stopped_) return 0;
  return queue_.Add(elapsed_ + std::max(delay, absl::ZeroDuration()), std::move(callback));
}

void FakeClock::Stop() {
  TimerQueue dropped;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  stopped_ = true;
  std::swap(dropped, queue_);
}

bool FakeClock::Cancel(TimerId id) {
  TimerQueue::Callback dropped;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  dropped = queue_.Remove(id);
  return dropped != nullptr;
}

void FakeClock::Advance(absl::Duration by) {
  MutexLock lock(mutex_);
  const absl::Duration end = elapsed_ + by;
  for (;;) {
    const auto due = queue_.NextDue();
    if (!due || *due > end) break;
    elapsed_ = std::max(elapsed_, *due);
    TimerQueue::Callback callback = queue_.PopDue(elapsed_);
    lock.Unlock();
    callback();
    callback = nullptr;
    lock.Lock();
  }
  elapsed_ = std::max(elapsed_, end);
}

void FakeClock::JumpWall(absl::Time now) {
  MutexLock lock(mutex_);
  wall_origin_ = now - elapsed_;
}

size_t FakeClock::waiting_timers() const {
  MutexLock lock(mutex_);
  return queue_.size();
}

}  // namespace muster
