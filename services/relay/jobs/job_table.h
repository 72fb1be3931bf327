// All jobs of the fleet, running and finished.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_TABLE_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/mutex.h"
#include "services/relay/jobs/abandoned_nodes.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/jobs/running_job.h"

namespace muster {

// Every job is in the index by id and in the order of submission, and is either running or
// finished. A finished job past the limits whose audit records are missing loses its output: Find
// and List omit it then. Thread-safe. It calls `is_kept` of RemoveOld with its lock
// held, and nothing else.
class JobTable {
 public:
  struct Limits {
    int64_t max_running = 0;
    absl::Duration retention;  // of finished jobs
    int64_t max_kept = 0;      // jobs with output, beyond which finished ones are removed
    // Jobs with and without output, beyond which those without are removed.
    int64_t max_unaudited = 0;
  };
  struct Entry {
    std::string folder;
    v1::Job job;                          // as submitted; as it ended if it is finished
    std::shared_ptr<RunningJob> running;  // null if it is finished
    int64_t end = 0;                      // of the records of a finished job
    bool has_output = true;               // false: only its audit records are missing
    // The nodes of a finished job whose own outcome may arrive later; null: none.
    std::shared_ptr<const AbandonedNodes> abandoned;
    AuditState audit;

    // Returns the job as it is now.
    v1::Job Describe() const { return running == nullptr ? job : running->Describe(); }
  };

  // The jobs whose files RemoveOld makes superfluous.
  struct Old {
    std::vector<Entry> removed;
    std::vector<Entry> without_output;  // wait for the audit log
  };

  explicit JobTable(Limits limits) : limits_(limits) {}

  // Reserves the id of a job that is being created, until Insert or Abandon. One submitter has at
  // most half of the running jobs, so it does not refuse those of others. RESOURCE_EXHAUSTED
  // (TOO_MANY_JOBS), ALREADY_EXISTS (JOB_EXISTS), UNAVAILABLE (JOB_IN_CREATION) while it is
  // reserved, also by AddUnread.
  absl::Status Reserve(const std::string& id, const std::string& submitter);
  void Abandon(const std::string& id);
  void Insert(const std::string& id, Entry entry);

  // Adds a stored job that could not be read this time. Its id stays reserved, and the records of
  // its nodes must not be acked.
  void AddUnread(const std::string& id);
  bool IsUnread(const std::string& id) const;

  // Returns a copy. NOT_FOUND (JOB_NOT_FOUND).
  absl::StatusOr<Entry> Find(const std::string& id) const;
  // The same, also for a job without output.
  absl::StatusOr<Entry> FindStored(const std::string& id) const;
  static std::shared_ptr<const AbandonedNodes> SetOf(const std::vector<std::string>& names) {
    return names.empty() ? nullptr : std::make_shared<const AbandonedNodes>(names);
  }

  // Returns the running job with this id; null if there is none.
  std::shared_ptr<RunningJob> FindRunning(const std::string& id) const;
  std::vector<std::pair<std::string, std::shared_ptr<RunningJob>>> Running() const;
  // Returns at most `limit` jobs, the newest first, that are older than the job `before` (all if it
  // is empty or unknown).
  std::vector<Entry> List(const std::string& before, size_t limit) const;

  void Finish(const std::string& id, v1::Job job, int64_t end,
              const std::vector<std::string>& abandoned = {});
  // Returns the folder of a finished job with output whose node `node` is abandoned, as
  // AbandonedNodes::MayContain tells.
  std::optional<std::string> FindAbandoned(const std::string& id, const std::string& node) const;
  // The finished job runs again, for late records. It does not count as one of its submitter.
  void Reopen(const std::string& id, std::shared_ptr<RunningJob> running);
  // No late record of the job is accepted any more.
  void ForgetAbandoned(const std::string& id);
  // The job was cancelled by this URI.
  void SetCancelled(const std::string& id, const std::string& by, absl::Time at);
  // The audit log has the record of the submission, or of the cancellation. Returns the job; none
  // if it was removed.
  std::optional<Entry> MarkAudited(const std::string& id, bool cancellation);
  // Returns at most `limit` jobs with an event that the audit log lacks, the oldest first.
  std::vector<Entry> Unaudited(size_t limit) const;
  // Removes finished jobs past the limits, the oldest first, except those that `is_kept` names. It
  // must not call this object. A job that waits for the audit log loses its output first.
  Old RemoveOld(absl::Time now, const std::function<bool(const std::string&)>& is_kept);

  int64_t running() const;

 private:
  void RemoveOutputs(absl::Time now, const std::function<bool(const std::string&)>& is_kept,
                     Old* old) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountOf(const std::string& submitter, int64_t by) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropReserved(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> reserved_ ABSL_GUARDED_BY(mutex_);  // the submitter by id
  std::set<std::string> unread_ ABSL_GUARDED_BY(mutex_);
  // Unix microseconds of the submission, and id. Jobs with output, and those without.
  std::set<std::pair<int64_t, std::string>> by_time_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<int64_t, std::string>> without_output_ ABSL_GUARDED_BY(mutex_);
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t late_ ABSL_GUARDED_BY(mutex_) = 0;  // reopened
  // Running and reserved jobs by their submitter.
  std::map<std::string, int64_t> of_submitter_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_TABLE_H_
