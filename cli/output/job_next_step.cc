#include "cli/output/job_next_step.h"

#include <map>

#include "absl/status/status.h"
#include "services/common/base/error.h"
#include "services/common/errors/docker.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/jobs.h"
#include "services/common/errors/templates.h"

namespace muster::cli {
namespace {

// Returns the next steps of the errors that a node has as reasons.
std::map<std::string, std::string> StepsOfErrors() {
  std::map<std::string, std::string> steps;
  for (const absl::Status& error :
       {errors::PolicyRefused(""), errors::PolicyUnusable(""), errors::AgentDied(),
        errors::UserNotPossible(""), errors::RevocationsDamaged(""),
        errors::SignerOfCommandRevoked(""), errors::DockerUnreachable("", ""),
        errors::DockerTooOld("", ""), errors::DockerFailed("", 0, ""),
        errors::DockerAnswerInvalid("", ""), errors::ImageNotFound(""),
        errors::ImagePullFailed("", ""), errors::ContainerNotFound(""), errors::ContainerExists(""),
        errors::ContainerNotStarted(""), errors::ContainerOutputLost(""),
        errors::InvalidDocument(""), errors::InvalidParameters("")}) {
    steps.emplace(ReasonOf(error), NextStepOf(error));
  }
  return steps;
}

}  // namespace

std::string NextStepAfter(const v1::JobRecord::Final& final, bool in_container) {
  const bool exited = final.outcome() == v1::JOB_OUTCOME_EXITED;
  if (exited && final.exit_code() == 0 && final.signal() == 0) return "";
  static const auto& steps = *new std::map<std::string, std::string>(StepsOfErrors());
  const absl::Status not_admitted = errors::ContainerNotAdmitted("", "", "");
  if (in_container && final.reason() == ReasonOf(not_admitted)) return NextStepOf(not_admitted);
  if (const auto found = steps.find(final.reason()); found != steps.end()) return found->second;
  const std::string_view of_reason = errors::OutcomeNextStep(final.reason());
  if (!of_reason.empty()) return std::string(of_reason);
  return std::string(errors::OutcomeNextStep(v1::JobOutcome_Name(final.outcome())));
}

}  // namespace muster::cli
