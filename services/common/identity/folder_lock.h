// One writer at a time in a folder, across processes.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_FOLDER_LOCK_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_FOLDER_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// Holds the exclusive lock (flock) of a folder until it goes; a crash releases it. Those who only
// read do not take it.
class FolderLock {
 public:
  // Waits for whoever holds it: for moments, as only short changes of small files are made under
  // it.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_FOLDER_LOCK_H_
