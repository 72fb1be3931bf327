#include "services/common/identity/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "services/common/base/errno_error.h"

namespace muster {

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open folder", folder);
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoError(errno, "lock folder", folder);
  }
  return FolderLock(std::move(fd));
}

}  // namespace muster
