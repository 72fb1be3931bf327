// A job's folder:
//
//   request     the SubmitJobRequest, as it came
//   job         a Job: as it was taken, later as it ended
//   targets     the names of its targets, a line each
//   cancelled   there if somebody cancelled it
//   records     record_log.h
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_FOLDER_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_FOLDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/file_ops.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/job_state.h"

namespace muster {

// The ids of the jobs below `folder`, which is made if need be. What a crash left half made is
// removed.
absl::StatusOr<std::vector<std::string>> ListJobFolders(FileOps& files, const std::string& folder);

// Makes the folder with all that is in it, durably and at once. ALREADY_EXISTS (JOB_EXISTS).
absl::Status CreateJobFolder(FileOps& files, const std::string& folder,
                             const v1::SubmitJobRequest& request, const v1::Job& job,
                             const std::vector<std::string>& targets);

absl::StatusOr<JobRequest> ReadRequest(FileOps& files, const std::string& folder);
absl::StatusOr<v1::Job> ReadJob(FileOps& files, const std::string& folder);
absl::StatusOr<std::vector<std::string>> ReadTargets(FileOps& files, const std::string& folder);
absl::Status WriteJob(FileOps& files, const std::string& folder, const v1::Job& job);
absl::Status MarkCancelled(FileOps& files, const std::string& folder);
bool IsCancelled(FileOps& files, const std::string& folder);
std::string RecordsPath(const std::string& folder);

// A job as it begins.
v1::Job NewJob(const JobRequest& request, const std::string& submitter, absl::Time now);
JobState::Plan PlanOf(const JobRequest& request, const v1::Job& job,
                      std::vector<std::string> targets, int64_t max_output);
v1::JobCancel CancelOf(const std::string& job);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_FOLDER_H_
