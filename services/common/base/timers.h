// Callbacks at a later time.
#ifndef MUSTER_SERVICES_COMMON_BASE_TIMERS_H_
#define MUSTER_SERVICES_COMMON_BASE_TIMERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// Identifies one scheduled callback. A service never uses an id twice. 0 identifies none.
using TimerId = uint64_t;

// Runs callbacks later, one at a time, ordered by due time. Thread-safe; callbacks may schedule and
// cancel. A process has one; FakeClock (fake_clock.h) is its counterpart in tests.
//
// Callbacks share one thread: a callback must not block, and posts longer work to an Executor (see
// ScheduledTask in scheduled_task.h). Cancel does not wait for a running callback, so a callback
// captures a weak_ptr instead of a pointer to an object that may be destroyed.
class TimerService {
 public:
  virtual ~TimerService() = default;

  // Runs `callback` once, after `delay`, or immediately if that is not positive. For timers whose
  // number depends on peers: RESOURCE_EXHAUSTED (TOO_MANY_TIMERS) if the limit of the service is
  // reached; the callback is then dropped.
  virtual absl::StatusOr<TimerId> Schedule(absl::Duration delay,
                                           absl::AnyInvocable<void()> callback) = 0;

  // As Schedule, for the timers of the process itself: never refused.
  virtual TimerId ScheduleAlways(absl::Duration delay, absl::AnyInvocable<void()> callback) = 0;

  // Returns true if the callback was waiting; it never runs then. Returns false if it ran, is
  // running, was cancelled before, or never existed.
  virtual bool Cancel(TimerId id) = 0;

  // Drops the waiting callbacks and waits for the running one. Later ones are dropped. Must not be
  // called from a callback.
  virtual void Stop() = 0;
};

// Returns a service with its own thread. Schedule refuses while `max_timers` callbacks wait. The
// destructor calls Stop.
std::unique_ptr<TimerService> MakeTimerService(size_t max_timers);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_TIMERS_H_
