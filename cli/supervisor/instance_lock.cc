#include "cli/supervisor/instance_lock.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/errors/cli.h"

namespace muster::supervisor {
namespace {

struct flock WholeFile() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

absl::StatusOr<InstanceLock> InstanceLock::Acquire(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoError(errno, "open", path);
  struct flock lock = WholeFile();
  if (::fcntl(fd.get(), F_SETLK, &lock) == 0) return InstanceLock(std::move(fd));
  if (errno != EAGAIN && errno != EACCES) return ErrnoError(errno, "lock", path);
  return errors::InstanceAlreadyRunning(path);
}

std::optional<pid_t> InstanceLock::Holder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = WholeFile();
  if (!fd.valid() || ::fcntl(fd.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) {
    return std::nullopt;
  }
  return lock.l_pid;
}

}  // namespace muster::supervisor
