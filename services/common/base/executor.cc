#include "services/common/base/executor.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

// A strand releases its thread after this many tasks, so that strands share threads fairly.
constexpr int kStrandTurn = 16;

constexpr size_t kMaxThreadName = 15;

}  // namespace

Executor::Executor(Options options)
    : options_(std::move(options)),
      threads_of_owner_(options_.threads_of_owner == 0 ? std::max<size_t>(options_.threads, 1)
                                                       : options_.threads_of_owner) {
  for (size_t i = 0; i < std::max<size_t>(options_.threads, 1); ++i) {
    threads_.emplace_back([this] { Work(); });
    pthread_setname_np(threads_.back().native_handle(),
                       options_.name.substr(0, kMaxThreadName).c_str());
  }
}

Executor::~Executor() {
  Drain(absl::InfiniteDuration()).IgnoreError();  // without a limit it cannot fail
  for (std::thread& thread : threads_) thread.join();
}

bool Executor::Post(Task task) {
  {
    MutexLock lock(mutex_);
    if (!Accept(waiting_, options_.max_queue)) return false;
    queue_.push_back({std::move(task), owners_.end()});
  }
  work_.NotifyOne();
  return true;
}

bool Executor::Post(std::string_view owner, Task task) {
  {
    MutexLock lock(mutex_);
    auto it = owners_.find(owner);
    const size_t waiting = it == owners_.end() ? 0 : it->second.waiting.size();
    if (!Accept(waiting, (options_.max_queue + 1) / 2)) return false;
    if (it == owners_.end()) it = owners_.try_emplace(std::string(owner)).first;
    Owner& own = it->second;
    own.waiting.push_back(std::move(task));
    if (own.queued + own.running >= threads_of_owner_) return true;
    ++own.queued;
    queue_.push_back({nullptr, it});
  }
  work_.NotifyOne();
  return true;
}

bool Executor::Accept(size_t waiting, size_t limit) {
  if (draining_ || waiting_ >= options_.max_queue || waiting >= limit) {
    ++refused_;
    return false;
  }
  ++waiting_;
  return true;
}

Executor::Task Executor::Begin(Turn& turn) {
  --waiting_;
  ++running_;
  if (turn.owner == owners_.end()) return std::move(turn.task);
  Owner& own = turn.owner->second;
  --own.queued;
  ++own.running;
  Task task = std::move(own.waiting.front());
  own.waiting.pop_front();
  return task;
}

// The next turn of an owner is behind those of all others.
void Executor::End(const Turn& turn) {
  --running_;
  if (turn.owner == owners_.end()) return;
  Owner& own = turn.owner->second;
  --own.running;
  if (own.waiting.size() > own.queued) {
    ++own.queued;
    queue_.push_back({nullptr, turn.owner});
  } else if (own.queued + own.running == 0) {
    owners_.erase(turn.owner);
  }
}

absl::Status Executor::Drain(absl::Duration limit) {
  MutexLock lock(mutex_);
  draining_ = true;
  work_.NotifyAll();
  const auto drained = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queue_.empty() && running_ == 0;
  };
  if (limit == absl::InfiniteDuration()) {
    while (!drained()) idle_.Wait(mutex_);
  } else if (!idle_.WaitFor(mutex_, limit, drained)) {
    return errors::DrainTimeout(static_cast<int64_t>(waiting_ + running_), options_.name, limit);
  }
  return absl::OkStatus();
}

void Executor::AwaitIdle() {
  MutexLock lock(mutex_);
  while (!queue_.empty() || running_ != 0) idle_.Wait(mutex_);
}

size_t Executor::queued() const {
  MutexLock lock(mutex_);
  return waiting_;
}

uint64_t Executor::refused() const {
  MutexLock lock(mutex_);
  return refused_;
}

void Executor::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!draining_ && queue_.empty()) work_.Wait(mutex_);
    if (queue_.empty()) return;
    Turn turn = std::move(queue_.front());
    queue_.pop_front();
    Task task = Begin(turn);
    lock.Unlock();
    task();
    task = nullptr;  // destroys the captures outside the lock, before the task counts as ended
    lock.Lock();
    End(turn);
    idle_.NotifyAll();
  }
}

struct Strand::State {
  State(Executor& executor, size_t max_queue) : executor(executor), max_queue(max_queue) {}

  Executor& executor;
  const size_t max_queue;
  Mutex mutex;
  std::deque<Executor::Task> queue ABSL_GUARDED_BY(mutex);
  bool scheduled ABSL_GUARDED_BY(mutex) = false;  // a Run is queued or running
  uint64_t refused ABSL_GUARDED_BY(mutex) = 0;
};

Strand::Strand(Executor& executor, size_t max_queue)
    : state_(std::make_shared<State>(executor, max_queue)) {}

bool Strand::Post(Executor::Task task) {
  MutexLock lock(state_->mutex);
  if (state_->queue.size() >= state_->max_queue) {
    ++state_->refused;
    return false;
  }
  if (!state_->scheduled) {
    // Under the lock, so that a refusal cannot strand a task that another thread posts meanwhile.
    if (!state_->executor.Post([state = state_] { Run(state); })) return false;
    state_->scheduled = true;
  }
  state_->queue.push_back(std::move(task));
  return true;
}

uint64_t Strand::refused() const {
  MutexLock lock(state_->mutex);
  return state_->refused;
}

void Strand::Run(const std::shared_ptr<State>& state) {
  for (int turn = 1;; ++turn) {
    Executor::Task task;
    {
      MutexLock lock(state->mutex);
      if (state->queue.empty()) {
        state->scheduled = false;
        return;
      }
      // If the executor refuses, the strand keeps its thread.
      if (turn > kStrandTurn && state->executor.queued() > 0 &&
          state->executor.Post([state] { Run(state); })) {
        return;
      }
      task = std::move(state->queue.front());
      state->queue.pop_front();
    }
    task();
  }
}

}  // namespace muster
