// Starting a program that posix_spawn cannot start: as another user, or held back until its number
// is written down.
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

// As whom a process runs.
struct ProcessUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // all of them, `gid` too
  std::string home;
  std::string shell;

  // The user of that name with its groups, as this machine knows it. NOT_FOUND (NO_SUCH_USER).
  static absl::StatusOr<ProcessUser> Find(const std::string& name);
};

// All pointers are lent for the call.
struct ForkPlan {
  char* const* argv = nullptr;  // argv[0] is the program's path; nothing is searched for
  char* const* environment = nullptr;
  const std::string* working_directory = nullptr;  // empty: this process's
  const std::vector<int>* descriptors = nullptr;   // number i becomes i there; all above 99 here
  const ProcessUser* user = nullptr;               // null: as this process
};

// Starts it in a session and process group of its own, with default signal handling and umask 022.
// `before_start` (may be empty) hears its number while it runs nothing of its own yet; an error
// from it ends the child and is returned. If this process dies in between, the child ends without a
// trace. The errors of execve and of becoming the user are returned by errno: NOT_FOUND,
// PERMISSION_DENIED.
absl::StatusOr<pid_t> ForkExec(const ForkPlan& plan,
                               const std::function<absl::Status(pid_t)>& before_start);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_FORK_EXEC_H_
