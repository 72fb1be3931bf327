#include "services/common/upload/fair_strand.h"

#include <deque>
#include <utility>

#include "services/common/base/mutex.h"

namespace muster {

struct FairStrand::State {
  State(Executor& executor, std::string owner, size_t max_queue)
      : executor(executor), owner(std::move(owner)), max_queue(max_queue) {}

  Executor& executor;
  const std::string owner;
  const size_t max_queue;
  Mutex mutex;
  std::deque<Executor::Task> queue ABSL_GUARDED_BY(mutex);
  bool scheduled ABSL_GUARDED_BY(mutex) = false;  // a Run is queued or running
};

FairStrand::FairStrand(Executor& executor, std::string owner, size_t max_queue)
    : state_(std::make_shared<State>(executor, std::move(owner), max_queue)) {}

bool FairStrand::Post(Executor::Task task) {
  MutexLock lock(state_->mutex);
  if (state_->queue.size() >= state_->max_queue) return false;
  if (!state_->scheduled) {
    // Under the lock, so that a refusal cannot strand a task that another thread posts meanwhile.
    if (!state_->executor.Post(state_->owner, [state = state_] { Run(state); })) return false;
    state_->scheduled = true;
  }
  state_->queue.push_back(std::move(task));
  return true;
}

void FairStrand::Run(const std::shared_ptr<State>& state) {
  for (bool first = true;; first = false) {
    Executor::Task task;
    {
      MutexLock lock(state->mutex);
      if (state->queue.empty()) {
        state->scheduled = false;
        return;
      }
      // If the executor refuses, the strand keeps its thread.
      if (!first && state->executor.queued() > 0 &&
          state->executor.Post(state->owner, [state] { Run(state); })) {
        return;
      }
      task = std::move(state->queue.front());
      state->queue.pop_front();
    }
    task();
  }
}

}  // namespace muster
