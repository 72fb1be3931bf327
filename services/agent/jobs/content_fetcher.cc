#include "services/agent/jobs/content_fetcher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "services/agent/jobs/file_modes.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/base/write_all.h"
#include "services/common/errors/contents.h"

namespace muster {
namespace {

constexpr BackoffOptions kRetry = {.first = absl::Milliseconds(500), .most = absl::Seconds(15)};

// A repeated read would fail in the same way.
bool IsFinal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status) ||
         absl::IsOutOfRange(status) || absl::IsUnimplemented(status);
}

}  // namespace

absl::StatusOr<std::string> ContentFetcher::ReadPart(const v1::Command::File& file,
                                                     int64_t offset) const {
  Backoff backoff(kRetry);
  const absl::Duration give_up = SystemClock().MonotonicNow() + options_.patience;
  for (;;) {
    if (options_.stopped()) return absl::CancelledError("it was stopped");
    auto part = options_.source.Read(options_.deployment, file.sha256(), offset, options_.stopped);
    if (part.ok()) return part;
    if (options_.stopped()) return absl::CancelledError("it was stopped");
    if (IsFinal(part.status()) || SystemClock().MonotonicNow() >= give_up) {
      return errors::ContentUnreachable(file.path(), ToStd(part.status().message()));
    }
    options_.wait(backoff.Next(RetryAfterOf(part.status())));
  }
}

absl::Status ContentFetcher::Fetch(const std::string& path, const v1::Command::File& file) const {
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd.valid()) return ErrnoError(errno, "create", path);
  if (const int fault = posix_fallocate(fd.get(), 0, file.size()); fault != 0) {
    return ErrnoError(fault, "reserve space for", path);
  }
  Sha256 sha256;
  for (int64_t offset = 0; offset < file.size();) {
    ASSIGN_OR_RETURN(const std::string part, ReadPart(file, offset));
    const auto size = static_cast<int64_t>(part.size());
    if (size == 0 || size > file.size() - offset) return errors::ContentDamaged(file.path());
    RETURN_IF_ERROR(WriteAll(fd.get(), part, path));
    sha256.Update(part);
    offset += size;
  }
  if (DigestBytes(sha256.Finish()) != file.sha256()) return errors::ContentDamaged(file.path());
  if (fchmod(fd.get(), file.executable() ? kAnyUserExecutes : kAnyUserReads) != 0) {
    return ErrnoError(errno, "set the mode of", path);
  }
  return absl::OkStatus();
}

}  // namespace muster
