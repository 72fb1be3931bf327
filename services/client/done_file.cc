#include "services/client/done_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/client/directory_archive.h"
#include "services/client/open_resolved.h"
#include "services/client/source_file.h"
#include "services/common/base/backoff.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/base.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxDoneFile = 64 * 1024;  // a path has at most 4 KiB; the rest is white space

bool Exists(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0;
}

// Returns the content of the done file. A link is refused: errors quote the content, and the plugin
// may link to a file that it cannot read itself.
absl::StatusOr<std::string> ReadBounded(const std::string& done) {
  std::error_code error;
  const fs::path path = fs::canonical(fs::path(done).parent_path(), error) / "done";
  if (error) return ErrnoError(error.value(), "resolve", done);
  ASSIGN_OR_RETURN(UniqueFd fd, OpenResolved(path.string()));
  ASSIGN_OR_RETURN(const auto file, SourceFile::Adopt(std::move(fd), done));
  if (file->size() > kMaxDoneFile) return errors::FileTooLarge(done, kMaxDoneFile);
  std::string content(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->ReadAt(0, content));
  return content;
}

// Returns the path in the done file, made absolute.
absl::StatusOr<std::string> ReadDoneFile(const std::string& done, const std::string& results_dir) {
  const auto content = ReadBounded(done);
  if (!content.ok()) return errors::DoneFileInvalid(done, ToStd(content.status().message()));
  const std::string path(absl::StripAsciiWhitespace(*content));
  if (path.empty()) return errors::DoneFileInvalid(done, "it is empty");
  if (path.find('\0') != std::string::npos)
    return errors::DoneFileInvalid(done, "it contains a zero byte");
  return (fs::path(results_dir) / path).string();  // an absolute path replaces the folder
}

// Resolves links in `path`. The target must be in the results folder.
absl::StatusOr<std::string> ResolveInside(const std::string& path, const std::string& results_dir) {
  std::error_code error;
  const fs::path folder = fs::canonical(results_dir, error);
  if (error) return ErrnoError(error.value(), "resolve", results_dir);
  const fs::path real = fs::canonical(path, error);
  if (error) return ErrnoError(error.value(), "open the result named by the done file", path);
  const fs::path relative = real.lexically_relative(folder);
  if (relative.empty() || *relative.begin() == "..")
    return errors::DoneFileOutside(path, results_dir);
  return real.string();
}

// Returns true if an earlier process packed the folder after the done file was written: the same
// bytes let its upload be resumed. A link is not of that process.
bool ArchivedAlready(const std::string& archive, const std::string& done) {
  struct stat st;
  if (::lstat(archive.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
  std::error_code error;
  const auto archive_time = fs::last_write_time(archive, error);
  if (error) return false;
  const auto done_time = fs::last_write_time(done, error);
  return !error && archive_time > done_time;
}

}  // namespace

bool HasDoneFile(const std::string& results_dir) { return Exists(results_dir + "/done"); }

absl::StatusOr<std::string> ResultOfDoneFile(const std::string& results_dir) {
  const std::string done = results_dir + "/done";
  auto named = ReadDoneFile(done, results_dir);
  if (!named.ok()) return named;
  auto real = ResolveInside(*named, results_dir);
  if (!real.ok()) return real;
  std::error_code error;
  if (fs::is_regular_file(*real, error)) {
    if (::access(real->c_str(), R_OK) != 0) return ErrnoError(errno, "read", *real);
    return real;
  }
  if (!fs::is_directory(*real, error)) return errors::NotARegularFile(*real);
  std::string archive = *real + "/" + std::string(kDirectoryArchiveName);
  if (ArchivedAlready(archive, done)) return archive;
  RETURN_IF_ERROR(ArchiveDirectory(*real, std::string(kDirectoryArchiveName)));
  return archive;
}

absl::StatusOr<std::string> WaitForDoneFile(const DoneFileOptions& options,
                                            const std::stop_token& stop) {
  while (true) {
    if (!options.wait(absl::FromChrono(options.poll), stop)) return errors::Interrupted();
    if (!HasDoneFile(options.results_dir)) continue;
    if (!options.wait(absl::FromChrono(options.delay), stop)) return errors::Interrupted();
    if (!HasDoneFile(options.results_dir)) continue;
    return ResultOfDoneFile(options.results_dir);
  }
}

}  // namespace muster::client
