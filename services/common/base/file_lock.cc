#include "services/common/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "services/common/base/errno_error.h"

namespace muster {

absl::StatusOr<UniqueFd> TryLockFile(const std::string& path) {
  for (;;) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return ErrnoError(errno, "open", path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return UniqueFd();
      return ErrnoError(errno, "lock", path);
    }
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) return ErrnoError(errno, "stat", path);
    // Otherwise the file was removed after it was opened.
    if (info.st_nlink > 0) return fd;
  }
}

}  // namespace muster
