// Child processes that inherit nothing by accident and leave nothing behind.
#ifndef MUSTER_SERVICES_COMMON_BASE_SUBPROCESS_H_
#define MUSTER_SERVICES_COMMON_BASE_SUBPROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/fork_exec.h"
#include "services/common/base/mutex.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// The destination of a child's stdout or stderr.
struct ChildOutput {
  enum class Kind { kNull, kFile, kPipe, kTail, kSameAsStdout };

  static ChildOutput Null() { return {Kind::kNull}; }
  // Appends to the file at `path`, made with mode 0600 if there is none.
  static ChildOutput File(std::string path) { return {Kind::kFile, std::move(path)}; }
  // A pipe that the caller reads: TakeStdout, TakeStderr. A full pipe stops the child.
  static ChildOutput Pipe() { return {Kind::kPipe}; }
  // Keeps the last `bytes` of the output in memory and drops the rest: StdoutTail, StderrTail.
  static ChildOutput Tail(size_t bytes) { return {Kind::kTail, {}, bytes}; }
  // For stderr alone: wherever stdout goes, in one order.
  static ChildOutput SameAsStdout() { return {Kind::kSameAsStdout}; }

  Kind kind = Kind::kNull;
  std::string path;
  size_t tail_bytes = 0;
};

struct SubprocessOptions {
  // Program and arguments. A program without a slash is looked up in this process's PATH.
  std::vector<std::string> argv;
  std::string working_directory;  // empty: this process's
  // The child's whole environment as NAME=value; nothing else is inherited.
  std::vector<std::string> environment;
  ChildOutput out;
  ChildOutput err;
  // Open descriptors that become 3, 4, ... in the child. Nothing else above 2 stays open there.
  std::vector<int> pass_fds;
  // The user of the child; default: that of this process. Requires root and a path with a slash.
  std::optional<ProcessUser> user;
  // Receives the process id before the program starts. If it fails, the child exits and Start
  // returns the error. With this or `user` the child has its own session too.
  std::function<absl::Status(pid_t)> before_start;
};

// How a process ended.
struct ExitStatus {
  int exit_code = 0;  // if signal is 0
  int signal = 0;     // the signal that ended it, or 0

  bool ok() const { return exit_code == 0 && signal == 0; }
  // "exit code 3" or "killed by signal 9 (Killed)".
  std::string Describe() const;
};

// A child in its own process group, with stdin closed off (/dev/null), default signal handling
// and only the descriptors it was given. Thread-safe.
//
// When the child ends, whatever it left in its group is killed: a plugin that starts a helper and
// exits leaves nothing running. Needs Linux 5.4 (pidfd).
class Subprocess {
 public:
  // NOT_FOUND, PERMISSION_DENIED, ... if the program or the working directory cannot be used;
  // INVALID_ARGUMENT for an empty argv or a malformed environment.
  static absl::StatusOr<std::unique_ptr<Subprocess>> Start(SubprocessOptions options);

  // Kills the group if the child still runs, and waits for it.
  ~Subprocess();

  pid_t pid() const { return pid_; }

  // Becomes readable (poll, epoll) when the child has ended. Stays owned by this object.
  int pidfd() const { return pidfd_.get(); }

  // Waits until the child has ended, at most `limit`. Empty if it still runs.
  std::optional<ExitStatus> Wait(absl::Duration limit);

  // Sends `signal` to the whole group. Does nothing once the end of the child was seen.
  void Signal(int signal);

  // SIGTERM to the group, and SIGKILL if the child has not ended after `grace`.
  ExitStatus Stop(absl::Duration grace);

  // The read ends of pipes; each can be taken once, and is not valid if there is none.
  UniqueFd TakeStdout();
  UniqueFd TakeStderr();

  // The last bytes of a tail stream so far; all of them once Wait gave a status.
  std::string StdoutTail() const;
  std::string StderrTail() const;

 private:
  class TailReader;

  Subprocess(pid_t pid, UniqueFd pidfd);
  ExitStatus Reap() ABSL_LOCKS_EXCLUDED(mutex_);

  const pid_t pid_;
  const UniqueFd pidfd_;
  Mutex mutex_;
  std::optional<ExitStatus> exit_ ABSL_GUARDED_BY(mutex_);
  UniqueFd stdout_ ABSL_GUARDED_BY(mutex_);
  UniqueFd stderr_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<TailReader> stdout_tail_;
  std::unique_ptr<TailReader> stderr_tail_;
};

// NAME=value for those of `names` that are set in this process's environment: the base of what a
// child gets.
std::vector<std::string> AllowListedEnvironment(const std::vector<std::string_view>& names);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SUBPROCESS_H_
