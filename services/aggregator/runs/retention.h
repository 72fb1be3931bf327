// Deletes finished runs by rules, in the background.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_RETENTION_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_RETENTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/runs/retention_rules.h"
#include "services/aggregator/runs/run_readers.h"
#include "services/aggregator/runs/runs.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/store/state_store.h"

namespace muster {

// Deletes one run at a time, the longest ended first, as an operator's DeleteRun does, and rests as
// long as the deletion took. The due deletions follow from the store alone.
// A run with readers is deleted after them. Thread-safe.
class Retention {
 public:
  // `actor`: the URI in the audit log. `metrics` gets the number and the bytes of deleted runs, and
  // of the finished ones that remain.
  Retention(StateStore& store, Runs& runs, const RunReaders& readers, const Clock& clock,
            TimerService& timers, Executor& executor, RetentionRules rules, std::string actor,
            Metrics& metrics);

  void Start();
  void Stop() { task_.Stop(); }

  const RetentionRules& rules() const { return rules_; }
  bool IsInUse(const std::string& run) const { return readers_.Has(run); }

 private:
  void Run();
  absl::StatusOr<absl::Duration> DeleteNext();
  // Returns the sum of two totals. The gauges of one scrape share a count of all finished runs.
  double Sample(int64_t FinishedTotals::* all, int64_t FinishedTotals::* pinned)
      ABSL_LOCKS_EXCLUDED(mutex_);

  StateStore& store_;
  Runs& runs_;
  const RunReaders& readers_;
  const Clock& clock_;
  const RetentionRules rules_;
  const std::string actor_;
  const Counter deleted_runs_;
  const Counter deleted_bytes_;
  Mutex mutex_;
  absl::Duration sampled_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // monotonic
  absl::StatusOr<FinishedTotals> sample_ ABSL_GUARDED_BY(mutex_);
  ScheduledTask task_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_RETENTION_H_
