// Tasks on shared threads: an executor runs them in parallel, a strand one after another.
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

// A fixed number of threads that run the tasks of one bounded queue. A process has few executors,
// each named after its work; its main object owns them (common/service/service_threads.h).
// Thread-safe.
class Executor {
 public:
  using Task = absl::AnyInvocable<void()>;

  struct Options {
    std::string name = "worker";  // of the threads; the kernel keeps 15 bytes
    size_t threads = 2;
    size_t max_queue = 1024;  // tasks that may wait for a thread
  };

  explicit Executor(Options options);

  // Refuses new tasks and waits until the accepted ones have run. Must not be called from a task.
  ~Executor();

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Queues `task`. Returns false, and increments refused(), if the queue is full or the executor
  // is draining. The task is then dropped, and the caller handles that.
  [[nodiscard]] bool Post(Task task);

  // Refuses new tasks and waits until the accepted ones have run. DEADLINE_EXCEEDED
  // (DRAIN_TIMEOUT), with the number of remaining tasks, if that takes longer than `limit`; those
  // continue to run. Must not be called from a task.
  absl::Status Drain(absl::Duration limit);

  // Waits until no task waits or runs. For tests, whose tasks a fake clock triggers.
  void AwaitIdle();

  size_t queued() const;
  uint64_t refused() const;

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar work_;  // a task was posted, or the executor drains
  CondVar idle_;  // a task ended
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

// Runs the tasks of one owner one after another, in the order of Post, on the threads of an
// executor. Thread-safe. Copies are cheap and refer to the same strand. A strand may be destroyed
// before its tasks have run; its executor must outlive each Post.
class Strand {
 public:
  // At most `max_queue` tasks wait at the same time.
  Strand(Executor& executor, size_t max_queue);

  // As Executor::Post. Returns false if either queue is full: the executor or this strand counts
  // the refusal.
  [[nodiscard]] bool Post(Executor::Task task);

  uint64_t refused() const;

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_EXECUTOR_H_
