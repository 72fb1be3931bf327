// The rules by which finished runs are deleted.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_RETENTION_RULES_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_RETENTION_RULES_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/store/state_store.h"

namespace muster {

// Each rule deletes the runs that ended first; 0: no such rule. Pinned runs do not count.
struct RetentionRules {
  absl::Duration age;  // since the end of a run
  int64_t runs = 0;
  int64_t bytes = 0;

  bool KeepAll() const { return age == absl::ZeroDuration() && runs == 0 && bytes == 0; }
};

struct ExpiredRun {
  FinishedRun run;
  std::string rule;  // the first that does not keep it, such as "age=30d"
};

// Calls `visit` with each run that the rules do not keep at `now`, in the order of their ends,
// until it returns false. Returns the totals at the beginning.
absl::StatusOr<FinishedTotals> VisitExpiredRuns(
    StateStore& store, const RetentionRules& rules, absl::Time now,
    absl::FunctionRef<bool(const ExpiredRun& run)> visit);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_RETENTION_RULES_H_
