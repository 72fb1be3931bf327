// Tasks of many owners on the threads of one executor, in turns.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_FAIR_STRAND_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_FAIR_STRAND_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "services/common/base/executor.h"

namespace muster {

// Shares the threads of an executor between owners: a free thread runs a task of the next owner, in
// turn. So the number of uploads of one owner does not delay the others. Thread-safe. Copies are
// cheap and refer to the same queues. May be destroyed before its tasks have run; the executor must
// outlive each Post.
class FairExecutor {
 public:
  explicit FairExecutor(Executor& executor);

  // As Executor::Post.
  [[nodiscard]] bool Post(std::string_view owner, Executor::Task task);

  // Returns whether tasks wait for a thread, also others than those of this object.
  bool HasWaiting() const;

 private:
  struct State;
  static void RunNext(State& state);

  std::shared_ptr<State> state_;
};

// As Strand (base/executor.h), with an owner.
class FairStrand {
 public:
  // At most `max_queue` tasks wait at the same time.
  FairStrand(FairExecutor executor, std::string owner, size_t max_queue);

  // As Strand::Post.
  [[nodiscard]] bool Post(Executor::Task task);

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_FAIR_STRAND_H_
