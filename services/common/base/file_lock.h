// Locks of files that other processes may remove.
#ifndef MUSTER_SERVICES_COMMON_BASE_FILE_LOCK_H_
#define MUSTER_SERVICES_COMMON_BASE_FILE_LOCK_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster {

void WaitForLock();

// Takes the exclusive lock (flock) of a file, which is created with mode 0600 if it is missing.
// The lock lasts until the descriptor is closed; a crash releases it. Returns an invalid descriptor
// if another holder has it. A process that removes such a file holds its lock, so that no lock of a
// removed file is held. Does not follow a symbolic link.
absl::StatusOr<UniqueFd> TryLockFile(const std::string& path);

// Calls TryLockFile up to 20 times, with `wait` between the calls: a process that removes files
// that are not in use has their locks for a moment. The default waits for 5 ms.
absl::StatusOr<UniqueFd> LockFileSoon(const std::string& path,
                                      absl::FunctionRef<void()> wait = WaitForLock);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_FILE_LOCK_H_
