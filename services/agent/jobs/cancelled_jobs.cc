#include "services/agent/jobs/cancelled_jobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/identity/command_authority.h"

namespace muster {
namespace {

// A command was signed before its cancel, so its certificate expires within kCommandValidity. The
// margin is for clocks that differ.
constexpr absl::Duration kMargin = absl::Hours(1);

constexpr JournalOptions kOptions = {.max_record = 256, .max_size = int64_t{1} << 20};

}  // namespace

absl::StatusOr<std::unique_ptr<CancelledJobs>> CancelledJobs::Open(FileOps& ops,
                                                                   const std::string& path,
                                                                   const Clock& clock,
                                                                   size_t max_jobs) {
  std::unique_ptr<CancelledJobs> jobs(new CancelledJobs(ops, path, clock, max_jobs));
  auto journal =
      Journal::Open(ops, path, [&](std::string_view entry, int64_t) { return jobs->Read(entry); });
  if (absl::IsDataLoss(journal.status())) {
    Log(LogLevel::kError, "the list of cancelled jobs is damaged; the rest of it is dropped",
        {{"kept", jobs->jobs_.size()}, {"error", journal.status()}});
    RETURN_IF_ERROR(ops.Rename(path, path + ".damaged"));
  } else if (!journal.ok() && !absl::IsNotFound(journal.status())) {
    return journal.status();
  }
  if (journal.ok()) {
    jobs->journal_ = *std::move(journal);
  } else if (const absl::Status s = jobs->Rewrite(); !s.ok()) {
    // A full disk does not prevent the start. The next cancel tries again.
    Log(LogLevel::kError, "the list of cancelled jobs cannot be created", {{"error", s}});
  }
  return jobs;
}

// An entry is "JOB SECONDS OUTCOME REASON", or "JOB SECONDS" of a cancelled job.
absl::Status CancelledJobs::Read(std::string_view entry) {
  ++entries_;
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(entry), ' ');
  int64_t seconds = 0;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[1], &seconds)) return absl::OkStatus();
  v1::JobRecord final = CancelledBeforeStart();
  if (int outcome = 0; parts.size() == 4 && absl::SimpleAtoi(parts[2], &outcome)) {
    final = FinalRecord(static_cast<v1::JobOutcome>(outcome), parts[3],
                        "it had not started; the agent has restarted since");
  }
  Insert(parts[0], absl::FromUnixSeconds(seconds), std::move(final), /*stored=*/true);
  // The journal has more jobs than there may be only if the first ones were forgotten.
  if (order_.size() > max_jobs_) DropOldest();
  return absl::OkStatus();
}

bool CancelledJobs::Insert(const std::string& job, absl::Time time, v1::JobRecord final,
                           bool stored) {
  const absl::Duration keep = kCommandValidity + kMargin;
  Cancel cancel{time, KeepUntil(time + keep, keep, clock_), std::move(final), stored};
  if (!jobs_.try_emplace(job, std::move(cancel)).second) return false;
  order_.push_back(job);
  return true;
}

void CancelledJobs::DropOldest() {
  const std::string& job = order_.front();
  if (!jobs_.at(job).stored) {
    unstored_.pop_front();
    if (written_ > 0) --written_;
  }
  jobs_.erase(job);
  order_.pop_front();
}

// A node that restarts each day keeps all jobs. Drops those that expired before the latest verified
// command was signed, which does not depend on the present clock.
void CancelledJobs::DropOld() {
  // Jobs that were added since then are not older. A peer may add any number to a full list.
  if (std::exchange(dropped_before_, signed_) == signed_) return;
  const size_t dropped = std::erase_if(order_, [this](const std::string& job) {
    const auto cancel = jobs_.find(job);
    if (!cancel->second.stored || cancel->second.keep.until() >= signed_) return false;
    jobs_.erase(cancel);
    return true;
  });
  // The next Store removes them from the journal, too: they need not be the first ones.
  if (dropped > 0) entries_ = std::max(entries_, 2 * max_jobs_);
}

bool CancelledJobs::Add(const std::string& job, v1::JobRecord final) {
  if (Contains(job)) return true;
  if (order_.size() >= max_jobs_) DropOld();
  if (order_.size() >= max_jobs_) return false;
  Insert(job, clock_.Now(), std::move(final), /*stored=*/false);
  unstored_.push_back(job);
  return true;
}

absl::Status CancelledJobs::Store(std::vector<std::string>* stored) {
  if (unstored_.empty()) return absl::OkStatus();
  const bool rewrite = journal_ == nullptr || entries_ + unstored_.size() > 2 * max_jobs_;
  RETURN_IF_ERROR(rewrite ? Rewrite() : AppendUnstored());
  for (std::string& job : unstored_) {
    jobs_.at(job).stored = true;
    stored->push_back(std::move(job));
  }
  unstored_.clear();
  written_ = 0;
  return absl::OkStatus();
}

void CancelledJobs::Forget() {
  while (!order_.empty() && jobs_.at(order_.front()).keep.IsOver(clock_)) DropOldest();
}

absl::Status CancelledJobs::Append(Journal& journal, const std::string& job) const {
  const Cancel& cancel = jobs_.at(job);
  std::string entry = absl::StrCat(job, " ", absl::ToUnixSeconds(cancel.time));
  const v1::JobRecord::Final& final = cancel.final.final();
  if (final.outcome() != v1::JOB_OUTCOME_CANCELLED) {
    absl::StrAppend(&entry, " ", static_cast<int>(final.outcome()), " ", final.reason());
  }
  return journal.Append(entry);
}

absl::Status CancelledJobs::AppendUnstored() {
  for (; written_ < unstored_.size(); ++written_, ++entries_) {
    RETURN_IF_ERROR(Append(*journal_, unstored_[written_]));
  }
  return journal_->Sync();
}

// Replaces the journal by one without the jobs that were dropped.
absl::Status CancelledJobs::Rewrite() {
  const std::string path = path_ + ".new";
  const absl::Status removed = ops_.Remove(path);
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  ASSIGN_OR_RETURN(auto journal, Journal::Create(ops_, path, kOptions));
  for (const std::string& job : order_) RETURN_IF_ERROR(Append(*journal, job));
  RETURN_IF_ERROR(journal->Sync());
  RETURN_IF_ERROR(ops_.Rename(path, path_));
  journal_ = std::move(journal);
  absl::Status status = ops_.SyncFolder(ParentFolder(path_));
  written_ = 0;
  entries_ = status.ok() ? order_.size() : 2 * max_jobs_;  // else the next call tries again
  return status;
}

}  // namespace muster
