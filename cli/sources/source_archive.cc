#include "cli/sources/source_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/archive/utf8_locale.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr size_t kBlock = size_t{64} << 10;
constexpr int64_t kMaxRatio = 100;
constexpr int64_t kFreeBytes = int64_t{1} << 20;
constexpr char kPackAgain[] = "Pack the source again, as zip, tar or tar.gz.";

struct FreeArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;

// Returns what an entry is if it is never accepted; empty for files and folders.
std::string_view OddityOf(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return "is a hard link";
  if (archive_entry_is_encrypted(entry) != 0) return "is encrypted";
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
    case AE_IFDIR:
      break;
    case AE_IFLNK:
      return "is a symbolic link";
    case AE_IFCHR:
    case AE_IFBLK:
      return "is a device";
    case AE_IFIFO:
      return "is a named pipe";
    default:
      return "is neither a file nor a folder";
  }
  if ((archive_entry_perm(entry) & 06000) != 0) return "has the mode setuid or setgid";
  return "";
}

// Returns a path without what tar adds to relative paths and to folders.
std::string_view PlainPath(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path == "." ? "" : path;
}

class ArchiveSource {
 public:
  ArchiveSource(const std::string& path, SourceFiles& files) : path_(path), files_(files) {}

  absl::StatusOr<ArchiveKind> Read() {
    RETURN_IF_ERROR(Open());
    const Utf8Locale utf8;
    for (;;) {
      archive_entry* entry = nullptr;
      const int result = archive_read_next_header(archive_.get(), &entry);
      if (result == ARCHIVE_EOF) break;
      // A warning is about an attribute that is not used; a name is checked.
      if (result != ARCHIVE_OK && result != ARCHIVE_WARN) return Damaged();
      RETURN_IF_ERROR(ReadEntry(entry));
    }
    const bool is_zip =
        (archive_format(archive_.get()) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP;
    return is_zip ? ArchiveKind::kZip : ArchiveKind::kTar;
  }

 private:
  absl::Status Open() {
    fd_.reset(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat info = {};
    if (!fd_.valid() || fstat(fd_.get(), &info) != 0) return ErrnoError(errno, "open", path_);
    if (!S_ISREG(info.st_mode)) return Unusable("it is not a regular file");
    most_bytes_ = kFreeBytes + kMaxRatio * info.st_size;
    archive_.reset(archive_read_new());
    archive* const a = archive_.get();
    // Only these readers are linked to foreign bytes.
    if (a == nullptr || archive_read_support_format_zip(a) != ARCHIVE_OK ||
        archive_read_support_format_tar(a) != ARCHIVE_OK ||
        archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
        archive_read_open_fd(a, fd_.get(), kBlock) != ARCHIVE_OK) {
      return Damaged();
    }
    return absl::OkStatus();
  }

  absl::Status ReadEntry(archive_entry* entry) {
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr) {
      return Unusable("an entry has a name that is not UTF-8");
    }
    const std::string_view path = PlainPath(name);
    if (const std::string_view oddity = OddityOf(entry); !oddity.empty()) {
      return files_.Refuse(name, oddity,
                           "Replace it by a regular file, and pack the source again.");
    }
    if (archive_entry_filetype(entry) == AE_IFDIR) {
      return path.empty() ? absl::OkStatus() : files_.AddFolder(path);
    }
    if (name[0] != '\0' && name[strlen(name) - 1] == '/') {
      return files_.Refuse(name, "is a file with the name of a folder", kPackAgain);
    }
    const bool known = archive_entry_size_is_set(entry) != 0;
    RETURN_IF_ERROR(files_.BeginFile(path, (archive_entry_perm(entry) & 0100) != 0,
                                     known ? archive_entry_size(entry) : -1));
    return ReadContent(path);
  }

  absl::Status ReadContent(std::string_view path) {
    for (;;) {
      const la_ssize_t got = archive_read_data(archive_.get(), buffer_.data(), buffer_.size());
      if (got == ARCHIVE_RETRY) continue;
      if (got < 0) return Damaged();
      if (got == 0) return absl::OkStatus();
      RETURN_IF_ERROR(files_.Append({buffer_.data(), static_cast<size_t>(got)}));
      if (files_.bytes() > most_bytes_) {
        return files_.Refuse(path,
                             absl::StrCat("makes the content more than ", kMaxRatio,
                                          " times as large as the archive"),
                             "Give the files as a folder.");
      }
    }
  }

  absl::Status Unusable(std::string_view why) const {
    return errors::SourceUnusable(path_, why, kPackAgain);
  }

  absl::Status Damaged() const {
    const char* text = archive_ == nullptr ? nullptr : archive_error_string(archive_.get());
    return Unusable(
        absl::StrCat("it is no zip, tar or tar.gz, or is damaged: ", text == nullptr ? "?" : text));
  }

  const std::string& path_;
  SourceFiles& files_;
  UniqueFd fd_;
  Archive archive_;
  int64_t most_bytes_ = 0;
  std::vector<char> buffer_ = std::vector<char>(kBlock);
};

}  // namespace

absl::StatusOr<ArchiveKind> ReadSourceArchive(const std::string& path, SourceFiles& files) {
  return ArchiveSource(path, files).Read();
}

}  // namespace muster::cli
