// A plan that is too large for one transaction.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_PLAN_STEPS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_PLAN_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/feed.h"

namespace muster::sqlite {

// Writes a large plan in several transactions, so that others commit in between. Until the last one
// there is no run, so nobody sees its pairs; what a crash leaves of them is removed as the rows of
// a deleted run are. Only on the writer's thread.
class PlanSteps {
 public:
  // Pairs that one transaction writes: some 20 ms of work.
  static constexpr size_t kPairs = 4096;

  static bool IsLarge(const CreateRun& command) { return command.pairs.size() > kPairs; }

  explicit PlanSteps(CreateRun command);

  // Does the next part, in the transaction that the caller has begun. A value: that was the last
  // one, and is the answer. The caller commits, or drops this if either failed.
  std::optional<absl::StatusOr<CreateRun::Result>> Next(WriteContext& context);

 private:
  CreateRun command_;  // its pairs are in the order of the key
  size_t written_ = 0;
  int64_t planned_ = 0;  // without those that were named twice
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_PLAN_STEPS_H_
