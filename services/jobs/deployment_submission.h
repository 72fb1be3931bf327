// The submission of a deployment to the root relay.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_SUBMISSION_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_SUBMISSION_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/certificate.h"

namespace muster {

v1::SubmitJobRequest SubmissionOf(const v1::CreateDeploymentRequest& request);

// Checks that the key of the command's first certificate signed it, and the rest of the submission.
// INVALID_ARGUMENT (INVALID_COMMAND, INVALID_NAME), PERMISSION_DENIED (COMMAND_REFUSED).
absl::Status CheckDeploymentSubmission(const v1::CreateDeploymentRequest& request,
                                       std::string_view fleet);

// Verifies the certificate of the signer as the root relay does: a gateway, which names any
// operator as the caller, could else open a deployment that gets secrets and a workspace until the
// relay refuses it. A command whose time has not come is verified for its first moment. Those of
// VerifyCommand.
absl::Status VerifySigner(const v1::SignedCommand& command, const Certificate& command_ca,
                          std::string_view fleet, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_SUBMISSION_H_
