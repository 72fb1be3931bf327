// Tasks of many owners on the threads of one executor, in turns.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_FAIR_STRAND_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_FAIR_STRAND_H_

#include <cstddef>
#include <memory>
#include <string>

#include "services/common/base/executor.h"

namespace muster {

// As Strand (base/executor.h), whose tasks have an owner: the threads are shared between owners in
// turn, so the number of uploads of one owner does not delay the others.
class FairStrand {
 public:
  // At most `max_queue` tasks wait at the same time.
  FairStrand(Executor& executor, std::string owner, size_t max_queue);

  // As Strand::Post.
  [[nodiscard]] bool Post(Executor::Task task);

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_FAIR_STRAND_H_
