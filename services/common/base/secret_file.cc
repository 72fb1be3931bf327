#include "services/common/base/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/base/write_all.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path, size_t max_bytes) {
  std::string content;
  std::array<char, 16 * 1024> buffer;
  for (;;) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read", path);
    if (n == 0) return content;
    if (content.size() + static_cast<size_t>(n) > max_bytes) {
      return errors::FileTooLarge(path, max_bytes);
    }
    content.append(buffer.data(), static_cast<size_t>(n));
  }
}

absl::Status CheckOwnerAndMode(const std::string& path, const struct stat& info) {
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return errors::SecretFileExposed(path, "it belongs to another user",
                                     "Use a file of this user with mode 0600.");
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return absl::OkStatus();
  return errors::SecretFileExposed(
      path, "others than its owner can read or change it",
      info.st_uid == geteuid()
          ? absl::StrCat("Make a new secret if it may have been read; then: chmod 600 ", path)
          : "Use a file of this user with mode 0600.");
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path, std::string_view content, unsigned mode) {
  const std::filesystem::path target(path);
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  std::string temporary = absl::StrCat(folder, "/.", target.filename().string(), ".XXXXXX");
  const UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));  // 0600
  if (!fd.valid()) return ErrnoError(errno, "create a file in", folder);
  absl::Cleanup remove = [&] { unlink(temporary.c_str()); };
  RETURN_IF_ERROR(WriteAll(fd.get(), content, path));
  if (fchmod(fd.get(), mode) != 0) return ErrnoError(errno, "set the mode of", path);
  if (fsync(fd.get()) != 0) return ErrnoError(errno, "sync", path);
  if (rename(temporary.c_str(), path.c_str()) != 0) return ErrnoError(errno, "replace", path);
  std::move(remove).Cancel();
  return PosixFileOps().SyncFolder(folder);
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const CheckSecret& check) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ELOOP) {
    return errors::SecretFileExposed(path, "it is a symbolic link", "Name the file itself.");
  }
  if (!fd.valid()) return ErrnoError(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoError(errno, "inspect", path);
  if (!S_ISREG(info.st_mode))
    return errors::SecretFileExposed(path, "it is not a regular file", "Name a regular file.");
  const absl::Status exposed = CheckOwnerAndMode(path, info);
  if (exposed.ok()) return ReadAll(fd.get(), path, kMaxSecretFile);
  if (check) {
    ASSIGN_OR_RETURN(const std::string content, ReadAll(fd.get(), path, kMaxSecretFile));
    RETURN_IF_ERROR(check(content));
  }
  return exposed;
}

absl::StatusOr<std::string> ReadFileBounded(const std::string& path, size_t max_bytes) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoError(errno, "inspect", path);
  if (!S_ISREG(info.st_mode)) {
    return errors::NotAPlainFile(path);
  }
  return ReadAll(fd.get(), path, max_bytes);
}

absl::StatusOr<std::string> ReadStdinBounded(size_t max_bytes) {
  return ReadAll(STDIN_FILENO, "standard input", max_bytes);
}

}  // namespace muster
