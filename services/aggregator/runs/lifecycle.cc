#include "services/aggregator/runs/lifecycle.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(5);
// The interval at which a run checks the progress of uploads that it waits for.
constexpr absl::Duration kUploadCheck = absl::Seconds(5);
// The longest timer, because wall clocks can jump.
constexpr absl::Duration kLongestWait = absl::Minutes(1);
constexpr absl::Duration kNever = absl::InfiniteDuration();

constexpr char kTimedOut[] = "timeout: the run's deadline passed before a result arrived";

}  // namespace

absl::Status Lifecycle::Start(std::function<absl::Duration(const std::string&)> seal) {
  seal_ = std::move(seal);
  return ReviewAll();
}

absl::Status Lifecycle::ReviewAll() {
  ASSIGN_OR_RETURN(const auto runs, store_.LiveRuns());
  for (const RunView& view : runs) ReviewSoon(view.run.id);
  return absl::OkStatus();
}

void Lifecycle::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  for (const auto& [run, waiting] : waiting_) timers_.Cancel(waiting.timer);
  waiting_.clear();
}

void Lifecycle::ReviewAfter(const std::string& run, absl::Duration delay) {
  delay = std::min(delay, kLongestWait);
  const absl::Duration due = clock_.MonotonicNow() + delay;
  MutexLock lock(mutex_);
  if (stopped_) return;
  if (const auto it = waiting_.find(run); it != waiting_.end()) {
    // A change may have asked for it during a review that read the state before the change.
    if (it->second.due <= due) return;
    timers_.Cancel(it->second.timer);
  }
  Waiting& next = waiting_[run];
  next.due = due;
  next.timer = timers_.ScheduleAlways(delay, [weak = weak_from_this(), run, due] {
    if (const auto self = weak.lock()) self->PostReview(run, due);
  });
}

// The timer that was due then has expired.
void Lifecycle::PostReview(const std::string& run, absl::Duration due) {
  {
    MutexLock lock(mutex_);
    const auto it = waiting_.find(run);
    if (it != waiting_.end() && it->second.due == due) waiting_.erase(it);
  }
  if (!executor_.Post([self = shared_from_this(), run] { self->Review(run); })) {
    ReviewAfter(run, kRetry);
  }
}

void Lifecycle::Review(const std::string& run) {
  const auto view = store_.GetRun(run);
  absl::StatusOr<absl::Duration> next = kNever;
  if (!view.ok()) {
    next = view.status();
  } else if (*view) {
    next = DoWhatIsDue(**view, absl::ToUnixMicros(clock_.Now()));
  }
  if (!next.ok()) {
    Log(LogLevel::kError, "cannot advance a run", {{"run", run}, {"error", next.status()}});
    next = kRetry;
  }
  if (*next != kNever) ReviewAfter(run, *next);
}

absl::StatusOr<absl::Duration> Lifecycle::DoWhatIsDue(const RunView& view, int64_t now) {
  const RunRecord& run = view.run;
  switch (run.state) {
    case RunState::kPlanned:
    case RunState::kRunning: {
      if (now < run.deadline_at) return absl::Microseconds(run.deadline_at - now);
      ASSIGN_OR_RETURN(const auto outcome,
                       store_.ApplyAndWait(TimeOutRun{run.id, kTimedOut, now, actor_}));
      Log(LogLevel::kWarning, "deadline passed",
          {{"run", run.id}, {"timed_out", outcome.timed_out}});
      return absl::ZeroDuration();
    }
    case RunState::kPostProcessing:
      return SealWhenSettled(run, now);
    case RunState::kComplete:
    case RunState::kFailed:
    case RunState::kCancelled:
      return AfterTheEnd(run, now);
  }
  return kNever;
}

// Waits for timed-out pairs and for damaged results that are requested again, within the grace.
absl::StatusOr<absl::Duration> Lifecycle::SealWhenSettled(const RunRecord& run, int64_t now) {
  if (run.timed_out > 0) {
    const int64_t seal_at = SealGraceEnd(run);
    if (now < seal_at) return absl::Microseconds(seal_at - now);
    // A lost sender that is delivering has time until the end of the grace after the deadline.
    const bool in_time = now < run.deadline_at + run.seal_grace;
    if (in_time && uploads_.Receives(run.id)) return kUploadCheck;
  }
  ASSIGN_OR_RETURN(const absl::Duration redelivery, redeliveries_.Remaining(run));
  if (redelivery > absl::ZeroDuration()) return redelivery;
  const absl::Duration wait = seal_(run.id);
  return wait > absl::ZeroDuration() ? wait : kNever;
}

absl::StatusOr<absl::Duration> Lifecycle::AfterTheEnd(const RunRecord& run, int64_t now) {
  redeliveries_.Forget(run.id);
  if (run.state != RunState::kComplete) {
    uploads_.EndRun(run.id, errors::RunCancelled(run.id));
  } else if (run.damaged == 0) {
    uploads_.EndRun(run.id, errors::RunSealed(run.id));
  } else {
    // Damaged results may be delivered again. Others were opened while the archive was built.
    RETURN_IF_ERROR(uploads_.EndUnawaited(run.id, errors::RunSealed(run.id)));
  }
  const int64_t wipe_at = run.ended_at + absl::ToInt64Microseconds(kAuthorityAfterEnd);
  if (now < wipe_at) return absl::Microseconds(wipe_at - now);
  ASSIGN_OR_RETURN(const auto outcome, store_.ApplyAndWait(WipeAuthority{run.id, now}));
  if (outcome.changed) {
    Log(LogLevel::kInfo, "the run CA was deleted, with its credentials and its listener",
        {{"run", run.id}});
  }
  return kNever;
}

}  // namespace muster
