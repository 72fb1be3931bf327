// At most one supervisor for a home, whatever was killed before.
#ifndef MUSTER_CLI_SUPERVISOR_INSTANCE_LOCK_H_
#define MUSTER_CLI_SUPERVISOR_INSTANCE_LOCK_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster::supervisor {

// A record lock of the kernel: it ends with its process, is not inherited by children, and the
// kernel names its holder. No file content is ever believed. Not thread-safe.
class InstanceLock {
 public:
  // FAILED_PRECONDITION (ALREADY_RUNNING) if another process holds it.
  static absl::StatusOr<InstanceLock> Take(const std::string& path);

  // The process that holds the lock now; not this one.
  static std::optional<pid_t> Holder(const std::string& path);

 private:
  explicit InstanceLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_INSTANCE_LOCK_H_
