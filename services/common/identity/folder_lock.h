// A lock that permits one writer at a time in a folder, across processes.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_FOLDER_LOCK_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_FOLDER_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// Holds the exclusive lock (flock) of a folder during its lifetime; a crash releases it. Readers do
// not need it.
class FolderLock {
 public:
  // Waits until the lock is free. The wait is short, because holders only write small files.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_FOLDER_LOCK_H_
