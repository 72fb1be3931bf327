// Work away from the thread that asks for it.
#ifndef MUSTER_SERVICES_COMMON_BASE_EXECUTOR_H_
#define MUSTER_SERVICES_COMMON_BASE_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"

namespace muster {

// A fixed number of threads that take tasks from one bounded queue. Thread-safe.
class Executor {
 public:
  using Task = absl::AnyInvocable<void()>;

  struct Options {
    std::string name = "worker";  // of its threads; the kernel keeps 15 bytes
    size_t threads = 2;
    size_t max_queue = 1024;  // tasks that wait for a thread
  };

  explicit Executor(Options options);

  // Takes no more tasks, runs those it accepted, and waits for them. Destroy it from outside its
  // tasks.
  ~Executor();

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Queues `task`. False, counted in refused(), when the queue is full or the executor drains; the
  // task is then dropped and the caller must answer for it.
  [[nodiscard]] bool Post(Task task);

  // Takes no more tasks and waits until the accepted ones have run. DEADLINE_EXCEEDED
  // (DRAIN_TIMEOUT) with their number if some have not after `limit`; they go on running. Not to
  // be called from a task.
  absl::Status Drain(absl::Duration limit);

  size_t queued() const;
  uint64_t refused() const;

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar work_;  // a task came, or the executor drains
  CondVar idle_;  // a task ended
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

// Runs its tasks one after another, in the order of Post, on the threads of an executor.
// Thread-safe, and cheap to copy: copies are the same strand. A strand may go away before its tasks
// have run; its executor must outlive every Post.
class Strand {
 public:
  // At most `max_queue` tasks wait at a time.
  Strand(Executor& executor, size_t max_queue);

  // As Executor::Post; false, counted by the executor or by this strand's refused(), when either
  // queue is full.
  [[nodiscard]] bool Post(Executor::Task task);

  uint64_t refused() const;

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_EXECUTOR_H_
