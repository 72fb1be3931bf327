#include "services/relay/jobs/late_jobs.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "services/common/base/log.h"

namespace muster {
namespace {

// How long an open job waits for the next record, and in all, and how many are open at a time: each
// is read from the disk. A node that sends a byte now and then must not keep others waiting.
constexpr absl::Duration kLateIdle = absl::Seconds(10);
constexpr absl::Duration kLateInAll = absl::Minutes(10);
constexpr size_t kMaxLate = 4;
// How often one job is opened: 100 times, and once more each minute.
constexpr TokenBuckets::Rate kOpenings = {.per_second = 1.0 / 60, .burst = 100};
// The records of a job that are kept while it is opened. A node sends as many before an ack.
constexpr int64_t kMaxHeld = int64_t{4} << 20;

void LogRefused(const v1::JobRecord& record, const absl::Status& why) {
  LogLimited(LogLevel::kWarning, "a late record of a job is not accepted", record.node(),
             {{"job", record.job()}, {"node", record.node()}, {"error", why}});
}

}  // namespace

LateJobs::LateJobs(Parts parts)
    : parts_(std::move(parts)), task_(parts_.timers, parts_.executor, [this] { OpenAll(); }) {}

bool LateJobs::Hold(const v1::JobRecord& record) {
  const auto folder = parts_.table.FindAbandoned(record.job(), record.node());
  if (!folder) return false;
  MutexLock lock(mutex_);
  auto found = jobs_.find(record.job());
  if (found == jobs_.end()) {
    if (const absl::Status may_open = MayOpen(record); !may_open.ok()) {
      LogRefused(record, may_open);
      return true;
    }
    found = jobs_.emplace(record.job(), Job{.opened_by = record.node(), .folder = *folder}).first;
    task_.RunNow();
  }
  Job& job = found->second;
  const auto bytes = static_cast<int64_t>(record.ByteSizeLong());
  if (!job.is_open && bytes <= kMaxHeld - job.held_bytes) {
    *job.held.add_records() = record;
    job.held_bytes += bytes;
  }
  return true;
}

absl::Status LateJobs::MayOpen(const v1::JobRecord& record) {
  if (jobs_.size() >= kMaxLate) return absl::UnavailableError("too many jobs are open");
  const bool opened_another = std::ranges::any_of(
      jobs_, [&](const auto& job) { return job.second.opened_by == record.node(); });
  if (opened_another) return absl::UnavailableError("another job is open for this node");
  const absl::Duration wait = openings_.Take(record.job(), kOpenings, parts_.clock.MonotonicNow());
  return wait > absl::ZeroDuration() ? absl::UnavailableError("the job was opened too often")
                                     : absl::OkStatus();
}

void LateJobs::OpenAll() {
  for (;;) {
    std::optional<std::pair<std::string, std::string>> next;
    {
      MutexLock lock(mutex_);
      for (const auto& [id, job] : jobs_) {
        if (!job.is_open) next.emplace(id, job.folder);
      }
    }
    if (!next) return;
    Open(next->first, next->second);
  }
}

void LateJobs::Open(const std::string& id, const std::string& folder) {
  const absl::Status opened = parts_.reopen(id, folder);
  v1::JobRecords held;
  {
    MutexLock lock(mutex_);
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return;  // nothing was missing: it has ended again
    held = std::move(found->second.held);
    found->second.is_open = true;
    found->second.record_at = found->second.opened_at = parts_.clock.MonotonicNow();
    if (!opened.ok()) jobs_.erase(found);
  }
  if (opened.ok()) return parts_.inbox.Add({std::move(held), [] {}});
  LogRefused(held.records(0), opened);
  if (absl::IsDataLoss(opened)) parts_.table.ForgetAbandoned(id);
}

void LateJobs::NoteRecord(const std::string& job) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) found->second.record_at = parts_.clock.MonotonicNow();
}

bool LateJobs::Awaits(const std::string& job) const {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return false;
  const Job& open = found->second;
  return !open.is_open || parts_.clock.MonotonicNow() <
                              std::min(open.record_at + kLateIdle, open.opened_at + kLateInAll);
}

void LateJobs::Remove(const std::string& job) {
  MutexLock lock(mutex_);
  jobs_.erase(job);
}

}  // namespace muster
