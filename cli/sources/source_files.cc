#include "cli/sources/source_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/printable.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/text_values.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/cli.h"
#include "services/common/templates/files.h"

namespace muster::cli {
namespace {

constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/";
constexpr size_t kMostShown = 300;

}  // namespace

absl::Status SourceFiles::Refuse(std::string_view path, std::string_view why,
                                 std::string_view next_step) const {
  const std::string shown = Printable(path);
  return errors::SourceRefused(source_, CutUtf8(shown, kMostShown), why, next_step);
}

absl::Status SourceFiles::CheckEntry(std::string_view path) {
  if (++entries_ > limits_.entries) {
    return Refuse(path, absl::StrCat("is one of more than ", limits_.entries, " files and folders"),
                  "Remove files that are not needed.");
  }
  if (const std::string why = WhyInvalidPath(path); !why.empty()) {
    return Refuse(path, why, "Rename it, and pack the source again.");
  }
  if (std::ranges::count(path, '/') >= limits_.levels) {
    return Refuse(path, absl::StrCat("has more than ", limits_.levels, " levels of folders"),
                  "Move it to a folder with fewer levels.");
  }
  return absl::OkStatus();
}

absl::Status SourceFiles::TooLarge(std::string_view path) const {
  return Refuse(path,
                absl::StrCat("exceeds the limit of all files together, ",
                             FormatByteSize(static_cast<uint64_t>(limits_.bytes))),
                "Leave out large files, or put them into an image.");
}

absl::Status SourceFiles::AddFolder(std::string_view path) { return CheckEntry(path); }

absl::Status SourceFiles::BeginFile(std::string_view path, bool executable, int64_t size,
                                    const std::string& local) {
  RETURN_IF_ERROR(EndFile());
  RETURN_IF_ERROR(CheckEntry(path));
  if (static_cast<int>(files_.size()) >= limits_.files) {
    return Refuse(path, absl::StrCat("is one of more than ", limits_.files, " files"),
                  "Remove files that are not needed.");
  }
  if (size > limits_.bytes - bytes_) return TooLarge(path);
  if (!paths_.emplace(path).second) {
    return Refuse(path, "occurs twice", "Pack the source again, with each file once.");
  }
  LocalFile& added = files_.emplace_back();
  added.file.set_path(std::string(path));
  added.file.set_executable(executable);
  added.source = local.empty() ? absl::StrCat(contents_, "/", files_.size()) : local;
  if (local.empty()) out_.open(added.source, std::ios::binary | std::ios::trunc);
  if (local.empty() && !out_) return NotWritten();
  declared_ = size;
  open_ = true;
  return absl::OkStatus();
}

absl::Status SourceFiles::Append(std::string_view data) {
  v1::Command::File& file = files_.back().file;
  const auto size = static_cast<int64_t>(data.size());
  if (size > limits_.bytes - bytes_) return TooLarge(file.path());
  if (declared_ >= 0 && file.size() + size > declared_) {
    return Refuse(file.path(), "grows while it is read",
                  "Run the command again while nothing writes to the file.");
  }
  bytes_ += size;
  file.set_size(file.size() + size);
  sha256_.Update(data);
  start_.append(data.substr(0, kLfsPointer.size() - std::min(kLfsPointer.size(), start_.size())));
  if (out_.is_open() && !out_.write(data.data(), size)) return NotWritten();
  return absl::OkStatus();
}

absl::Status SourceFiles::EndFile() {
  if (!std::exchange(open_, false)) return absl::OkStatus();
  v1::Command::File& file = files_.back().file;
  if (out_.is_open()) out_.close();
  if (!out_) return NotWritten();
  const std::string digest = DigestBytes(sha256_.Finish());
  if (file.size() > 0) file.set_sha256(digest);
  if (std::exchange(start_, "") != kLfsPointer) return absl::OkStatus();
  return Refuse(file.path(), "is a pointer of Git LFS, whose content is not fetched",
                "Clone the repository with Git LFS, and name the folder.");
}

absl::Status SourceFiles::NotWritten() const {
  return errors::SourceUnusable(source_, absl::StrCat("its files cannot be written to ", contents_),
                                "Set TMPDIR to a folder with enough space.");
}

absl::StatusOr<std::vector<LocalFile>> SourceFiles::Finish() {
  RETURN_IF_ERROR(EndFile());
  if (files_.empty()) {
    return errors::SourceUnusable(source_, "it has no files", "Name a source with files.");
  }
  std::ranges::sort(files_, {}, [](const LocalFile& file) { return file.file.path(); });
  if (const absl::Status status = CheckFiles(FilesOf(files_)); !status.ok()) {
    return errors::SourceUnusable(source_, ToStd(status.message()),
                                  "Pack the source again with plain paths.");
  }
  return std::move(files_);
}

}  // namespace muster::cli
