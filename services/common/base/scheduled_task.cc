#include "services/common/base/scheduled_task.h"

#include <cstdint>
#include <utility>

#include "services/common/base/mutex.h"

namespace muster {
namespace {

constexpr absl::Duration kRetryRefused = absl::Milliseconds(100);

}  // namespace

// Shared with the timer and the executor, which may outlast the task. Once `stopped` is set and
// Stop has returned, neither the function nor the references are used.
struct ScheduledTask::State {
  State(TimerService& timers, Executor& executor, std::function<void()> run)
      : timers(timers), executor(executor), run(std::move(run)) {}

  // Returns whether the caller has to post a run. If one is running, another follows it.
  bool BeginPost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (posted) return false;
    if (running) {
      again = true;
      return false;
    }
    posted = true;
    ++posting;
    return true;
  }

  TimerService& timers;
  Executor& executor;
  const std::function<void()> run;
  Mutex mutex;
  CondVar idle;
  TimerId timer ABSL_GUARDED_BY(mutex) = 0;
  uint64_t generation ABSL_GUARDED_BY(mutex) = 0;  // of the timer; an older one has no effect
  int posting ABSL_GUARDED_BY(mutex) = 0;          // threads in Executor::Post
  bool posted ABSL_GUARDED_BY(mutex) = false;      // the executor has it, or will soon
  bool running ABSL_GUARDED_BY(mutex) = false;
  bool again ABSL_GUARDED_BY(mutex) = false;  // the next run follows the running one
  bool stopped ABSL_GUARDED_BY(mutex) = false;
};

ScheduledTask::ScheduledTask(TimerService& timers, Executor& executor, std::function<void()> run)
    : state_(std::make_shared<State>(timers, executor, std::move(run))) {}

ScheduledTask::~ScheduledTask() { Stop(); }

void ScheduledTask::RunAfter(absl::Duration delay) { Schedule(state_, delay); }

void ScheduledTask::Schedule(const std::shared_ptr<State>& state, absl::Duration delay) {
  MutexLock lock(state->mutex);
  if (state->stopped) return;
  if (state->timer != 0) state->timers.Cancel(state->timer);
  state->timer = state->timers.ScheduleAlways(
      delay, [weak = std::weak_ptr(state), generation = ++state->generation] {
        const auto alive = weak.lock();
        if (alive == nullptr) return;
        {
          MutexLock guard(alive->mutex);
          if (alive->stopped || alive->generation != generation) return;
          alive->timer = 0;
          if (!alive->BeginPost()) return;
        }
        Post(alive, /*now=*/false);
      });
}

void ScheduledTask::RunNow() {
  {
    MutexLock lock(state_->mutex);
    if (state_->stopped || !state_->BeginPost()) return;
  }
  Post(state_, /*now=*/true);
}

// `now`: a refused run does not wait for the timer.
void ScheduledTask::Post(const std::shared_ptr<State>& state, bool now) {
  const bool posted = state->executor.Post([state] { Run(state); });
  {
    MutexLock lock(state->mutex);
    --state->posting;
    state->idle.NotifyAll();
    if (posted) return;
    state->posted = false;
    if (state->timer != 0 && !now) return;  // a later call scheduled the next run
  }
  Schedule(state, kRetryRefused);
}

void ScheduledTask::Run(const std::shared_ptr<State>& state) {
  MutexLock lock(state->mutex);
  state->posted = false;
  if (state->stopped) return;
  state->running = true;
  lock.Unlock();
  state->run();
  lock.Lock();
  state->running = false;
  state->idle.NotifyAll();
  if (state->stopped || !std::exchange(state->again, false)) return;
  state->posted = true;
  ++state->posting;
  lock.Unlock();
  Post(state, /*now=*/true);
}

void ScheduledTask::Stop() {
  MutexLock lock(state_->mutex);
  state_->stopped = true;
  if (state_->timer != 0) state_->timers.Cancel(std::exchange(state_->timer, 0));
  while (state_->running || state_->posting > 0) state_->idle.Wait(state_->mutex);
}

}  // namespace muster
