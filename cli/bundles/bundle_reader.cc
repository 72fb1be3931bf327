#include "cli/bundles/bundle_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "services/common/archive/utf8_locale.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

struct FreeArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};

class Reader {
 public:
  Reader(const std::string& path, const std::string& folder, const BundleProgress& progress)
      : path_(path), folder_(folder), progress_(progress) {}

  absl::StatusOr<std::vector<BundleMember>> Unpack(int64_t* total) {
    RETURN_IF_ERROR(Open());
    const Utf8Locale utf8;
    ASSIGN_OR_RETURN(const std::string text, ReadIndex());
    ASSIGN_OR_RETURN(auto members, ParseBundleIndex(text, path_));
    *total = 0;
    for (const BundleMember& member : members) *total += member.size;
    if (*total > size_) return Unusable("it is shorter than its members: it was truncated");
    RETURN_IF_ERROR(CheckSpace(*total));
    for (const BundleMember& member : members) RETURN_IF_ERROR(UnpackMember(member));
    ASSIGN_OR_RETURN(archive_entry* const entry, NextEntry());
    if (entry != nullptr) return Unexpected(entry);
    return members;
  }

 private:
  absl::Status Open() {
    fd_.reset(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat info = {};
    if (!fd_.valid() || fstat(fd_.get(), &info) != 0) return ErrnoError(errno, "open", path_);
    if (!S_ISREG(info.st_mode)) return Unusable("it is not a regular file");
    size_ = info.st_size;
    archive_.reset(archive_read_new());
    archive* const a = archive_.get();
    // No reader of a compression is admitted, so nothing grows.
    if (a == nullptr || archive_read_support_format_tar(a) != ARCHIVE_OK ||
        archive_read_open_fd(a, fd_.get(), kBlock) != ARCHIVE_OK) {
      return Damaged();
    }
    return absl::OkStatus();
  }

  // Returns null at the end of the archive.
  absl::StatusOr<archive_entry*> NextEntry() {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_.get(), &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    if (result != ARCHIVE_OK) return Damaged();
    return entry;
  }

  // Fails unless the next entry is a regular file with this path.
  absl::StatusOr<archive_entry*> ExpectFile(std::string_view path) {
    ASSIGN_OR_RETURN(archive_entry* const entry, NextEntry());
    if (entry == nullptr) {
      return Unusable(absl::StrCat("it has no ", ToAbsl(path), ": it was truncated"));
    }
    const char* const name = archive_entry_pathname(entry);
    if (name == nullptr || path != name) return Unexpected(entry);
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr ||
        archive_entry_sparse_count(entry) > 0 || archive_entry_size_is_set(entry) == 0) {
      return Unusable(absl::StrCat(ToAbsl(path), " is not a regular file"));
    }
    return entry;
  }

  absl::StatusOr<std::string> ReadIndex() {
    ASSIGN_OR_RETURN(archive_entry* const entry, ExpectFile(kIndexPath));
    const int64_t size = archive_entry_size(entry);
    if (size < 0 || size > static_cast<int64_t>(kMaxIndex)) {
      return Unusable(absl::StrCat("its index is larger than ", kMaxIndex >> 20, " MiB"));
    }
    std::string text;
    RETURN_IF_ERROR(ReadContent(kIndexPath, size, [&](std::string_view piece) {
      text.append(piece);
      return absl::OkStatus();
    }));
    return text;
  }

  absl::Status CheckSpace(int64_t needed) const {
    struct statvfs space = {};
    if (statvfs(folder_.c_str(), &space) != 0) return ErrnoError(errno, "inspect", folder_);
    const auto free = static_cast<int64_t>(space.f_bavail * space.f_frsize);
    if (needed <= free) return absl::OkStatus();
    return errors::BundleNeedsSpace(std::filesystem::path(folder_).parent_path().string(),
                                    HumanSize(needed), HumanSize(free));
  }

  absl::Status UnpackMember(const BundleMember& member) {
    ASSIGN_OR_RETURN(archive_entry* const entry, ExpectFile(member.path));
    if (archive_entry_size(entry) != member.size) {
      return Unusable(absl::StrCat(member.path, " has another size than the index says"));
    }
    const std::filesystem::path target = std::filesystem::path(folder_) / member.path;
    std::error_code fault;
    std::filesystem::create_directories(target.parent_path(), fault);
    const UniqueFd file(open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid()) return ErrnoError(errno, "create", target.string());
    Sha256 digest;
    RETURN_IF_ERROR(ReadContent(member.path, member.size, [&](std::string_view piece) {
      digest.Update(piece);
      RETURN_IF_ERROR(Write(file, piece, target.string()));
      done_ += static_cast<int64_t>(piece.size());
      return progress_(done_);
    }));
    if (ToHex(digest.Finish()) == member.sha256) return absl::OkStatus();
    return Unusable(absl::StrCat(member.path, " is damaged: its SHA-256 is another one"));
  }

  template <typename Sink>
  absl::Status ReadContent(std::string_view path, int64_t size, const Sink& sink) {
    int64_t read = 0;
    for (;;) {
      const la_ssize_t got = archive_read_data(archive_.get(), buffer_.data(), buffer_.size());
      if (got == ARCHIVE_RETRY) continue;
      if (got < 0) return Damaged();
      if (got == 0) break;
      read += got;
      if (read > size) break;
      RETURN_IF_ERROR(sink({buffer_.data(), static_cast<size_t>(got)}));
    }
    if (read == size) return absl::OkStatus();
    return Unusable(absl::StrCat(ToAbsl(path), " has another size than its header says"));
  }

  static absl::Status Write(const UniqueFd& file, std::string_view data, const std::string& path) {
    while (!data.empty()) {
      const ssize_t written = write(file.get(), data.data(), data.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return ErrnoError(errno, "write", path);
      data.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Unusable(std::string_view why) const { return errors::BundleUnusable(path_, why); }

  absl::Status Unexpected(archive_entry* entry) const {
    const char* const name = archive_entry_pathname(entry);
    return Unusable(absl::StrCat("the member \"", Printable(name == nullptr ? "?" : name),
                                 "\" is not the one that its index names"));
  }

  absl::Status Damaged() const {
    const char* text = archive_ == nullptr ? nullptr : archive_error_string(archive_.get());
    return Unusable(absl::StrCat("it is no bundle, or is damaged: ",
                                 text == nullptr ? "not a tar" : Printable(text)));
  }

  const std::string& path_;
  const std::string& folder_;
  const BundleProgress& progress_;
  UniqueFd fd_;
  int64_t size_ = 0;
  std::unique_ptr<archive, FreeArchive> archive_;
  std::vector<char> buffer_ = std::vector<char>(kBlock);
  int64_t done_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<BundleMember>> UnpackBundle(const std::string& path,
                                                       const std::string& folder, int64_t* total,
                                                       const BundleProgress& progress) {
  return Reader(path, folder, progress).Unpack(total);
}

}  // namespace muster::cli
