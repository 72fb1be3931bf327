// A task that runs later, again and again, or after a retry wait, without a dedicated thread.
#ifndef MUSTER_SERVICES_COMMON_BASE_SCHEDULED_TASK_H_
#define MUSTER_SERVICES_COMMON_BASE_SCHEDULED_TASK_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "services/common/base/executor.h"
#include "services/common/base/timers.h"

namespace muster {

// Runs one function of its owner on an executor when a timer fires. The function decides when it
// runs again: it calls RunAfter with a period, a retry wait or the time until the next deadline.
// Runs never overlap. Thread-safe.
//
// If the executor refuses a run, the task tries again after 100 ms.
class ScheduledTask {
 public:
  // The first run needs a RunAfter. `timers` and `executor` outlive this object.
  ScheduledTask(TimerService& timers, Executor& executor, std::function<void()> run);

  // Calls Stop.
  ~ScheduledTask();

  ScheduledTask(const ScheduledTask&) = delete;
  ScheduledTask& operator=(const ScheduledTask&) = delete;

  // Schedules the next run `delay` from now, in place of one that was scheduled before. If the
  // time comes during a run, the next run follows it.
  void RunAfter(absl::Duration delay);

  // Runs the function as soon as the executor can, from any thread, whatever RunAfter is called
  // meanwhile. If it is running, another run follows it. A scheduled run stays scheduled.
  void RunNow();

  // Cancels the scheduled run and waits for a running one. Later calls of RunAfter have no effect.
  // Must not be called from the function. Idempotent.
  void Stop();

 private:
  struct State;
  static void Post(const std::shared_ptr<State>& state);
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SCHEDULED_TASK_H_
