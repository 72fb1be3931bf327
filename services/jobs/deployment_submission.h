// The submission of a deployment to the root relay.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_SUBMISSION_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_SUBMISSION_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

v1::SubmitJobRequest SubmissionOf(const v1::CreateDeploymentRequest& request);

// Checks that the key of the command's first certificate signed it, and the rest of the submission.
// Returns the command. INVALID_ARGUMENT (INVALID_COMMAND, INVALID_NAME), PERMISSION_DENIED
// (COMMAND_REFUSED).
absl::StatusOr<v1::Command> CheckDeploymentSubmission(const v1::CreateDeploymentRequest& request,
                                                      std::string_view fleet);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_SUBMISSION_H_
