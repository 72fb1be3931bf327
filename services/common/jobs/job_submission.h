// The check of a submission of a job, which the root relay and the jobs service share.
#ifndef MUSTER_SERVICES_COMMON_JOBS_JOB_SUBMISSION_H_
#define MUSTER_SERVICES_COMMON_JOBS_JOB_SUBMISSION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/target_set.h"

namespace muster {

// Checks the fields beside the signed command: the nodes are those that were signed, at most
// 50,000; `parallel` and `wait` are not negative. `command`: the parsed one of the message; neither
// its signature nor its content is checked. Returns the nodes; null for all. Fails with
// INVALID_ARGUMENT (INVALID_COMMAND, INVALID_NAME).
absl::StatusOr<std::shared_ptr<const TargetSet>> CheckSubmission(
    const v1::SubmitJobRequest& message, const v1::Command& command);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_JOB_SUBMISSION_H_
