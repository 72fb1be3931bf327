// Reads the jobs of an earlier process.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_LOADER_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/relay/jobs/job_table.h"
#include "services/relay/jobs/running_job.h"

namespace muster {

// Inserts the jobs of a folder, which it creates if necessary, into the table, and continues those
// that are running. A finished job is cancelled on nodes that were given up, until its deadline.
// Leaves out a job that cannot be read: its files stay for a person, or for the next start if they
// are not damaged (JobTable::AddUnread). Removes jobs whose creation was interrupted.
absl::Status LoadJobs(FileOps& files, const std::string& folder, int64_t max_output,
                      const RunningJob::Fleet& fleet, JobTable& table);

// Opens a finished job again, for late records of its nodes. Reads all of its records. DATA_LOSS if
// it is damaged, or a failure of the disk.
absl::StatusOr<std::shared_ptr<RunningJob>> ReopenJob(FileOps& files, const std::string& folder,
                                                      int64_t max_output,
                                                      const RunningJob::Fleet& fleet);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_LOADER_H_
