// Callbacks after a time.
#ifndef MUSTER_SERVICES_COMMON_BASE_TIMERS_H_
#define MUSTER_SERVICES_COMMON_BASE_TIMERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// Names one scheduled callback; never used twice by one service. 0 names none.
using TimerId = uint64_t;

// Runs callbacks later, one at a time, in the order in which they fall due. Thread-safe; callbacks
// may schedule and cancel.
//
// Callbacks share one thread: keep them short and hand real work to an Executor. A callback must
// not hold a bare pointer to something that may be gone by then: Cancel does not wait for a
// callback that has begun, so capture a weak_ptr.
class TimerService {
 public:
  virtual ~TimerService() = default;

  // Runs `callback` once, `delay` from now (at once if it is not positive). RESOURCE_EXHAUSTED
  // (TOO_MANY_TIMERS) when the service holds as many timers as it may; the callback is dropped.
  virtual absl::StatusOr<TimerId> Schedule(absl::Duration delay,
                                           absl::AnyInvocable<void()> callback) = 0;

  // True if the callback was still waiting and will now never run. False if it ran, is running,
  // was cancelled before, or never existed.
  virtual bool Cancel(TimerId id) = 0;
};

// A service with a thread of its own that holds at most `max_timers`. Its destructor drops the
// waiting callbacks and waits for a running one, so destroy it from outside its callbacks.
std::unique_ptr<TimerService> MakeTimerService(size_t max_timers);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_TIMERS_H_
