// Reads the jobs of an earlier process.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_LOADER_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/journal/journal.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/job_state.h"
#include "services/relay/jobs/job_table.h"
#include "services/relay/jobs/running_job.h"

namespace muster {

// The content of the files of a job.
struct JobContent {
  JobRequest request;
  JobState state;  // after all records
  std::unique_ptr<Journal> log;
  bool reopened = false;  // as StoredJob
};

// Inserts the jobs of a folder, which it creates if necessary, into the table, and continues those
// that are running. A finished job is cancelled on nodes that were given up, until its deadline.
// Leaves out a job that cannot be read: its files stay for a person, or for the next start if they
// are not damaged (JobTable::AddUnread). Removes jobs whose creation was interrupted.
absl::Status LoadJobs(FileOps& files, const std::string& folder, int64_t max_output,
                      const RunningJob::Fleet& fleet, JobTable& table);

// A finished job that is read again, for late records of its nodes. Not thread-safe.
class LateJob {
 public:
  // Reads all of its records. DATA_LOSS if it is damaged, or a failure of the disk.
  static absl::StatusOr<LateJob> Read(FileOps& files, const std::string& folder,
                                      int64_t max_output);

  // Opens its folder for writing: another writer may use it until then. The errors of Read.
  absl::StatusOr<std::shared_ptr<RunningJob>> Open(FileOps& files,
                                                   const RunningJob::Fleet& fleet) &&;

 private:
  LateJob(std::string folder, JobContent content)
      : folder_(std::move(folder)), content_(std::move(content)) {}

  std::string folder_;
  JobContent content_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_LOADER_H_
