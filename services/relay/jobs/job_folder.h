// A job on the disk of the root relay. Its folder has two journals:
//
//   job       the request and its targets, the cancellation, and the end; which of these events the
//             audit log has
//   records   serialised JobRecords of the nodes
//
// The job exists as soon as its acceptance in `job` is durable.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_FOLDER_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/journal/journal.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/job_state.h"

namespace muster {

struct Cancellation {
  std::string by;  // URI
  absl::Time at;   // to the microsecond
};

// The events of a job that the audit log records, and those that it has already.
struct AuditState {
  std::string cancelled_by;  // URI; empty if the job was not cancelled
  absl::Time cancelled_at;   // to the microsecond
  bool has_submission = false;
  bool has_cancellation = false;

  // Returns whether the audit log has all of them.
  bool complete() const { return has_submission && (cancelled_by.empty() || has_cancellation); }
};

// The content of the journal `job`.
struct StoredJob {
  v1::SubmitJobRequest request;
  v1::Job job;  // as it was accepted, or as it ended
  std::vector<std::string> targets;
  bool cancelled = false;
  AuditState audit;
  bool ended = false;
  int64_t records_end = 0;             // the end of the records of a finished job
  std::vector<std::string> abandoned;  // at least those of MarkEnded
  bool reopened = false;               // it has late records, and was not ended again
};

// The writer of the journal `job`, while a job runs. After MarkEnded it writes nothing, and another
// writer may open the journal. Thread-safe; calls block on the disk.
class JobFolder {
 public:
  // Creates the folder. The job is durable then, with its cancellation if it has one, and `records`
  // is its open journal. After a failure no job is left that a later start would run, as far as the
  // disk permits.
  static absl::StatusOr<std::unique_ptr<JobFolder>> Create(
      FileOps& files, const std::string& path, const v1::SubmitJobRequest& request,
      const v1::Job& job, const std::vector<std::string>& targets, int64_t max_records,
      std::unique_ptr<Journal>* records, std::optional<Cancellation> cancellation = std::nullopt);

  // NOT_FOUND (JOB_UNFINISHED): its creation was interrupted or failed. DATA_LOSS (JOURNAL_DAMAGED,
  // JOB_DAMAGED).
  static absl::StatusOr<StoredJob> Read(FileOps& files, const std::string& path);
  static absl::StatusOr<std::unique_ptr<JobFolder>> Open(FileOps& files, const std::string& path);

  // Stores the cancellation and returns it; the first one if it was called before, even if that
  // call failed after it had written. Returns none after MarkEnded.
  absl::StatusOr<std::optional<Cancellation>> MarkCancelled(Cancellation cancellation);
  // The audit log has the record of the submission, or of the cancellation.
  absl::Status MarkAudited(bool cancellation);
  // The records of a finished job get late ones, until MarkEnded.
  absl::Status MarkReopened();
  // Withdraws a cancellation that was written, and whose MarkCancelled failed: its caller did not
  // cancel the job. `abandoned`: the nodes whose own outcome may arrive later; then the job is
  // opened and ended again. Their names are written again only if half of them are left, so Read
  // may return more. A repeated call writes only what a failed one did not.
  absl::Status MarkEnded(const v1::Job& job, int64_t records_end,
                         const std::vector<std::string>& abandoned = {});

 private:
  JobFolder(std::unique_ptr<Journal> journal, std::optional<Cancellation> stored,
            size_t abandoned = 0)
      : journal_(std::move(journal)),
        abandoned_(abandoned),
        cancellation_(std::move(stored)),
        cancellation_stored_(cancellation_.has_value()) {}
  absl::Status Append(std::string_view entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteAbandoned(const std::vector<std::string>& names)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The names that a failed call has written.
  struct WrittenNames {
    size_t count = 0;
    size_t hash = 0;
  };

  Mutex mutex_;
  const std::unique_ptr<Journal> journal_ ABSL_GUARDED_BY(mutex_);
  size_t abandoned_ ABSL_GUARDED_BY(mutex_);  // the number of names that Read would return
  std::optional<WrittenNames> names_ ABSL_GUARDED_BY(mutex_);  // those since the last end
  std::string end_entry_ ABSL_GUARDED_BY(mutex_);  // the written one, which may not be durable
  std::optional<Cancellation> cancellation_ ABSL_GUARDED_BY(mutex_);  // written by this object
  bool cancellation_stored_ ABSL_GUARDED_BY(mutex_) = false;          // MarkCancelled returned it
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

std::string RecordsPath(const std::string& folder);

// Opens the journal of records and passes each to `visit`.
absl::StatusOr<std::unique_ptr<Journal>> OpenRecords(
    FileOps& files, const std::string& folder, absl::FunctionRef<void(const v1::JobRecord&)> visit);

// Returns DATA_LOSS (JOB_DAMAGED) if `bytes` are no JobRecord.
absl::Status ParseRecord(std::string_view bytes, v1::JobRecord* record);

// Returns a job at its submission.
v1::Job NewJob(const JobRequest& request, const std::string& submitter, absl::Time now);
JobState::Plan PlanOf(const JobRequest& request, const v1::Job& job,
                      std::vector<std::string> targets, int64_t max_output);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_FOLDER_H_
