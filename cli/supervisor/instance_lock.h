// Ensures that at most one supervisor runs for a home, also after a kill.
#ifndef MUSTER_CLI_SUPERVISOR_INSTANCE_LOCK_H_
#define MUSTER_CLI_SUPERVISOR_INSTANCE_LOCK_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster::supervisor {

// A record lock of the kernel. It ends with its process, children do not inherit it, and the kernel
// reports its holder. The content of the file has no meaning. Not thread-safe.
class InstanceLock {
 public:
  // Returns FAILED_PRECONDITION (ALREADY_RUNNING) if another process holds the lock.
  static absl::StatusOr<InstanceLock> Acquire(const std::string& path);

  // Returns the process that holds the lock, except this one.
  static std::optional<pid_t> Holder(const std::string& path);

 private:
  explicit InstanceLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_INSTANCE_LOCK_H_
