#include "services/client/source_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/client/errors.h"
#include "services/client/open_resolved.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

// File times advance in steps of a kernel tick (at most 10 ms): a second write within the same step
// cannot be detected.
constexpr std::chrono::milliseconds kTimeStep{50};

std::string FingerprintOf(const struct stat& st) {
  // Not the change time: a chmod or a link does not change the content.
  return absl::StrCat(st.st_dev, ":", st.st_ino, ":", st.st_size, ":", st.st_mtim.tv_sec, ".",
                      st.st_mtim.tv_nsec);
}

bool WrittenJustNow(const struct stat& st) {
  struct timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int64_t age_ns = (now.tv_sec - st.st_mtim.tv_sec) * int64_t{1'000'000'000} +
                         (now.tv_nsec - st.st_mtim.tv_nsec);
  return age_ns >= 0 && age_ns < std::chrono::nanoseconds(kTimeStep).count();
}

}  // namespace

SourceFile::SourceFile(UniqueFd fd, std::string path, int64_t size, std::string fingerprint)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      size_(size),
      fingerprint_(std::move(fingerprint)) {}

absl::StatusOr<std::unique_ptr<SourceFile>> SourceFile::Open(const std::string& path) {
  // Non-blocking: opening a named pipe must not wait for its writer.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoError(errno, "open", path);
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "stat", path);
  if (!S_ISREG(st.st_mode)) return errors::NotARegularFile(path);
  return Settle(std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<SourceFile>> SourceFile::OpenResolved(const std::string& path) {
  ASSIGN_OR_RETURN(UniqueFd fd, client::OpenResolved(path));
  return Settle(std::move(fd), path);
}

// Waits until a later write changes the times of the file.
absl::StatusOr<std::unique_ptr<SourceFile>> SourceFile::Settle(UniqueFd fd,
                                                               const std::string& path) {
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "stat", path);
  if (WrittenJustNow(st)) std::this_thread::sleep_for(kTimeStep);
  return Adopt(std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<SourceFile>> SourceFile::Adopt(UniqueFd fd, std::string name) {
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "stat", name);
  return std::unique_ptr<SourceFile>(
      new SourceFile(std::move(fd), std::move(name), st.st_size, FingerprintOf(st)));
}

absl::StatusOr<std::unique_ptr<SourceFile>> SourceFile::FromText(std::string_view text,
                                                                 std::string name) {
  UniqueFd fd(::memfd_create("muster-text", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "make", "a file in memory");
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0) return ErrnoError(errno, "write", "a file in memory");
    text.remove_prefix(static_cast<size_t>(written));
  }
  return Adopt(std::move(fd), std::move(name));
}

absl::Status SourceFile::ReadAt(int64_t offset, std::span<char> buffer) {
  size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = ::pread(fd_.get(), buffer.data() + done, buffer.size() - done,
                                offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SourceUnreadableError(ErrnoError(errno, "read", path_));
    if (got == 0) return errors::SourceChanged(path_);
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status SourceFile::CheckUnchanged() const {
  struct stat st;
  if (::fstat(fd_.get(), &st) != 0) {
    return SourceUnreadableError(ErrnoError(errno, "stat", path_));
  }
  if (FingerprintOf(st) != fingerprint_) return errors::SourceChanged(path_);
  return absl::OkStatus();
}

}  // namespace muster::client
