#include "services/common/base/timers.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timer_queue.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

class ThreadTimerService final : public TimerService {
 public:
  explicit ThreadTimerService(size_t max_timers)
      : max_timers_(max_timers), thread_([this] { Run(); }) {}

  ~ThreadTimerService() override { Stop(); }

  absl::StatusOr<TimerId> Schedule(absl::Duration delay,
                                   absl::AnyInvocable<void()> callback) override {
    MutexLock lock(mutex_);
    if (queue_.size() >= max_timers_) {
      return errors::TooManyTimers(static_cast<int64_t>(max_timers_));
    }
    return Add(delay, callback);
  }

  TimerId ScheduleAlways(absl::Duration delay, absl::AnyInvocable<void()> callback) override {
    MutexLock lock(mutex_);
    return Add(delay, callback);
  }

  bool Cancel(TimerId id) override {
    TimerQueue::Callback dropped;  // destroyed after the lock is released
    MutexLock lock(mutex_);
    dropped = queue_.Remove(id);
    return dropped != nullptr;
  }

  void Stop() override {
    TimerQueue dropped;  // destroyed after the lock is released
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      std::swap(dropped, queue_);
    }
    wake_.NotifyOne();
    if (thread_.joinable()) thread_.join();
  }

 private:
  TimerId Add(absl::Duration delay, absl::AnyInvocable<void()>& callback)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (stopping_) return 0;
    const TimerId id = queue_.Add(clock_.MonotonicNow() + std::max(delay, absl::ZeroDuration()),
                                  std::move(callback));
    wake_.NotifyOne();
    return id;
  }

  void Run() {
    MutexLock lock(mutex_);
    while (!stopping_) {
      if (TimerQueue::Callback callback = queue_.PopDue(clock_.MonotonicNow())) {
        lock.Unlock();
        callback();
        callback = nullptr;
        lock.Lock();
        continue;
      }
      const auto due = queue_.NextDue();
      if (!due) {
        wake_.Wait(mutex_);
      } else {
        wake_.WaitFor(mutex_, std::min(*due - clock_.MonotonicNow(), absl::Hours(1)));
      }
    }
  }

  const size_t max_timers_;
  const Clock& clock_ = SystemClock();
  Mutex mutex_;
  CondVar wake_;
  TimerQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace

std::unique_ptr<TimerService> MakeTimerService(size_t max_timers) {
  return std::make_unique<ThreadTimerService>(max_timers);
}

}  // namespace muster
