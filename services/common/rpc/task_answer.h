// The answers to calls of a task.
#ifndef MUSTER_SERVICES_COMMON_RPC_TASK_ANSWER_H_
#define MUSTER_SERVICES_COMMON_RPC_TASK_ANSWER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"

namespace muster {

// Passes the answer to the task, which runs then. The call owns a share of this object: an answer
// that arrives after the end of the task is dropped. Thread-safe.
template <typename Value>
class TaskAnswer {
 public:
  // Sets the task that runs after an answer; null: it ends, and runs for none any more.
  void SetTask(ScheduledTask* task) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    task_ = task;
  }

  void Set(Value value) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    value_ = std::move(value);
    if (task_ != nullptr) task_->RunNow();
  }

  // Returns the answer once; nothing before it has arrived.
  std::optional<Value> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return std::exchange(value_, std::nullopt);
  }

 private:
  Mutex mutex_;
  ScheduledTask* task_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<Value> value_ ABSL_GUARDED_BY(mutex_);
};

// Collects the answers to calls that a task makes at the same time, and passes them on together,
// in the order of their arrival. Each of the calls owns a share of this object. Thread-safe.
template <typename Value>
class AnswerBatch {
 public:
  using Answer = TaskAnswer<std::vector<Value>>;

  // `count`: the calls, at least one.
  AnswerBatch(size_t count, std::shared_ptr<Answer> answer)
      : count_(count), answer_(std::move(answer)) {}

  void Add(Value value) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<Value> all;
    {
      MutexLock lock(mutex_);
      values_.push_back(std::move(value));
      if (values_.size() < count_) return;
      all = std::move(values_);
    }
    answer_->Set(std::move(all));
  }

 private:
  const size_t count_;
  const std::shared_ptr<Answer> answer_;
  Mutex mutex_;
  std::vector<Value> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_TASK_ANSWER_H_
