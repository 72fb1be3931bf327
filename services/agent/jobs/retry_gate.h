// Limits how often a failed operation is attempted again.
#ifndef MUSTER_SERVICES_AGENT_JOBS_RETRY_GATE_H_
#define MUSTER_SERVICES_AGENT_JOBS_RETRY_GATE_H_

#include <functional>

#include "services/common/base/backoff.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"

namespace muster {

// Closes after a failed attempt and opens when the next attempt is due: after at most 1 s, then 2
// s, up to 30 s, with full jitter. Thread-safe.
class RetryGate {
 public:
  // Calls `on_open` on the executor when the gate opens. `timers` and `executor` outlive it.
  RetryGate(TimerService& timers, Executor& executor, std::function<void()> on_open);

  // Returns whether an attempt may be made.
  bool is_open() const;

  // Closes the gate: the attempt failed.
  void Close();

  // Opens the gate after a success. The next failure closes it only briefly.
  void Reset();

  // Stops the timer. Must not be called from `on_open`.
  void Stop() { open_.Stop(); }

 private:
  void Open() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<void()> on_open_;
  mutable Mutex mutex_;
  Backoff backoff_ ABSL_GUARDED_BY(mutex_);
  bool is_open_ ABSL_GUARDED_BY(mutex_) = true;
  ScheduledTask open_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_RETRY_GATE_H_
