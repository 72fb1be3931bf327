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
#include "services/agent/jobs/file_modes.h"
#include "services/common/archive/tar_gz_reader.h"
#include "services/common/archive/tar_gz_writer.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/error.h"
#include "services/common/base/io.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/base/write_all.h"
#include "services/common/errors/workspaces.h"
#include "services/common/templates/files.h"

namespace muster {
namespace {

constexpr size_t kBuffer = size_t{64} << 10;

// Writes to a file, up to the largest archive.
class FileSink final : public ByteSink {
 public:
  explicit FileSink(File& file) : file_(file) {}

  absl::Status Write(std::string_view data) override {
    if (static_cast<int64_t>(data.size()) > kMaxWorkspaceArchive - size_) {
      status_ = errors::WorkspaceTooLarge(
          absl::StrCat("an archive of more than ", kMaxWorkspaceArchive >> 20, " MiB"));
    } else {
      status_ = file_.WriteAt(data, size_);
      size_ += static_cast<int64_t>(data.size());
    }
    return status_;
  }

  // Returns the failure of the last Write.
  const absl::Status& status() const { return status_; }

 private:
  File& file_;
  int64_t size_ = 0;
  absl::Status status_;
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

// Adds the content of a folder to an archive.
class Packer {
 public:
  Packer(TarGzWriter& writer, const std::function<bool()>& stopped)
      : writer_(writer), stopped_(stopped) {}

  // Returns whether to enter a folder.
  absl::StatusOr<bool> Add(const UntrustedEntry& entry) {
    if (stopped_()) return absl::CancelledError("the agent is being stopped");
    const bool is_file = S_ISREG(entry.info.st_mode);
    const bool is_folder = S_ISDIR(entry.info.st_mode);
    if ((!is_file && !is_folder) || !WhyInvalidPath(entry.path).empty()) {
      ++omitted_;
      return false;
    }
    RETURN_IF_ERROR(is_file ? AddFile(entry) : writer_.AddDirectory(entry.path));
    return true;
  }

  int64_t omitted() const { return omitted_; }

 private:
  absl::Status AddFile(const UntrustedEntry& entry) {
    const std::string name = absl::Utf8SafeCEscape(entry.path);
    const UniqueFd fd(
        openat(entry.folder, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) return ErrnoError(errno, "open", name);
    RETURN_IF_ERROR(
        writer_.BeginFile(entry.path, entry.info.st_size, (entry.info.st_mode & S_IXUSR) != 0));
    std::vector<char> buffer(kBuffer);
    int64_t left = entry.info.st_size;
    while (left > 0) {
      if (stopped_()) return absl::CancelledError("the agent is being stopped");
      const auto size = static_cast<size_t>(std::min(left, static_cast<int64_t>(kBuffer)));
      const ssize_t n = read(fd.get(), buffer.data(), size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError(errno, "read", name);
      if (n == 0) return errors::WorkspaceNotSaved(absl::StrCat(name, ": it became shorter"));
      RETURN_IF_ERROR(writer_.Write({buffer.data(), static_cast<size_t>(n)}));
      left -= n;
    }
    return writer_.EndFile().status();
  }

  TarGzWriter& writer_;
  const std::function<bool()>& stopped_;
  int64_t omitted_ = 0;
};

// Returns the failure of a folder or of its archive with the reason that tells whether another
// attempt may succeed.
absl::Status Classified(const absl::Status& failure, const FileSink& sink) {
  if (!sink.status().ok()) return sink.status();
  const std::string reason = ReasonOf(failure);
  if (absl::IsCancelled(failure) || reason == "SYSTEM_LIMIT" || reason == "WORKSPACE_NOT_SAVED") {
    return failure;
  }
  return errors::WorkspaceNotSaved(ToStd(failure.message()));
}

// Creates the files and folders of an archive.
class Unpacker {
 public:
  Unpacker(TarGzReader& reader, const std::string& folder) : reader_(reader), folder_(folder) {}

  absl::Status Unpack() {
    RETURN_IF_ERROR(MakeFolderWithMode(folder_, kAnyUserWrites));
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
    return is_folder ? MakeFolderWithMode(target, kAnyUserWrites) : AddFile(entry, target);
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
      RETURN_IF_ERROR(WriteAll(fd.get(), {buffer.data(), size}, target));
    }
    if (fchmod(fd.get(), entry.executable ? kAnyUserWrites : kAnyUserChanges) == 0) {
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
                                               const std::string& path,
                                               const std::function<bool()>& stopped) {
  if (const std::string what = WhyTooLarge(folder, kWorkspaceLimits); !what.empty()) {
    return errors::WorkspaceTooLarge(what);
  }
  ASSIGN_OR_RETURN(const auto file, ops.Create(path));
  FileSink sink(*file);
  ASSIGN_OR_RETURN(const auto writer, TarGzWriter::Create(sink, {}));
  Packer packer(*writer, stopped);
  const absl::Status packed =
      VisitUntrusted(folder, kWorkspaceLimits.levels,
                     [&](const UntrustedEntry& entry) { return packer.Add(entry); });
  if (!packed.ok()) return Classified(packed, sink);
  const auto info = writer->Finish();
  if (!info.ok()) return Classified(info.status(), sink);
  RETURN_IF_ERROR(file->SyncData());
  WorkspaceArchive archive;
  archive.size = info->size;
  archive.sha256 = absl::HexStringToBytes(info->sha256);
  archive.omitted = packer.omitted();
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
