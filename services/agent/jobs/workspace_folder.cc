#include "services/agent/jobs/workspace_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/agent/jobs/deployment_files.h"
#include "services/common/archive/tar_gz_reader.h"
#include "services/common/archive/tar_gz_writer.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/io.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/workspaces.h"
#include "services/common/templates/files.h"

namespace muster {
namespace {

constexpr size_t kBuffer = size_t{64} << 10;
constexpr mode_t kAnyUser = 0777;
constexpr mode_t kAnyUserNoProgram = 0666;

// Writes to a file, up to the largest archive.
class FileSink final : public ByteSink {
 public:
  explicit FileSink(File& file) : file_(file) {}

  absl::Status Write(std::string_view data) override {
    if (static_cast<int64_t>(data.size()) > kMaxWorkspaceArchive - size_) {
      return errors::WorkspaceTooLarge(
          absl::StrCat("an archive of more than ", kMaxWorkspaceArchive >> 20, " MiB"));
    }
    RETURN_IF_ERROR(file_.WriteAt(data, size_));
    size_ += static_cast<int64_t>(data.size());
    return absl::OkStatus();
  }

 private:
  File& file_;
  int64_t size_ = 0;
};

class FileReader final : public ByteSource {
 public:
  explicit FileReader(File& file) : file_(file) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    ASSIGN_OR_RETURN(const size_t size, file_.ReadAt(buffer, offset_));
    offset_ += static_cast<int64_t>(size);
    return size;
  }

 private:
  File& file_;
  int64_t offset_ = 0;
};

absl::Status NotSaved(const UntrustedEntry& entry, absl::string_view why) {
  return errors::WorkspaceNotSaved(absl::StrCat(absl::Utf8SafeCEscape(entry.path), ": ", why));
}

// Adds a regular file of the folder.
absl::Status PackFile(const UntrustedEntry& entry, TarGzWriter& writer) {
  const UniqueFd fd(
      openat(entry.folder, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return NotSaved(entry, ErrnoError(errno, "open", entry.name).message());
  RETURN_IF_ERROR(
      writer.BeginFile(entry.path, entry.info.st_size, (entry.info.st_mode & S_IXUSR) != 0));
  std::vector<char> buffer(kBuffer);
  int64_t left = entry.info.st_size;
  while (left > 0) {
    const auto size = static_cast<size_t>(std::min(left, static_cast<int64_t>(kBuffer)));
    const ssize_t n = read(fd.get(), buffer.data(), size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return NotSaved(entry, ErrnoError(errno, "read", entry.name).message());
    if (n == 0) return NotSaved(entry, "it became shorter");
    RETURN_IF_ERROR(writer.Write({buffer.data(), static_cast<size_t>(n)}));
    left -= n;
  }
  return writer.EndFile().status();
}

// Creates the files and folders of an archive.
class Unpacker {
 public:
  Unpacker(TarGzReader& reader, const std::string& folder) : reader_(reader), folder_(folder) {}

  absl::Status Unpack() {
    RETURN_IF_ERROR(MakeFolderWithMode(folder_, kAnyUser));
    for (;;) {
      ASSIGN_OR_RETURN(const auto entry, reader_.Next());
      if (!entry) return absl::OkStatus();
      RETURN_IF_ERROR(Add(*entry));
    }
  }

 private:
  absl::Status Invalid(const TarEntry& entry, std::string_view why) {
    return errors::WorkspaceUnavailable(
        absl::StrCat("its archive has an entry \"",
                     absl::Utf8SafeCEscape(entry.path.substr(0, 300)), "\": ", ToAbsl(why)));
  }

  absl::Status Add(const TarEntry& entry) {
    const bool is_folder = entry.type == TarEntry::Type::kDirectory;
    if (entry.type == TarEntry::Type::kOther) return Invalid(entry, entry.oddity);
    std::string_view path = entry.path;
    if (is_folder && path.ends_with('/')) path.remove_suffix(1);
    if (const std::string why = WhyInvalidPath(path); !why.empty()) return Invalid(entry, why);
    if (++entries_ > kWorkspaceLimits.entries) return Invalid(entry, "it is beyond the limit");
    const std::string target = absl::StrCat(folder_, "/", ToAbsl(path));
    return is_folder ? MakeFolderWithMode(target, kAnyUser) : AddFile(entry, target);
  }

  absl::Status AddFile(const TarEntry& entry, const std::string& target) {
    const UniqueFd fd(
        open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR));
    if (!fd.valid()) return ErrnoError(errno, "create", target);
    std::vector<char> buffer(kBuffer);
    for (;;) {
      ASSIGN_OR_RETURN(const size_t size, reader_.Read(buffer));
      if (size == 0) break;
      bytes_ += static_cast<int64_t>(size);
      if (bytes_ > kWorkspaceLimits.bytes) return Invalid(entry, "it is beyond the limit");
      for (size_t written = 0; written < size;) {
        const ssize_t n = write(fd.get(), buffer.data() + written, size - written);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ErrnoError(errno, "write", target);
        written += static_cast<size_t>(n);
      }
    }
    if (fchmod(fd.get(), entry.executable ? kAnyUser : kAnyUserNoProgram) == 0) {
      return absl::OkStatus();
    }
    return ErrnoError(errno, "set the mode of", target);
  }

  TarGzReader& reader_;
  const std::string folder_;
  int64_t entries_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<WorkspaceArchive> PackWorkspace(FileOps& ops, const std::string& folder,
                                               const std::string& path) {
  if (const std::string what = WhyTooLarge(folder, kWorkspaceLimits); !what.empty()) {
    return errors::WorkspaceTooLarge(what);
  }
  ASSIGN_OR_RETURN(const auto file, ops.Create(path));
  FileSink sink(*file);
  ASSIGN_OR_RETURN(const auto writer, TarGzWriter::Create(sink, {}));
  WorkspaceArchive archive;
  const absl::Status packed = VisitUntrusted(
      folder, kWorkspaceLimits.levels, [&](const UntrustedEntry& entry) -> absl::StatusOr<bool> {
        const bool is_file = S_ISREG(entry.info.st_mode);
        const bool is_folder = S_ISDIR(entry.info.st_mode);
        if ((!is_file && !is_folder) || !WhyInvalidPath(entry.path).empty()) {
          ++archive.omitted;
          return false;
        }
        if (is_file) {
          RETURN_IF_ERROR(PackFile(entry, *writer));
        } else {
          RETURN_IF_ERROR(writer->AddDirectory(entry.path));
        }
        return true;
      });
  if (absl::IsPermissionDenied(packed) || absl::IsOutOfRange(packed) || absl::IsNotFound(packed)) {
    return errors::WorkspaceNotSaved(ToStd(packed.message()));
  }
  RETURN_IF_ERROR(packed);
  ASSIGN_OR_RETURN(const ContentInfo info, writer->Finish());
  RETURN_IF_ERROR(file->SyncData());
  archive.size = info.size;
  archive.sha256 = absl::HexStringToBytes(info.sha256);
  return archive;
}

absl::Status UnpackWorkspace(FileOps& ops, const std::string& path, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto file, ops.Open(path, OpenMode::kRead));
  FileReader source(*file);
  auto reader = TarGzReader::Open(source, kOwnArchive);
  const absl::Status status = reader.ok() ? Unpacker(**reader, folder).Unpack() : reader.status();
  // A fault of the archive.
  if (absl::IsInvalidArgument(status)) {
    return errors::WorkspaceUnavailable(ToStd(status.message()));
  }
  return status;
}

}  // namespace muster
