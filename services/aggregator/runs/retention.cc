#include "services/aggregator/runs/retention.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(10);
constexpr absl::Duration kShortestRest = absl::Milliseconds(100);
constexpr absl::Duration kRetry = absl::Minutes(1);  // after an error
constexpr absl::Duration kSampleAge = absl::Seconds(1);

}  // namespace

Retention::Retention(StateStore& store, Runs& runs, const RunReaders& readers, const Clock& clock,
                     TimerService& timers, Executor& executor, RetentionRules rules,
                     std::string actor, Metrics& metrics)
    : store_(store),
      runs_(runs),
      readers_(readers),
      clock_(clock),
      rules_(rules),
      actor_(std::move(actor)),
      deleted_runs_(metrics.AddCounter("muster_retention_deleted_runs_total",
                                       "Finished runs that retention deleted.")),
      deleted_bytes_(metrics.AddCounter("muster_retention_deleted_bytes_total",
                                        "Bytes of finished runs that retention deleted.")),
      task_(timers, executor, [this] { Run(); }) {
  metrics.AddSampledGauge("muster_finished_runs", "Runs that have ended and are stored.", [this] {
    return Sample(&FinishedTotals::runs, &FinishedTotals::pinned_runs);
  });
  metrics.AddSampledGauge(
      "muster_finished_run_bytes", "Bytes of the results and archives of finished runs.",
      [this] { return Sample(&FinishedTotals::bytes, &FinishedTotals::pinned_bytes); });
}

double Retention::Sample(int64_t FinishedTotals::* all, int64_t FinishedTotals::* pinned) {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.MonotonicNow();
  if (now - sampled_at_ >= kSampleAge) {
    sample_ = store_.CountFinishedRuns();
    sampled_at_ = now;
  }
  return sample_.ok() ? static_cast<double>(*sample_.*all + *sample_.*pinned)
                      : std::numeric_limits<double>::quiet_NaN();
}

void Retention::Start() {
  if (!rules_.KeepAll()) task_.RunAfter(kPeriod);
}

void Retention::Run() {
  const auto next = DeleteNext();
  if (!next.ok()) {
    Log(LogLevel::kError, "retention cannot delete a run and tries again",
        {{"error", next.status()}});
  }
  task_.RunAfter(next.ok() ? *next : kRetry);
}

// Deletes at most one run; returns the time until the next one.
absl::StatusOr<absl::Duration> Retention::DeleteNext() {
  const absl::Duration began = clock_.MonotonicNow();
  std::optional<ExpiredRun> due;
  const auto visited =
      VisitExpiredRuns(store_, rules_, clock_.Now(), [&](const ExpiredRun& expired) {
        if (IsInUse(expired.run.id)) return true;
        due = expired;
        return false;
      });
  RETURN_IF_ERROR(visited.status());
  if (!due) return kPeriod;
  const absl::Status deleted = runs_.Delete(due->run.id, actor_, due->rule);
  // An operator may have deleted or pinned it since.
  if (!absl::IsNotFound(deleted) && !absl::IsFailedPrecondition(deleted)) {
    RETURN_IF_ERROR(deleted);
    deleted_runs_.Add(1);
    deleted_bytes_.Add(static_cast<double>(due->run.bytes));
  }
  return std::max(kShortestRest, clock_.MonotonicNow() - began);
}

}  // namespace muster
