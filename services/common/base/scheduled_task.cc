#include "services/common/base/scheduled_task.h"

#include <cstdint>
#include <utility>

#include "services/common/base/mutex.h"

namespace muster {
namespace {

constexpr absl::Duration kRetryRefused = absl::Milliseconds(100);

// A callback of the timer service.
struct Timer {
  void Cancel(TimerService& timers) {
    ++generation;
    if (id != 0) timers.Cancel(std::exchange(id, 0));
  }

  TimerId id = 0;
  uint64_t generation = 0;  // a callback of an older one has no effect
};

}  // namespace

// Shared with the timers and the executor, which may outlast the task. Once `stopped` is set and
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

  // Posts a run after `delay`, in place of the earlier callback of this timer.
  static void Arm(const std::shared_ptr<State>& state, Timer State::* timer, absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mutex);

  TimerService& timers;
  Executor& executor;
  const std::function<void()> run;
  Mutex mutex;
  CondVar idle;
  Timer scheduled ABSL_GUARDED_BY(mutex);      // by RunAfter, or after its refusal
  Timer retry ABSL_GUARDED_BY(mutex);          // after the refusal of an urgent run
  int posting ABSL_GUARDED_BY(mutex) = 0;      // threads in Executor::Post
  bool posted ABSL_GUARDED_BY(mutex) = false;  // the executor has it, or will soon
  bool urgent ABSL_GUARDED_BY(mutex) = false;  // no RunAfter replaces the next run
  bool running ABSL_GUARDED_BY(mutex) = false;
  bool again ABSL_GUARDED_BY(mutex) = false;  // the next run follows the running one
  bool stopped ABSL_GUARDED_BY(mutex) = false;
};

void ScheduledTask::State::Arm(const std::shared_ptr<State>& state, Timer State::* timer,
                               absl::Duration delay) {
  Timer& armed = (*state).*timer;
  armed.Cancel(state->timers);
  armed.id = state->timers.ScheduleAlways(
      delay, [weak = std::weak_ptr(state), timer, generation = armed.generation] {
        const auto alive = weak.lock();
        if (alive == nullptr) return;
        {
          MutexLock guard(alive->mutex);
          Timer& own = (*alive).*timer;
          if (alive->stopped || own.generation != generation) return;
          own.id = 0;
          if (!alive->BeginPost()) return;
        }
        Post(alive);
      });
}

ScheduledTask::ScheduledTask(TimerService& timers, Executor& executor, std::function<void()> run)
    : state_(std::make_shared<State>(timers, executor, std::move(run))) {}

ScheduledTask::~ScheduledTask() { Stop(); }

void ScheduledTask::RunAfter(absl::Duration delay) {
  MutexLock lock(state_->mutex);
  if (!state_->stopped) State::Arm(state_, &State::scheduled, delay);
}

void ScheduledTask::RunNow() {
  {
    MutexLock lock(state_->mutex);
    if (state_->stopped) return;
    state_->urgent = true;
    if (!state_->BeginPost()) return;
  }
  Post(state_);
}

void ScheduledTask::Post(const std::shared_ptr<State>& state) {
  const bool posted = state->executor.Post([state] { Run(state); });
  MutexLock lock(state->mutex);
  --state->posting;
  state->idle.NotifyAll();
  if (posted) return;
  state->posted = false;
  if (state->stopped) return;
  if (state->urgent) {
    State::Arm(state, &State::retry, kRetryRefused);
  } else if (state->scheduled.id == 0) {  // else a later call scheduled the next run
    State::Arm(state, &State::scheduled, kRetryRefused);
  }
}

void ScheduledTask::Run(const std::shared_ptr<State>& state) {
  MutexLock lock(state->mutex);
  state->posted = false;
  if (state->stopped) return;
  state->running = true;
  state->urgent = false;
  state->retry.Cancel(state->timers);
  lock.Unlock();
  state->run();
  lock.Lock();
  state->running = false;
  state->idle.NotifyAll();
  if (state->stopped || !std::exchange(state->again, false)) return;
  state->posted = true;
  state->urgent = true;
  ++state->posting;
  lock.Unlock();
  Post(state);
}

void ScheduledTask::Stop() {
  MutexLock lock(state_->mutex);
  state_->stopped = true;
  state_->scheduled.Cancel(state_->timers);
  state_->retry.Cancel(state_->timers);
  while (state_->running || state_->posting > 0) state_->idle.Wait(state_->mutex);
}

}  // namespace muster
