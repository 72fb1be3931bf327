#include "services/aggregator/runs/redelivery_wait.h"

#include <algorithm>

#include "services/aggregator/verify/store_cursor.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr int64_t kStepBytes = int64_t{4} << 20;  // between two looks at `stop`

}  // namespace

absl::StatusOr<absl::Duration> RedeliveryWait::Remaining(const RunRecord& run) {
  if (run.damaged == 0) return absl::ZeroDuration();
  return RemainingOfDamaged(run);
}

absl::StatusOr<absl::Duration> RedeliveryWait::RemainingOfDamaged(const RunRecord& run) {
  ASSIGN_OR_RETURN(const auto requested, store_.RequestedRedeliveries(run.id, "", 1));
  if (requested.items.empty()) return absl::ZeroDuration();
  const absl::Duration now = clock_.MonotonicNow();
  MutexLock lock(mutex_);
  const auto [end, added] = ends_.try_emplace(run.id, now + absl::Microseconds(run.seal_grace));
  return std::max(end->second - now, absl::ZeroDuration());
}

absl::StatusOr<absl::Duration> RedeliveryWait::Verify(const RunRecord& run, ReadFailures& failures,
                                                      const std::atomic<bool>& stop) {
  {
    MutexLock lock(mutex_);
    const auto end = ends_.find(run.id);
    if (end != ends_.end() && end->second <= clock_.MonotonicNow()) return absl::ZeroDuration();
  }
  StoreCursor cursor(store_, blobs_, clock_, actor_, run.id,
                     {.read_failures = &failures, .keep_declined = true});
  for (;;) {
    if (stop) return absl::CancelledError("the process stops");
    ASSIGN_OR_RETURN(const VerifyStep step, cursor.Step(kStepBytes));
    if (step.end) return RemainingOfDamaged(run);
  }
}

void RedeliveryWait::Forget(const std::string& run) {
  MutexLock lock(mutex_);
  ends_.erase(run);
}

}  // namespace muster
