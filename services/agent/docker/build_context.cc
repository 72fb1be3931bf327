#include "services/agent/docker/build_context.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/archive/utf8_locale.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/templates/files.h"

namespace muster {
namespace {

constexpr char kFilesFolder[] = "files";
constexpr unsigned kPlain = 0644;
constexpr unsigned kExecutable = 0755;
constexpr size_t kPart = size_t{64} << 10;
// 1980-01-01: some programs refuse earlier times, such as those of zip archives.
constexpr time_t kTime = 315'532'800;

}  // namespace

std::string DockerfileOf(const ImageRecipe& recipe) {
  std::string labels;
  for (const auto& [name, value] : recipe.labels) {
    absl::StrAppend(&labels, " \"", name, "\"=\"", value, "\"");
  }
  return absl::StrCat("FROM ", recipe.base, "\n", labels.empty() ? "" : "LABEL", labels, "\n",
                      "COPY [\"", kFilesFolder, "/\", \"", recipe.folder, "/\"]\n");
}

BuildContext::BuildContext(const ImageRecipe& recipe, const BuildFiles& files)
    : dockerfile_(DockerfileOf(recipe)), files_(files), archive_(archive_write_new()) {
  archive* const a = archive_.get();
  if (a == nullptr) return;
  archive_write_set_format_pax_restricted(a);
  archive_write_add_filter_none(a);
  archive_write_set_bytes_per_block(a, 0);  // bytes are passed on as they are written
  const auto add = [](archive*, void* self, const void* data, size_t size) -> la_ssize_t {
    static_cast<BuildContext*>(self)->pending_.append(static_cast<const char*>(data), size);
    return static_cast<la_ssize_t>(size);
  };
  archive_write_open(a, this, nullptr, add, nullptr);
}

BuildContext::~BuildContext() = default;

void BuildContext::Free::operator()(archive* a) const { archive_write_free(a); }

absl::StatusOr<size_t> BuildContext::Read(std::span<char> buffer) {
  if (archive_ == nullptr) return Failure();
  while (read_ == pending_.size() && !ended_) {
    pending_.clear();
    read_ = 0;
    RETURN_IF_ERROR(WriteNext());
  }
  const size_t size = std::min(buffer.size(), pending_.size() - read_);
  std::copy_n(pending_.data() + read_, size, buffer.data());
  read_ += size;
  return size;
}

absl::Status BuildContext::WriteNext() {
  if (next_ == files_.files.size()) {
    ended_ = true;
    return archive_write_close(archive_.get()) == ARCHIVE_OK ? absl::OkStatus() : Failure();
  }
  const v1::Command::File* const file = next_ < 0 ? nullptr : &files_.files[next_];
  const int64_t size = file == nullptr ? static_cast<int64_t>(dockerfile_.size()) : SizeOf(*file);
  if (!header_written_) {
    header_written_ = true;
    return file == nullptr ? WriteHeader(kDockerfileName, size, kPlain)
                           : WriteHeader(absl::StrCat(kFilesFolder, "/", file->path()), size,
                                         file->executable() ? kExecutable : kPlain);
  }
  if (offset_ < size) {
    ASSIGN_OR_RETURN(const std::string_view part, NextPart());
    const la_ssize_t written = archive_write_data(archive_.get(), part.data(), part.size());
    if (written != static_cast<la_ssize_t>(part.size())) return Failure();
    offset_ += written;
    if (offset_ < size) return absl::OkStatus();
  }
  if (archive_write_finish_entry(archive_.get()) != ARCHIVE_OK) return Failure();
  ++next_;
  offset_ = 0;
  header_written_ = false;
  stored_.reset();
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> BuildContext::NextPart() {
  const auto offset = static_cast<size_t>(offset_);
  if (next_ < 0) return std::string_view(dockerfile_).substr(offset, kPart);
  const v1::Command::File& file = files_.files[next_];
  if (!IsStored(file)) return std::string_view(file.content()).substr(offset, kPart);
  const std::string path = absl::StrCat(files_.folder, "/", file.path());
  if (!stored_.valid()) stored_.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  part_.resize(std::min(kPart, static_cast<size_t>(file.size() - offset_)));
  const ssize_t got =
      stored_.valid() ? TEMP_FAILURE_RETRY(read(stored_.get(), part_.data(), part_.size())) : -1;
  if (got < 0) return ErrnoError(errno, stored_.valid() ? "read" : "open", path);
  if (got == 0) return absl::DataLossError(absl::StrCat(path, " is shorter than it was"));
  return std::string_view(part_).substr(0, static_cast<size_t>(got));
}

absl::Status BuildContext::WriteHeader(const std::string& path, int64_t size, unsigned mode) {
  const Utf8Locale utf8;
  archive_entry* const entry = archive_entry_new();
  if (entry == nullptr) return Failure();
  archive_entry_set_pathname(entry, path.c_str());
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, mode);
  archive_entry_set_size(entry, size);
  archive_entry_set_mtime(entry, kTime, 0);
  archive_entry_set_uid(entry, 0);
  archive_entry_set_gid(entry, 0);
  const int result = archive_write_header(archive_.get(), entry);
  archive_entry_free(entry);
  return result == ARCHIVE_OK || result == ARCHIVE_WARN ? absl::OkStatus() : Failure();
}

absl::Status BuildContext::Failure() const {
  const char* why = archive_ == nullptr ? nullptr : archive_error_string(archive_.get());
  return absl::ResourceExhaustedError(absl::StrCat("the context of a build cannot be written: ",
                                                   why == nullptr ? "no memory" : why));
}

}  // namespace muster
