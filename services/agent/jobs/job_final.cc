#include "services/agent/jobs/job_final.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "services/agent/jobs/command_container.h"
#include "services/common/base/strings.h"
#include "services/common/jobs/final_record.h"

namespace muster {
namespace {

std::string TimeLimitText(const JobPlan& plan) {
  const absl::Duration limit = std::max(plan.stated_limit, plan.time_limit);
  return absl::FormatDuration(absl::Ceil(limit, absl::Milliseconds(100)));
}

}  // namespace

v1::JobRecord TimeLimitFinal(const JobPlan& plan, const std::string& doing) {
  return FinalRecord(v1::JOB_OUTCOME_TIMED_OUT, "TIME_LIMIT",
                     absl::StrCat(plan.is_build ? "the build" : "it", " ran for longer than ",
                                  TimeLimitText(plan), doing.empty() ? "" : ", while it ", doing));
}

v1::JobRecord TimeLimitBeforeStart(const JobPlan& plan, const absl::Status& failure) {
  return FinalRecord(
      v1::JOB_OUTCOME_TIMED_OUT, "TIME_LIMIT",
      absl::StrCat(plan.is_build ? "the build" : "its container", " did not start within ",
                   TimeLimitText(plan), ": ", failure.message()));
}

v1::JobRecord StateTooLargeFinal(const std::string& what) {
  return FinalRecord(v1::JOB_OUTCOME_FAILED, "STATE_TOO_LARGE",
                     absl::StrCat(ToAbsl(kStateTarget), " has ", what));
}

v1::JobRecord OutOfMemoryFinal(const JobPlan& plan) {
  return FinalRecord(
      v1::JOB_OUTCOME_EXITED, "OUT_OF_MEMORY",
      absl::StrCat("the kernel ended a process in the container, whose memory is limited to ",
                   plan.container.memory >> 20, " MiB"));
}

void AddDetail(const std::string& detail, v1::JobRecord::Final* final) {
  if (detail.empty()) return;
  const std::string first = final->detail();
  SetOutcome(final->outcome(), final->reason(), first.empty() ? detail : first + "; " + detail,
             final);
}

void ReplaceExit(const v1::JobRecord& failed, v1::JobRecord::Final* final) {
  final->MergeFrom(failed.final());
  final->clear_exit_code();
}

}  // namespace muster
