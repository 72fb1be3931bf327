#include "cli/output/job_next_step.h"

#include "absl/status/status.h"
#include "services/common/base/error.h"
#include "services/common/errors/jobs.h"

namespace muster::cli {

std::string NextStepAfter(const v1::JobRecord::Final& final, bool in_container) {
  const bool exited = final.outcome() == v1::JOB_OUTCOME_EXITED;
  if (exited && final.exit_code() == 0 && final.signal() == 0) return "";
  const absl::Status not_admitted = errors::ContainerNotAdmitted("", "", "");
  if (in_container && final.reason() == ReasonOf(not_admitted)) return NextStepOf(not_admitted);
  const std::string_view of_reason = errors::OutcomeNextStep(final.reason());
  if (!of_reason.empty()) return std::string(of_reason);
  return std::string(errors::OutcomeNextStep(v1::JobOutcome_Name(final.outcome())));
}

}  // namespace muster::cli
