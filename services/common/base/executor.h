// Tasks on shared threads: an executor runs them in parallel, a strand one after another.
#ifndef MUSTER_SERVICES_COMMON_BASE_EXECUTOR_H_
#define MUSTER_SERVICES_COMMON_BASE_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"

namespace muster {

// A fixed number of threads that run the tasks of one bounded queue. Tasks may have an owner;
// owners take turns, so the number of tasks of one does not delay the others. A process has few
// executors, each named after its work; its main object owns them
// (common/service/service_threads.h). Thread-safe.
class Executor {
 public:
  using Task = absl::AnyInvocable<void()>;

  struct Options {
    std::string name = "worker";  // of the threads; the kernel keeps 15 bytes
    size_t threads = 2;
    size_t max_queue = 1024;  // tasks that may wait for a thread; half of them of one owner
    // Tasks of one owner that run at the same time; 0: as many as there are threads.
    size_t threads_of_owner = 0;
  };

  explicit Executor(Options options);

  // Refuses new tasks and waits until the accepted ones have run. Must not be called from a task.
  ~Executor();

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Queues `task`. Returns false, and increments refused(), if the queue is full or the executor
  // is draining. The task is then dropped, and the caller handles that.
  [[nodiscard]] bool Post(Task task);

  // The same for a task of an owner: it also returns false if too many of the owner's tasks wait.
  // Tasks of one owner begin in the order of Post. The first task of an owner waits for at most
  // `threads_of_owner` tasks of each other owner, those that run included; so does each later one,
  // after the one before it has begun.
  [[nodiscard]] bool Post(std::string_view owner, Task task);

  // Refuses new tasks and waits until the accepted ones have run. DEADLINE_EXCEEDED
  // (DRAIN_TIMEOUT), with the number of remaining tasks, if that takes longer than `limit`; those
  // continue to run. Must not be called from a task.
  absl::Status Drain(absl::Duration limit);

  // Waits until no task waits or runs. For tests, whose tasks a fake clock triggers.
  void AwaitIdle();

  // The tasks that wait for a thread.
  size_t queued() const;
  uint64_t refused() const;

 private:
  struct Owner {
    std::deque<Task> waiting;
    // Its turns: never more than Options::threads_of_owner, never more queued than tasks wait, and
    // at least one while any waits.
    size_t queued = 0;
    size_t running = 0;
  };
  using Owners = std::map<std::string, Owner, std::less<>>;
  // One task, or the first of those that wait for an owner.
  struct Turn {
    Task task;
    Owners::iterator owner;  // the end: none
  };

  bool Accept(size_t waiting, size_t limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Task Begin(Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const size_t threads_of_owner_;
  mutable Mutex mutex_;
  CondVar work_;  // a task was posted, or the executor drains
  CondVar idle_;  // a task ended
  std::deque<Turn> queue_ ABSL_GUARDED_BY(mutex_);
  Owners owners_ ABSL_GUARDED_BY(mutex_);       // those with a turn
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // tasks
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
