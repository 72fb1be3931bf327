#include "services/common/base/timers.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/strings.h"
#include "services/common/base/timer_queue.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

class ThreadTimerService final : public TimerService {
 public:
  explicit ThreadTimerService(size_t max_timers)
      : max_timers_(max_timers), thread_([this] { Run(); }) {}

  ~ThreadTimerService() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake_.NotifyOne();
    thread_.join();
  }

  absl::StatusOr<TimerId> Schedule(absl::Duration delay,
                                   absl::AnyInvocable<void()> callback) override {
    MutexLock lock(mutex_);
    if (queue_.size() >= max_timers_)
      return errors::TooManyTimers(static_cast<int64_t>(max_timers_));
    const TimerId id = queue_.Add(clock_.MonotonicNow() + std::max(delay, absl::ZeroDuration()),
                                  std::move(callback));
    wake_.NotifyOne();
    return id;
  }

  bool Cancel(TimerId id) override {
    TimerQueue::Callback dropped;  // destroyed after the lock is released
    MutexLock lock(mutex_);
    dropped = queue_.Remove(id);
    return dropped != nullptr;
  }

 private:
  void Run() {
    MutexLock lock(mutex_);
    while (!stopping_) {
      if (TimerQueue::Callback callback = queue_.TakeDue(clock_.MonotonicNow())) {
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
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<TimerService> MakeTimerService(size_t max_timers) {
  return std::make_unique<ThreadTimerService>(max_timers);
}

}  // namespace muster
