#include "services/jobs/deployment_submission.h"

#include "services/common/base/status_macros.h"
#include "services/common/identity/signed_command.h"
#include "services/common/jobs/job_submission.h"

namespace muster {

v1::SubmitJobRequest SubmissionOf(const v1::CreateDeploymentRequest& request) {
  v1::SubmitJobRequest submission;
  *submission.mutable_command() = request.command();
  *submission.mutable_nodes() = request.nodes();
  submission.set_parallel(request.parallel());
  if (request.has_wait()) *submission.mutable_wait() = request.wait();
  return submission;
}

absl::StatusOr<v1::Command> CheckDeploymentSubmission(const v1::CreateDeploymentRequest& request,
                                                      std::string_view fleet) {
  ASSIGN_OR_RETURN(v1::Command command, CheckSignedBytes(request.command(), fleet));
  RETURN_IF_ERROR(CheckSubmission(SubmissionOf(request), command).status());
  return command;
}

}  // namespace muster
