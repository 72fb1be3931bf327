#include "cli/sources/folder_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kRegularFiles[] = "Replace it by a regular file.";
constexpr size_t kReadBuffer = size_t{256} << 10;

absl::Status AddFile(const fs::path& path, const std::string& name, SourceFiles& files) {
  const UniqueFd file(
      open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid() && errno == ELOOP) {
    return files.Refuse(name, "is a symbolic link", kRegularFiles);
  }
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    return files.Refuse(name, strerror(errno), "Let this user read it.");
  }
  if (!S_ISREG(info.st_mode)) return files.Refuse(name, "is not a regular file", kRegularFiles);
  RETURN_IF_ERROR(
      files.BeginFile(name, (info.st_mode & S_IXUSR) != 0, info.st_size, path.string()));
  std::vector<char> buffer(kReadBuffer);
  for (;;) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return files.Refuse(name, strerror(errno), "Check the disk.");
    if (got == 0) return absl::OkStatus();
    RETURN_IF_ERROR(files.Append({buffer.data(), static_cast<size_t>(got)}));
  }
}

}  // namespace

absl::Status ReadFolderSource(const std::string& folder, SourceFiles& files) {
  std::error_code fault;
  fs::recursive_directory_iterator entry(folder, fault);
  for (; !fault && entry != fs::recursive_directory_iterator(); entry.increment(fault)) {
    const std::string name = entry->path().lexically_relative(folder).string();
    if (entry->path().filename() == ".git") {
      entry.disable_recursion_pending();
    } else if (entry->is_directory(fault) && !entry->is_symlink(fault)) {
      RETURN_IF_ERROR(files.AddFolder(name));
    } else {
      RETURN_IF_ERROR(AddFile(entry->path(), name, files));
    }
  }
  if (!fault) return absl::OkStatus();
  return errors::SourceUnusable(folder, fault.message(), "Let this user read the folder.");
}

absl::Status ReadFileSource(const std::string& path, SourceFiles& files) {
  if (struct stat info = {}; lstat(path.c_str(), &info) != 0) {
    return ErrnoError(errno, "open", path);
  }
  return AddFile(path, fs::path(path).filename().string(), files);
}

}  // namespace muster::cli
