// Processes that may outlive whoever started them, told apart from strangers that got their number.
#ifndef MUSTER_CLI_SUPERVISOR_PROCESS_H_
#define MUSTER_CLI_SUPERVISOR_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/unique_fd.h"

namespace muster::supervisor {

// Names one process for ever: a number is given again, but never with the same start in the same
// boot.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since boot, field 22 of /proc/PID/stat
  std::string boot_id;       // /proc/sys/kernel/random/boot_id

  bool operator==(const ProcessIdentity&) const = default;
};

// Empty if there is no such process, or if it is a zombie.
std::optional<ProcessIdentity> IdentifyProcess(pid_t pid);

// A pid file: one line of JSON.
absl::Status WritePidFile(const std::string& path, const ProcessIdentity& identity);

// Empty if there is none or it says nothing of use.
std::optional<ProcessIdentity> ReadPidFile(const std::string& path);

struct SpawnOptions {
  std::vector<std::string> argv;  // argv[0] is the program's path
  std::string log_file;           // stdout and stderr are appended here; made with mode 0600
  std::string pid_file;           // empty: none
};

// A running process, ours or adopted. Not thread-safe.
class Process {
 public:
  // The process with exactly this identity, if it still runs.
  static std::optional<Process> Find(const ProcessIdentity& identity);

  // Starts a process that does not end with this one: own session, no terminal, stdin closed off,
  // the log file for the rest, no other descriptors, this process's environment. Its pid file is
  // there before its program begins, so no process is ever without one. NOT_FOUND and so on if the
  // program cannot be started. Call it only where no other threads run.
  static absl::StatusOr<Process> Spawn(const SpawnOptions& options);

  pid_t pid() const { return pid_; }

  // Becomes readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }

  // Does nothing to one that has ended.
  void Signal(int signal) const;

  // Waits for its end. False if it still runs after `limit`.
  bool WaitForEnd(absl::Duration limit) const;

  // Of one that has ended: "exit code 3", "killed by signal 9 (Killed)", or "ended" if it is not
  // our child. Reaps a child.
  std::string Reap() const;

 private:
  Process(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  UniqueFd pidfd_;
};

// SIGTERM, and SIGKILL if it has not ended after `grace`.
void EndProcess(const Process& process, absl::Duration grace);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_PROCESS_H_
