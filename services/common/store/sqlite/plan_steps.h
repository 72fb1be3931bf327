// Creates a run whose plan is too large for one transaction.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_PLAN_STEPS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_PLAN_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/feed.h"

namespace muster::sqlite {

// Writes a large plan in several transactions, so that others commit in between. The run exists
// only after the last one, so its pairs are invisible before. After a crash they are removed like
// the rows of a deleted run. Only for the writer's thread.
class PlanSteps {
 public:
  // The pairs of one transaction, about 20 ms of work.
  static constexpr size_t kPairs = 4096;

  static bool IsLarge(const CreateRun& command) { return command.pairs.size() > kPairs; }

  explicit PlanSteps(CreateRun command);

  // Writes the next part in the transaction that the caller has begun. Returns a value after the
  // last part. The caller commits; after a failure it destroys this object.
  std::optional<absl::StatusOr<CreateRun::Result>> Next(WriteContext& context);

 private:
  CreateRun command_;  // its pairs are sorted by key
  size_t written_ = 0;
  int64_t planned_ = 0;  // without duplicates
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_PLAN_STEPS_H_
