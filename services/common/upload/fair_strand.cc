#include "services/common/upload/fair_strand.h"

#include <deque>
#include <map>
#include <utility>

#include "services/common/base/mutex.h"

namespace muster {

struct FairExecutor::State {
  explicit State(Executor& executor) : executor(executor) {}

  Executor& executor;
  Mutex mutex;
  // By owner; no queue is empty.
  std::map<std::string, std::deque<Executor::Task>, std::less<>> queues ABSL_GUARDED_BY(mutex);
  std::string last ABSL_GUARDED_BY(mutex);  // the owner of the last task
};

FairExecutor::FairExecutor(Executor& executor) : state_(std::make_shared<State>(executor)) {}

bool FairExecutor::Post(std::string_view owner, Executor::Task task) {
  MutexLock lock(state_->mutex);
  // One turn for each task. Under the lock, so that the turn finds the task.
  if (!state_->executor.Post([state = state_] { RunNext(*state); })) return false;
  auto queue = state_->queues.find(owner);
  if (queue == state_->queues.end()) {
    queue = state_->queues.try_emplace(std::string(owner)).first;
  }
  queue->second.push_back(std::move(task));
  return true;
}

bool FairExecutor::HasWaiting() const { return state_->executor.queued() > 0; }

void FairExecutor::RunNext(State& state) {
  Executor::Task task;
  {
    MutexLock lock(state.mutex);
    auto next = state.queues.upper_bound(state.last);
    if (next == state.queues.end()) next = state.queues.begin();
    state.last = next->first;
    task = std::move(next->second.front());
    next->second.pop_front();
    if (next->second.empty()) state.queues.erase(next);
  }
  task();
}

struct FairStrand::State {
  State(FairExecutor executor, std::string owner, size_t max_queue)
      : executor(std::move(executor)), owner(std::move(owner)), max_queue(max_queue) {}

  FairExecutor executor;
  const std::string owner;
  const size_t max_queue;
  Mutex mutex;
  std::deque<Executor::Task> queue ABSL_GUARDED_BY(mutex);
  bool scheduled ABSL_GUARDED_BY(mutex) = false;  // a Run is queued or running
};

FairStrand::FairStrand(FairExecutor executor, std::string owner, size_t max_queue)
    : state_(std::make_shared<State>(std::move(executor), std::move(owner), max_queue)) {}

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
      if (!first && state->executor.HasWaiting() &&
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
