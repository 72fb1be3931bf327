// Finds the jobs that an argument names.
#ifndef MUSTER_CLI_RPC_JOB_REFERENCE_H_
#define MUSTER_CLI_RPC_JOB_REFERENCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/rpc/job_client.h"

namespace muster::cli {

// Returns the id of the job that `text` names: an id, or a unique prefix of one.
absl::StatusOr<std::string> ResolveJob(JobClient& client, const std::string& text);

// Returns the running jobs that the identity with this URI submitted, the newest first.
absl::StatusOr<std::vector<v1::Job>> ListRunningJobs(JobClient& client, const std::string& uri);

// Returns whether the relay has a job of the identity, in any state.
absl::StatusOr<bool> HasJobs(JobClient& client, const std::string& uri);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_JOB_REFERENCE_H_
