// The ended jobs that are open for late records.
#ifndef MUSTER_SERVICES_RELAY_JOBS_LATE_JOBS_H_
#define MUSTER_SERVICES_RELAY_JOBS_LATE_JOBS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/base/token_buckets.h"
#include "services/relay/jobs/job_table.h"
#include "services/relay/jobs/record_inbox.h"

namespace muster {

// Opens a job again when a record of a node arrives that it gave up. That reads the whole log of
// the job, so a task on a separate executor opens one job after another. At most four jobs are
// open, each opened by another node, and one job is not opened too often: a node must not keep the
// disk busy. A record that has to wait for any of this is not acked: its node sends it again.
// Thread-safe.
class LateJobs {
 public:
  // All outlive it.
  struct Parts {
    const Clock& clock;
    JobTable& table;
    RecordInbox& inbox;  // gets the records that arrived while their job was opened
    TimerService& timers;
    Executor& executor;
    // Opens a finished job again, also in the table. May block.
    std::function<absl::Status(const std::string& id, const std::string& folder)> reopen;
  };

  explicit LateJobs(Parts parts);

  // Handles a record of a job that does not run. Returns true if it is a late one: then it must not
  // be acked.
  bool Hold(const v1::JobRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);

  // An open job has got a new record.
  void NoteRecord(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the job is being opened, or was, or got a record, in the last 10 s; false ten
  // minutes after its opening.
  bool Awaits(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The job has ended again.
  void Remove(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Job {
    std::string opened_by;  // node
    std::string folder;
    bool is_open = false;
    absl::Duration opened_at;  // monotonic, as the next
    absl::Duration record_at;  // of the last one, or of the opening
    v1::JobRecords held;
    int64_t held_bytes = 0;
  };

  absl::Status MayOpen(const v1::JobRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The task.
  void OpenAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void Open(const std::string& id, const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);

  const Parts parts_;
  TokenBuckets openings_;  // by job
  mutable Mutex mutex_;
  std::map<std::string, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  ScheduledTask task_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_LATE_JOBS_H_
