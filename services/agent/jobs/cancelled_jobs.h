// Jobs whose command must not run: they were cancelled before it arrived, or refused.
#ifndef MUSTER_SERVICES_AGENT_JOBS_CANCELLED_JOBS_H_
#define MUSTER_SERVICES_AGENT_JOBS_CANCELLED_JOBS_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/keep_until.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/jobs/final_record.h"
#include "services/common/journal/journal.h"

namespace muster {

inline v1::JobRecord CancelledBeforeStart() {
  return FinalRecord(v1::JOB_OUTCOME_CANCELLED, "", "it had not started");
}

// A command that another route delays must not run after its cancel, nor after the node has signed
// that it refuses the job, also if the agent is killed in between. Each job is kept for 25 hours,
// and for 25 hours after each start, because the clock may be wrong then: the certificate that
// signed its command is no longer valid after that. A peer that adds jobs does not displace
// others: beyond `max_jobs` none is added, unless a command that was signed more than 25 hours
// after a job shows that the job is old. Not thread-safe; Open and Store block on the disk.
class CancelledJobs {
 public:
  // Opens the journal at `path`, or creates it. Renames a damaged journal to PATH.damaged, and
  // keeps the jobs before the damage. `ops` and `clock` outlive the result.
  static absl::StatusOr<std::unique_ptr<CancelledJobs>> Open(FileOps& ops, const std::string& path,
                                                             const Clock& clock,
                                                             size_t max_jobs = 5'000);

  // Adds a job with its outcome, unless it is known. It is durable after Store. Returns false if
  // there are too many.
  [[nodiscard]] bool Add(const std::string& job, v1::JobRecord final = CancelledBeforeStart());
  bool Contains(const std::string& job) const { return jobs_.contains(job); }
  // Returns whether a job that is contained is durable.
  bool IsStored(const std::string& job) const { return jobs_.at(job).stored; }
  // Returns the outcome of a job that is contained. A restart replaces its detail.
  const v1::JobRecord& FinalOf(const std::string& job) const { return jobs_.at(job).final; }

  // Makes the added jobs durable with one sync, and adds them to `stored`. After a failure the next
  // call tries again.
  absl::Status Store(std::vector<std::string>* stored);
  bool all_stored() const { return unstored_.empty(); }

  // A verified command was signed at this time.
  void HandleCommand(absl::Time not_before) { signed_ = std::max(signed_, not_before); }

  // Drops the expired jobs.
  void Forget();

 private:
  struct Cancel {
    absl::Time time;
    KeepUntil keep;
    v1::JobRecord final;
    bool stored;
  };

  CancelledJobs(FileOps& ops, std::string path, const Clock& clock, size_t max_jobs)
      : ops_(ops), path_(std::move(path)), clock_(clock), max_jobs_(max_jobs) {}
  absl::Status Read(std::string_view entry);
  bool Insert(const std::string& job, absl::Time time, v1::JobRecord final, bool stored);
  void DropOldest();
  void DropOld();
  absl::Status Append(Journal& journal, const std::string& job) const;
  absl::Status AppendUnstored();
  absl::Status Rewrite();

  FileOps& ops_;
  const std::string path_;
  const Clock& clock_;
  const size_t max_jobs_;
  std::unique_ptr<Journal> journal_;                  // null: it could not be created yet
  size_t entries_ = 0;                                // in the journal
  absl::Time signed_ = absl::InfinitePast();          // the latest verified command
  absl::Time dropped_before_ = absl::InfinitePast();  // signed_ at the last DropOld
  std::map<std::string, Cancel> jobs_;
  std::deque<std::string> order_;     // of jobs_, the oldest first
  std::deque<std::string> unstored_;  // the last ones of order_
  size_t written_ = 0;                // of unstored_, the first ones: in the journal, not synced
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_CANCELLED_JOBS_H_
