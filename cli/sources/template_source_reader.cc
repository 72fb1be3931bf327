#include "cli/sources/template_source_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/sources/source_archive.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/signed_command.h"
#include "services/common/templates/template_source.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

// The files are a part of the signed command.
constexpr SourceLimits kLimits = {.bytes = static_cast<int64_t>(kMaxCommand)};
constexpr char kRegularFiles[] = "Replace it by a regular file.";

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
  RETURN_IF_ERROR(files.BeginFile(name, (info.st_mode & S_IXUSR) != 0, info.st_size));
  std::array<char, 65'536> buffer;
  for (;;) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return files.Refuse(name, strerror(errno), "Check the disk.");
    if (got == 0) return absl::OkStatus();
    RETURN_IF_ERROR(files.Append({buffer.data(), static_cast<size_t>(got)}));
  }
}

absl::Status ReadFolder(const std::string& folder, SourceFiles& files) {
  std::error_code fault;
  fs::recursive_directory_iterator entry(folder, fault);
  for (; !fault && entry != fs::recursive_directory_iterator(); entry.increment(fault)) {
    const std::string name = entry->path().lexically_relative(folder).string();
    if (entry->is_directory(fault) && !entry->is_symlink(fault)) {
      RETURN_IF_ERROR(files.AddFolder(name));
    } else {
      RETURN_IF_ERROR(AddFile(entry->path(), name, files));
    }
  }
  if (!fault) return absl::OkStatus();
  return errors::SourceUnusable(folder, fault.message(), "Let this user read the folder.");
}

}  // namespace

absl::StatusOr<TemplateSourceFiles> ReadTemplateSource(const std::string& from,
                                                       const GitOptions& git) {
  TemplateSourceFiles read;
  SourceFiles files(from, kLimits);
  std::error_code fault;
  if (IsGitAddress(from)) {
    ASSIGN_OR_RETURN(const GitAddress address, ParseGitAddress(from));
    ASSIGN_OR_RETURN(*read.source.mutable_commit(), ReadGitSource(address, git, files));
    read.source.set_kind(std::string(kGitSource));
    read.source.set_url(address.url);
    read.source.set_folder(address.folder);
  } else if (fs::is_directory(from, fault)) {
    RETURN_IF_ERROR(ReadFolder(from, files));
    read.source.set_kind(std::string(kFolderSource));
  } else {
    ASSIGN_OR_RETURN(const ArchiveKind kind, ReadSourceArchive(from, files));
    read.source.set_kind(std::string(kind == ArchiveKind::kZip ? kZipSource : kTarSource));
  }
  ASSIGN_OR_RETURN(read.files, files.Finish());
  read.source.set_sha256(SourceDigest(read.files));
  return read;
}

}  // namespace muster::cli
