#include "services/common/base/write_all.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "absl/functional/function_ref.h"
#include "services/common/base/errno_error.h"

namespace muster {
namespace {

absl::Status Repeat(absl::FunctionRef<ssize_t(std::string_view rest)> write, std::string_view bytes,
                    std::string_view subject) {
  while (!bytes.empty()) {
    const ssize_t n = write(bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "write", subject);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteAll(int fd, std::string_view bytes, std::string_view subject) {
  return Repeat([fd](std::string_view rest) { return write(fd, rest.data(), rest.size()); }, bytes,
                subject);
}

absl::Status WriteAllAt(int fd, std::string_view bytes, int64_t offset, std::string_view subject) {
  const int64_t end = offset + static_cast<int64_t>(bytes.size());
  return Repeat(
      [fd, end](std::string_view rest) {
        const auto left = static_cast<int64_t>(rest.size());
        return pwrite(fd, rest.data(), rest.size(), end - left);
      },
      bytes, subject);
}

}  // namespace muster
