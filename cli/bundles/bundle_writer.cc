#include "cli/bundles/bundle_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/unique_fd.h"

namespace muster::cli {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

struct FreeArchive {
  void operator()(archive* a) const { archive_write_free(a); }
};

class Writer {
 public:
  Writer(const std::string& path, const BundleProgress& progress)
      : path_(path), progress_(progress) {}

  absl::Status Open() {
    fd_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd_.valid()) return ErrnoError(errno, "create", path_);
    archive_.reset(archive_write_new());
    archive* const a = archive_.get();
    if (a == nullptr || archive_write_set_format_pax_restricted(a) != ARCHIVE_OK ||
        archive_write_add_filter_none(a) != ARCHIVE_OK ||
        archive_write_open_fd(a, fd_.get()) != ARCHIVE_OK) {
      return Failed();
    }
    return absl::OkStatus();
  }

  absl::Status AddText(const std::string& name, const std::string& text) {
    RETURN_IF_ERROR(Begin(name, static_cast<int64_t>(text.size())));
    return Append(text);
  }

  absl::Status AddFile(const std::string& source, const BundleMember& member) {
    const UniqueFd file(open(source.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file.valid()) return ErrnoError(errno, "open", source);
    RETURN_IF_ERROR(Begin(member.path, member.size));
    Sha256 digest;
    int64_t size = 0;
    for (;;) {
      const ssize_t got = read(file.get(), buffer_.data(), buffer_.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoError(errno, "read", source);
      if (got == 0) break;
      const std::string_view piece(buffer_.data(), static_cast<size_t>(got));
      size += got;
      if (size > member.size) break;
      digest.Update(piece);
      RETURN_IF_ERROR(Append(piece));
      done_ += got;
      RETURN_IF_ERROR(progress_(done_));
    }
    if (size == member.size && ToHex(digest.Finish()) == member.sha256) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(source, " has changed since it was read"));
  }

  absl::Status Finish() {
    if (archive_write_close(archive_.get()) != ARCHIVE_OK) return Failed();
    if (fsync(fd_.get()) != 0) return ErrnoError(errno, "sync", path_);
    return absl::OkStatus();
  }

 private:
  absl::Status Begin(const std::string& name, int64_t size) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              archive_entry_free);
    if (entry == nullptr) return absl::ResourceExhaustedError("no memory");
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), size);
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), 0, 0);
    return archive_write_header(archive_.get(), entry.get()) == ARCHIVE_OK ? absl::OkStatus()
                                                                           : Failed();
  }

  absl::Status Append(std::string_view data) {
    while (!data.empty()) {
      const la_ssize_t written = archive_write_data(archive_.get(), data.data(), data.size());
      if (written <= 0) return Failed();
      data.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Failed() const {
    const int error = archive_ == nullptr ? ENOMEM : archive_errno(archive_.get());
    return ErrnoError(error > 0 ? error : EIO, "write", path_);
  }

  const std::string& path_;
  const BundleProgress& progress_;
  UniqueFd fd_;
  std::unique_ptr<archive, FreeArchive> archive_;
  std::vector<char> buffer_ = std::vector<char>(kBlock);
  int64_t done_ = 0;
};

}  // namespace

absl::Status WriteBundle(const std::string& folder, std::vector<BundleMember> members,
                         const std::string& path, const BundleProgress& progress) {
  std::ranges::sort(members, {}, &BundleMember::path);
  Writer writer(path, progress);
  RETURN_IF_ERROR(writer.Open());
  RETURN_IF_ERROR(writer.AddText(kIndexPath, BundleIndexText(members)));
  for (const BundleMember& member : members) {
    RETURN_IF_ERROR(writer.AddFile(absl::StrCat(folder, "/", member.path), member));
  }
  return writer.Finish();
}

}  // namespace muster::cli
