#include "services/client/directory_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "services/client/open_resolved.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

struct FreeArchive {
  void operator()(archive* a) const { archive_write_free(a); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;

struct FreeEntry {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

std::string ErrnoText() { return std::generic_category().message(errno); }

std::string Fault(archive* a) {
  const char* text = archive_error_string(a);
  return text == nullptr ? "unknown fault" : text;
}

absl::StatusOr<std::vector<fs::path>> List(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  while (!error && it != fs::recursive_directory_iterator()) {
    paths.push_back(it->path());
    it.increment(error);
  }
  if (error) return errors::ArchiveFailed(folder, error.message());
  std::ranges::sort(paths);
  return paths;
}

absl::Status CopyContent(const fs::path& path, int fd, int64_t size, archive* to) {
  std::vector<char> buffer(256 * 1024);
  while (size > 0) {
    const auto wanted = static_cast<size_t>(std::min(size, static_cast<int64_t>(buffer.size())));
    const ssize_t got = ::read(fd, buffer.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errors::ArchiveFailed(path.string(), ErrnoText());
    if (got == 0) return errors::SourceChanged(path.string());
    if (archive_write_data(to, buffer.data(), got) != got) {
      return errors::ArchiveFailed(path.string(), Fault(to));
    }
    size -= got;
  }
  return absl::OkStatus();
}

absl::Status AddEntry(const fs::path& path, const std::string& name, archive* to) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) return errors::ArchiveFailed(path.string(), ErrnoText());
  UniqueFd content;
  const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
  if (S_ISREG(st.st_mode)) {
    auto opened = OpenResolved(path.string());
    if (!opened.ok()) {
      return errors::ArchiveFailed(path.string(), ToStd(opened.status().message()));
    }
    content = *std::move(opened);
    if (::fstat(content.get(), &st) != 0) {
      return errors::ArchiveFailed(path.string(), ErrnoText());
    }
    archive_entry_set_size(entry.get(), st.st_size);
  } else if (S_ISLNK(st.st_mode)) {
    std::error_code error;
    archive_entry_set_symlink(entry.get(), fs::read_symlink(path, error).c_str());
    if (error) return errors::ArchiveFailed(path.string(), error.message());
  } else if (!S_ISDIR(st.st_mode)) {
    return absl::OkStatus();
  }
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_mode(entry.get(), st.st_mode);
  archive_entry_set_mtime(entry.get(), st.st_mtim.tv_sec, 0);
  if (archive_write_header(to, entry.get()) != ARCHIVE_OK) {
    return errors::ArchiveFailed(path.string(), Fault(to));
  }
  return S_ISREG(st.st_mode) ? CopyContent(path, content.get(), st.st_size, to) : absl::OkStatus();
}

absl::Status WriteArchive(const std::string& folder, const std::vector<fs::path>& paths,
                          const std::string& archive, const std::string& partial) {
  // An earlier process may have left it. A link that the plugin put there is removed, not followed.
  ::unlink(partial.c_str());
  const UniqueFd file(
      ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.valid()) return errors::ArchiveFailed(folder, ErrnoText());
  const Archive to(archive_write_new());
  // A time in the gzip header would make two archives of equal files differ.
  if (archive_write_add_filter_gzip(to.get()) != ARCHIVE_OK ||
      archive_write_set_filter_option(to.get(), "gzip", "timestamp", nullptr) != ARCHIVE_OK ||
      archive_write_set_format_pax_restricted(to.get()) != ARCHIVE_OK ||
      archive_write_open_fd(to.get(), file.get()) != ARCHIVE_OK) {
    return errors::ArchiveFailed(folder, Fault(to.get()));
  }
  for (const fs::path& path : paths) {
    if (path == archive || path == partial) continue;
    const std::string name = path.lexically_relative(folder).string();
    RETURN_IF_ERROR(AddEntry(path, name, to.get()));
  }
  if (archive_write_close(to.get()) != ARCHIVE_OK)
    return errors::ArchiveFailed(folder, Fault(to.get()));
  return absl::OkStatus();
}

}  // namespace

absl::Status ArchiveDirectory(const std::string& folder, const std::string& name) {
  ASSIGN_OR_RETURN(auto paths, List(folder));
  const std::string archive = absl::StrCat(folder, "/", name);
  const std::string partial = archive + ".partial";
  auto status = WriteArchive(folder, paths, archive, partial);
  std::error_code error;
  if (status.ok()) {
    fs::rename(partial, archive, error);
    if (error) status = errors::ArchiveFailed(folder, error.message());
  }
  if (!status.ok()) fs::remove(partial, error);
  return status;
}

}  // namespace muster::client
