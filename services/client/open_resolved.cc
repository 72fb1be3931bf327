#include "services/client/open_resolved.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/errors/client.h"

namespace muster::client {

absl::StatusOr<UniqueFd> OpenResolved(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid() && errno == ELOOP) return errors::NotARegularFile(path);
  if (!fd.valid()) return ErrnoError(errno, "open", path);
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "stat", path);
  // The kernel knows the path of an open file, whichever links led to it.
  std::error_code error;
  const auto opened =
      std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd.get()), error);
  if (error) return ErrnoError(error.value(), "resolve", path);
  if (!S_ISREG(st.st_mode) || opened != path) return errors::NotARegularFile(path);
  return fd;
}

}  // namespace muster::client
