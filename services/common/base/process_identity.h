// The identity of a process across restarts of the program that started it.
#ifndef MUSTER_SERVICES_COMMON_BASE_PROCESS_IDENTITY_H_
#define MUSTER_SERVICES_COMMON_BASE_PROCESS_IDENTITY_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace muster {

// Returns the id of this boot of the machine; empty if it cannot be read.
std::string BootId();

// Returns the time since the start of the machine. It includes suspension, and never jumps.
absl::Duration SinceBoot();
// Returns when the machine was started.
absl::Time BootTime();

// Identifies one process. The kernel reuses a pid, but never with the same start time in the same
// boot.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since the boot, field 22 of /proc/PID/stat
  std::string boot_id;       // BootId

  bool operator==(const ProcessIdentity&) const = default;
};

// The state of a running process in /proc.
struct ProcessStat {
  pid_t group = 0;
  uint64_t start_ticks = 0;
};

// Returns nothing if the process does not exist or is a zombie.
std::optional<ProcessStat> ReadProcessStat(pid_t pid);

// Returns nothing if the process does not exist or is a zombie.
std::optional<ProcessIdentity> IdentifyProcess(pid_t pid);

// Returns whether the process is running.
bool IsRunning(const ProcessIdentity& process);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_PROCESS_IDENTITY_H_
