// The processes that an earlier process of the agent has started.
#ifndef MUSTER_SERVICES_AGENT_JOBS_PROCESS_MARK_H_
#define MUSTER_SERVICES_AGENT_JOBS_PROCESS_MARK_H_

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/base/process_identity.h"

namespace muster {

// The variable in the environment of every process of a job.
inline constexpr std::string_view kJobVariable = "MUSTER_JOB";

// The leader of a process group, as the agent stores it.
struct ProcessMark : ProcessIdentity {
  // NOT_FOUND if there is no such process.
  static absl::StatusOr<ProcessMark> Of(pid_t pid);

  std::string ToText() const;
  // DATA_LOSS (JOB_DAMAGED).
  static absl::StatusOr<ProcessMark> FromText(std::string_view text);
};

// Kills the rest of the group: all of it if the leader is running, otherwise the members with
// `variable` ("NAME=value") in their environment. Returns the number of processes.
int EndGroup(const ProcessMark& leader, std::string_view variable);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_PROCESS_MARK_H_
