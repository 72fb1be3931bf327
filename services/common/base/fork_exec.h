// Starts programs as another user, or held until the process id is recorded: posix_spawn can do
// neither.
#ifndef MUSTER_SERVICES_COMMON_BASE_FORK_EXEC_H_
#define MUSTER_SERVICES_COMMON_BASE_FORK_EXEC_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// The user of a process.
struct ProcessUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // all of them, `gid` too
  std::string home;
  std::string shell;

  // Returns the user of that name with its groups. NOT_FOUND (NO_SUCH_USER).
  static absl::StatusOr<ProcessUser> Find(const std::string& name);
};

// The pointers must be valid during the call.
struct ForkPlan {
  char* const* argv = nullptr;  // argv[0] is the path of the program; PATH is not used
  char* const* environment = nullptr;
  const std::string* working_directory = nullptr;  // empty: this process's
  const std::vector<int>* descriptors = nullptr;   // entry i becomes i there; each is 100 or more
  const ProcessUser* user = nullptr;               // null: as this process
};

// Starts a program in its own session and process group, with default signal handling and umask
// 022. `before_start` (may be empty) receives the process id while the child is held: it has not
// executed the program, and has only the descriptors of the plan and two internal ones. If
// `before_start` fails, the child exits and the error is returned. If this process dies meanwhile,
// the child exits. Errors of execve and of the change of the user are returned by errno: NOT_FOUND,
// PERMISSION_DENIED.
absl::StatusOr<pid_t> ForkExec(const ForkPlan& plan,
                               const std::function<absl::Status(pid_t)>& before_start);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_FORK_EXEC_H_
