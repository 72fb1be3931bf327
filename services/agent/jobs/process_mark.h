// Which process it was, for another life of this program.
#ifndef MUSTER_SERVICES_AGENT_JOBS_PROCESS_MARK_H_
#define MUSTER_SERVICES_AGENT_JOBS_PROCESS_MARK_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

// The variable that every process of a job has, unless it took it away.
inline constexpr std::string_view kJobVariable = "MUSTER_JOB";

// The leader of a process group, told apart from a later process with its number by when it began.
struct ProcessMark {
  pid_t pid = 0;
  int64_t started = 0;  // clock ticks since the machine came up
  std::string boot;     // which time it came up

  // NOT_FOUND if there is no such process.
  static absl::StatusOr<ProcessMark> Of(pid_t pid);

  std::string ToText() const;
  // DATA_LOSS (JOB_DAMAGED).
  static absl::StatusOr<ProcessMark> FromText(std::string_view text);
};

// Kills what is left of the group: all of it if the leader still runs, else those members that have
// `job` in their environment. Returns how many processes it found.
int EndGroup(const ProcessMark& leader, std::string_view job);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_PROCESS_MARK_H_
