#include "services/jobs/deployment_submission.h"

#include <algorithm>

#include "services/common/base/status_macros.h"
#include "services/common/identity/signed_command.h"
#include "services/common/jobs/job_submission.h"
#include "services/common/rpc/proto_time.h"

namespace muster {

v1::SubmitJobRequest SubmissionOf(const v1::CreateDeploymentRequest& request) {
  v1::SubmitJobRequest submission;
  *submission.mutable_command() = request.command();
  *submission.mutable_nodes() = request.nodes();
  submission.set_parallel(request.parallel());
  if (request.has_wait()) *submission.mutable_wait() = request.wait();
  return submission;
}

absl::Status CheckDeploymentSubmission(const v1::CreateDeploymentRequest& request,
                                       std::string_view fleet) {
  ASSIGN_OR_RETURN(const v1::Command command, CheckSignedBytes(request.command(), fleet));
  return CheckSubmission(SubmissionOf(request), command).status();
}

absl::Status VerifySigner(const v1::SignedCommand& signed_command, const Certificate& command_ca,
                          std::string_view fleet, absl::Time now) {
  ASSIGN_OR_RETURN(const v1::Command command, CheckSignedBytes(signed_command, fleet));
  const absl::Time at = std::max(now, FromProto(command.not_before()));
  return VerifyCommand(signed_command, command_ca, fleet, at).status();
}

}  // namespace muster
