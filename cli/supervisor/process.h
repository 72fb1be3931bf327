// Processes that may outlive the process that started them.
#ifndef MUSTER_CLI_SUPERVISOR_PROCESS_H_
#define MUSTER_CLI_SUPERVISOR_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/process_identity.h"
#include "services/common/base/unique_fd.h"

namespace muster::supervisor {

// Writes a pid file: one line of JSON.
absl::Status WritePidFile(const std::string& path, const ProcessIdentity& identity);

// Returns nothing if the file does not exist or is invalid.
std::optional<ProcessIdentity> ReadPidFile(const std::string& path);

struct SpawnOptions {
  std::vector<std::string> argv;  // argv[0] is the program's path
  std::string log_file;           // for stdout and stderr, appended; created with mode 0600
  std::string pid_file;           // empty: none
};

// A running process: a child, or a process of an earlier supervisor. Not thread-safe.
class Process {
 public:
  // Returns the process with this identity if it is still running.
  static std::optional<Process> Find(const ProcessIdentity& identity);

  // Starts a process that does not end with this one: a new session, no terminal, stdin from
  // /dev/null, stdout and stderr to the log file, no other descriptors, the environment of this
  // process. The pid file exists before the program starts. Returns NOT_FOUND or another error if
  // the program cannot be started. Call it only if no other threads are running.
  static absl::StatusOr<Process> Spawn(const SpawnOptions& options);

  pid_t pid() const { return pid_; }

  // A descriptor that is readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }

  // Does nothing if the process has ended.
  void Signal(int signal) const;

  // Waits until the process ends. Returns false if it is still running after `limit`.
  bool WaitForExit(absl::Duration limit) const;

  // Returns how an ended process ended: "exit code 3", "killed by signal 9 (Killed)", or "ended" if
  // it is not a child. Reaps a child.
  std::string Reap() const;

 private:
  Process(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  UniqueFd pidfd_;
};

// Returns the process of a pid file if it is still running.
std::optional<Process> FindByPidFile(const std::string& path);

// Sends SIGTERM, and SIGKILL if the process is still running after `grace`. Resumes a suspended
// process, which would not handle SIGTERM. Calls `on_wait` if the process runs for 2 s more.
void StopProcess(const Process& process, absl::Duration grace,
                 const std::function<void()>& on_wait = nullptr);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_PROCESS_H_
