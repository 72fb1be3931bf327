// The identity of a process across restarts of the agent.
#ifndef MUSTER_SERVICES_AGENT_JOBS_PROCESS_MARK_H_
#define MUSTER_SERVICES_AGENT_JOBS_PROCESS_MARK_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// The variable in the environment of every process of a job.
inline constexpr std::string_view kJobVariable = "MUSTER_JOB";

// Returns the id of this boot of the machine.
std::string BootId();
// Returns the time since the start of the machine. It includes suspension, and never jumps.
absl::Duration SinceBoot();
// Returns when the machine was started.
absl::Time BootTime();

// The leader of a process group. The start time distinguishes it from a later process with its id.
struct ProcessMark {
  pid_t pid = 0;
  int64_t started = 0;  // clock ticks since the boot
  std::string boot;     // the id of the boot

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
