#include "services/agent/jobs/cancelled_jobs.h"

#include <algorithm>

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

// An entry is "JOB SECONDS".
absl::Status CancelledJobs::Read(std::string_view entry) {
  ++entries_;
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(entry), ' ');
  int64_t seconds = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &seconds)) return absl::OkStatus();
  Insert(parts[0], absl::FromUnixSeconds(seconds), CancelledBeforeStart());
  return absl::OkStatus();
}

bool CancelledJobs::Insert(const std::string& job, absl::Time time, v1::JobRecord final) {
  const absl::Duration keep = kCommandValidity + kMargin;
  Cancel cancel{time, KeepUntil(time + keep, keep, clock_), std::move(final)};
  if (!jobs_.try_emplace(job, std::move(cancel)).second) return false;
  order_.push_back(job);
  if (order_.size() > max_jobs_) DropOldest();
  return true;
}

void CancelledJobs::DropOldest() {
  jobs_.erase(order_.front());
  std::erase(unstored_, order_.front());
  order_.pop_front();
}

absl::Status CancelledJobs::Add(const std::string& job, v1::JobRecord final) {
  const bool is_stored = !Insert(job, clock_.Now(), std::move(final)) &&
                         std::ranges::find(unstored_, job) == unstored_.end();
  if (is_stored) return absl::OkStatus();
  std::erase(unstored_, job);
  const absl::Status status = Store(job);
  if (!status.ok()) unstored_.push_back(job);
  return status;
}

absl::Status CancelledJobs::StoreRest(std::vector<std::string>* stored) {
  while (!unstored_.empty()) {
    RETURN_IF_ERROR(Store(unstored_.front()));
    stored->push_back(std::move(unstored_.front()));
    unstored_.pop_front();
  }
  return absl::OkStatus();
}

void CancelledJobs::Forget() {
  while (!order_.empty() && jobs_.at(order_.front()).keep.IsOver(clock_)) DropOldest();
}

absl::Status CancelledJobs::Append(Journal& journal, const std::string& job) const {
  return journal.Append(absl::StrCat(job, " ", absl::ToUnixSeconds(jobs_.at(job).time)));
}

absl::Status CancelledJobs::Store(const std::string& job) {
  if (journal_ == nullptr || entries_ >= 2 * max_jobs_) return Rewrite();
  RETURN_IF_ERROR(Append(*journal_, job));
  ++entries_;
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
  entries_ = status.ok() ? order_.size() : 2 * max_jobs_;  // else the next call tries again
  return status;
}

}  // namespace muster
