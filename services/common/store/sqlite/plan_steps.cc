#include "services/common/store/sqlite/plan_steps.h"

#include <algorithm>
#include <span>
#include <utility>

#include "services/common/store/sqlite/runs.h"

namespace muster::sqlite {

PlanSteps::PlanSteps(CreateRun command) : command_(std::move(command)) {
  SortPairs(command_.pairs);
}

std::optional<absl::StatusOr<CreateRun::Result>> PlanSteps::Next(WriteContext& context) {
  // Checked each time: another creation with its request id may have been applied in between.
  if (auto refused = CheckCreation(context, command_)) return refused;
  if (written_ == 0) {
    context.db.Run("INSERT INTO deleted_runs VALUES (?) ON CONFLICT DO NOTHING", command_.run.id);
  }
  const size_t count = std::min(kPairs, command_.pairs.size() - written_);
  planned_ +=
      InsertPairs(context.db, command_.run.id, std::span(command_.pairs).subspan(written_, count));
  written_ += count;
  if (written_ < command_.pairs.size()) return std::nullopt;
  context.db.Run("DELETE FROM deleted_runs WHERE run = ?", command_.run.id);
  return FinishCreation(context, command_, planned_);
}

}  // namespace muster::sqlite
