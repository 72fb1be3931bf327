#include "services/common/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/time/clock.h"
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

void WaitForLock() { absl::SleepFor(absl::Milliseconds(5)); }

absl::StatusOr<UniqueFd> LockFileSoon(const std::string& path, absl::FunctionRef<void()> wait) {
  constexpr int kTries = 20;
  for (int i = 1;; ++i) {
    auto lock = TryLockFile(path);
    if (!lock.ok() || lock->valid() || i == kTries) return lock;
    wait();
  }
}

}  // namespace muster
