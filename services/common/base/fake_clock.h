// A clock that only a test advances, and its timers.
#ifndef MUSTER_SERVICES_COMMON_BASE_FAKE_CLOCK_H_
#define MUSTER_SERVICES_COMMON_BASE_FAKE_CLOCK_H_

#include <cstddef>
#include <limits>

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timer_queue.h"
#include "services/common/base/timers.h"

namespace muster {

// A Clock and a TimerService. Thread-safe; timers run on the thread that calls Advance.
class FakeClock final : public Clock, public TimerService {
 public:
  explicit FakeClock(absl::Time start = absl::FromUnixSeconds(1'750'000'000),
                     size_t max_timers = std::numeric_limits<size_t>::max());

  absl::Time Now() const override;
  absl::Duration MonotonicNow() const override;

  absl::StatusOr<TimerId> Schedule(absl::Duration delay,
                                   absl::AnyInvocable<void()> callback) override;
  TimerId ScheduleAlways(absl::Duration delay, absl::AnyInvocable<void()> callback) override;
  bool Cancel(TimerId id) override;
  void Stop() override;

  // Advances both times and runs each timer at its due time, also the ones that callbacks schedule
  // meanwhile.
  void Advance(absl::Duration by);

  // Sets the wall time alone, as an administrator or NTP may.
  void JumpWall(absl::Time now);

  size_t waiting_timers() const;

 private:
  TimerId Add(absl::Duration delay, absl::AnyInvocable<void()>& callback)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  const size_t max_timers_;
  absl::Time wall_origin_ ABSL_GUARDED_BY(mutex_);  // wall time at monotonic zero
  absl::Duration elapsed_ ABSL_GUARDED_BY(mutex_);
  TimerQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_FAKE_CLOCK_H_
