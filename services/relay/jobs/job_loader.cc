#include "services/relay/jobs/job_loader.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/journal/journal.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/job_state.h"

namespace muster {
namespace {

absl::StatusOr<JobContent> ReadContent(FileOps& files, StoredJob stored, const std::string& folder,
                                       int64_t max_output) {
  ASSIGN_OR_RETURN(auto request, ReadJobRequest(std::move(stored.request)));
  JobState state(PlanOf(request, stored.job, std::move(stored.targets), max_output));
  ASSIGN_OR_RETURN(auto log, OpenRecords(files, folder, [&](const v1::JobRecord& record) {
                     state.Replay(record);
                   }));
  if (stored.cancelled) state.SetCancelled();
  state.SetResumed();
  return JobContent{std::move(request), std::move(state), std::move(log), stored.reopened};
}

absl::StatusOr<std::shared_ptr<RunningJob>> OpenContent(FileOps& files, JobContent content,
                                                        const std::string& folder,
                                                        const RunningJob::Fleet& fleet,
                                                        bool is_late) {
  ASSIGN_OR_RETURN(auto job_folder, JobFolder::Open(files, folder));
  return std::make_shared<RunningJob>(fleet, std::move(content.request), std::move(content.state),
                                      std::move(job_folder), std::move(content.log), is_late,
                                      content.reopened);
}

class Loader {
 public:
  Loader(FileOps& files, int64_t max_output, const RunningJob::Fleet& fleet, JobTable& table)
      : files_(files), max_output_(max_output), fleet_(fleet), table_(table) {}

  absl::Status Load(const std::string& id, const std::string& folder) {
    auto stored = JobFolder::Read(files_, folder);
    if (absl::IsNotFound(stored.status())) return RemoveTree(files_, folder);
    if (!stored.ok()) return stored.status();
    JobTable::Entry entry;
    entry.folder = folder;
    entry.job = stored->job;
    entry.end = stored->records_end;
    entry.audit = stored->audit;
    entry.abandoned = JobTable::SetOf(stored->abandoned);
    const bool ended = stored->ended;
    std::shared_ptr<RunningJob> late;
    if (ended && stored->reopened) {
      ASSIGN_OR_RETURN(late, ReopenUnlessDamaged(id, folder));
    }
    if (ended) {
      // It was removed, and the audit log lacks its records (JobTable).
      entry.has_output = !absl::IsNotFound(files_.Stat(RecordsPath(folder)).status());
      CancelAbandoned(*std::move(stored), folder);
    } else {
      ASSIGN_OR_RETURN(auto content, ReadContent(files_, *std::move(stored), folder, max_output_));
      ASSIGN_OR_RETURN(entry.running,
                       OpenContent(files_, std::move(content), folder, fleet_, /*is_late=*/false));
    }
    const auto running = entry.running;
    table_.Insert(id, std::move(entry));
    if (late != nullptr) table_.Reopen(id, std::move(late));
    if (running != nullptr) running->Continue();
    return absl::OkStatus();
  }

 private:
  // An earlier process had opened it again, and did not end it. Returns null if its records are
  // damaged. After another failure the job is left out, because watchers have seen these records.
  absl::StatusOr<std::shared_ptr<RunningJob>> ReopenUnlessDamaged(const std::string& id,
                                                                  const std::string& folder) {
    auto late = Reopen(folder);
    if (!absl::IsDataLoss(late.status())) return late;
    Log(LogLevel::kError, "the late records of a job cannot be read",
        {{"job", id}, {"error", late.status()}});
    return nullptr;
  }

  absl::StatusOr<std::shared_ptr<RunningJob>> Reopen(const std::string& folder) {
    ASSIGN_OR_RETURN(auto late, LateJob::Read(files_, folder, max_output_));
    return std::move(late).Open(files_, fleet_);
  }

  // A finished job may still run on nodes that the root relay gave up.
  void CancelAbandoned(StoredJob stored, const std::string& folder) {
    const absl::Duration left = FromProto(stored.job.deadline()) - fleet_.clock.Now();
    if (left < absl::ZeroDuration()) return;
    auto request = ReadJobRequest(std::move(stored.request));
    if (!request.ok()) return;
    JobState state(PlanOf(*request, stored.job, std::move(stored.targets), max_output_));
    v1::JobRecord record;
    const auto read =
        Journal::Read(files_, RecordsPath(folder), [&](std::string_view bytes, int64_t) {
          RETURN_IF_ERROR(ParseRecord(bytes, &record));
          state.Replay(record);
          return absl::OkStatus();
        });
    // Without them every target may still run it.
    if (!read.ok() && !absl::IsNotFound(read.status())) {
      Log(LogLevel::kError, "the records of a finished job cannot be read",
          {{"job", stored.job.job()}, {"error", read.status()}});
    }
    fleet_.dispatcher.Withdraw(stored.job.job(), state.Abandoned(), left);
  }

  FileOps& files_;
  const int64_t max_output_;
  const RunningJob::Fleet& fleet_;
  JobTable& table_;
};

}  // namespace

absl::StatusOr<LateJob> LateJob::Read(FileOps& files, const std::string& folder,
                                      int64_t max_output) {
  ASSIGN_OR_RETURN(auto stored, JobFolder::Read(files, folder));
  ASSIGN_OR_RETURN(auto content, ReadContent(files, std::move(stored), folder, max_output));
  return LateJob(folder, std::move(content));
}

absl::StatusOr<std::shared_ptr<RunningJob>> LateJob::Open(FileOps& files,
                                                          const RunningJob::Fleet& fleet) && {
  return OpenContent(files, std::move(content_), folder_, fleet, /*is_late=*/true);
}

absl::Status LoadJobs(FileOps& files, const std::string& folder, int64_t max_output,
                      const RunningJob::Fleet& fleet, JobTable& table) {
  RETURN_IF_ERROR(MakeFolders(files, folder));
  ASSIGN_OR_RETURN(const auto listed, files.List(folder));
  Loader loader(files, max_output, fleet, table);
  for (const FolderEntry& entry : listed) {
    if (entry.type != FileType::kFolder) continue;
    const std::string& id = entry.name;
    if (absl::Status s = loader.Load(id, absl::StrCat(folder, "/", id)); !s.ok()) {
      Log(LogLevel::kError, "a job cannot be read and is not loaded", {{"job", id}, {"error", s}});
      // The next start may read it.
      if (!absl::IsDataLoss(s)) table.AddUnread(id);
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
