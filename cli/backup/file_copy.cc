#include "cli/backup/file_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string_view>

#include "services/common/base/errno_error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/unique_fd.h"

namespace muster::cli {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

// Reads `source` to its end, and writes it to `target` unless this is null.
absl::StatusOr<FileDigest> ReadToEnd(File& source, File* target) {
  FileDigest digest;
  Sha256 sha256;
  std::string buffer(kPiece, '\0');
  size_t count = 0;
  do {
    ASSIGN_OR_RETURN(count, source.ReadAt({buffer.data(), buffer.size()}, digest.size));
    const std::string_view data = std::string_view(buffer).substr(0, count);
    sha256.Update(data);
    if (target != nullptr) RETURN_IF_ERROR(target->WriteAt(data, digest.size));
    digest.size += static_cast<int64_t>(count);
  } while (count == buffer.size());
  digest.sha256 = ToHex(sha256.Finish());
  return digest;
}

// The newest credential tells which run is meant by default.
absl::Status CopyTime(const std::string& from, const std::string& to) {
  struct stat info = {};
  if (::stat(from.c_str(), &info) != 0) return ErrnoError(errno, "read the time of", from);
  const timespec times[] = {info.st_atim, info.st_mtim};
  if (::utimensat(AT_FDCWD, to.c_str(), times, 0) == 0) return absl::OkStatus();
  return ErrnoError(errno, "set the time of", to);
}

}  // namespace

absl::StatusOr<FileDigest> CopyFile(const std::string& from, const std::string& to) {
  FileOps& ops = PosixFileOps();
  ASSIGN_OR_RETURN(const auto source, ops.Open(from, OpenMode::kRead));
  FileDigest digest;
  {
    auto target = ops.Create(to);
    if (absl::IsNotFound(target.status())) {  // MakeFolders syncs: too slow for each file
      RETURN_IF_ERROR(MakeFolders(ops, ParentFolder(to)));
      target = ops.Create(to);
    }
    RETURN_IF_ERROR(target.status());
    ASSIGN_OR_RETURN(digest, ReadToEnd(*source, target->get()));
  }
  RETURN_IF_ERROR(CopyTime(from, to));
  return digest;
}

absl::StatusOr<FileDigest> DigestFile(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, PosixFileOps().Open(path, OpenMode::kRead));
  return ReadToEnd(*file, nullptr);
}

absl::StatusOr<bool> IsEmptyFolder(const std::string& path) {
  const auto entries = PosixFileOps().List(path);
  if (absl::IsNotFound(entries.status())) return true;
  if (!entries.ok()) return entries.status();
  return entries->empty();
}

absl::Status SyncFileSystem(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open", folder);
  return ::syncfs(fd.get()) == 0 ? absl::OkStatus() : ErrnoError(errno, "sync", folder);
}

}  // namespace muster::cli
