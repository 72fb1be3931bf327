// The container of a job, as a restarted agent must know it.
#ifndef MUSTER_SERVICES_AGENT_JOBS_CONTAINER_MARK_H_
#define MUSTER_SERVICES_AGENT_JOBS_CONTAINER_MARK_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/jobs/job_plan.h"

namespace muster {

// The part of a plan that applies after the start, and when that was. Later changes of the policy
// do not change it.
struct ContainerMark {
  std::string boot;  // the id of the boot, BootId
  absl::Time start;
  absl::Duration since_boot;  // of the start, by SinceBoot: the wall clock may jump
  JobPlan plan;  // image, limits and output; without argv and environment, which may be secret

  // Returns how long ago the start was, at least zero.
  absl::Duration Elapsed() const;

  std::string ToText() const;
  // DATA_LOSS (JOB_DAMAGED).
  static absl::StatusOr<ContainerMark> FromText(std::string_view text);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_CONTAINER_MARK_H_
