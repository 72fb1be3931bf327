#include "cli/sources/source_files.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
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
  const std::string clean = CleanUtf8(path);
  return errors::SourceRefused(source_, CutUtf8(clean, kMostShown), why, next_step);
}

absl::Status SourceFiles::CheckEntry(std::string_view path) {
  if (++entries_ > limits_.entries) {
    return Refuse(path, absl::StrCat("is one of more than ", limits_.entries, " files and folders"),
                  "Remove files that the template does not need.");
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
                "Leave out large files, or put them into the image of the type.");
}

absl::Status SourceFiles::AddFolder(std::string_view path) { return CheckEntry(path); }

absl::Status SourceFiles::BeginFile(std::string_view path, bool executable, int64_t size) {
  RETURN_IF_ERROR(CheckEntry(path));
  if (static_cast<int>(files_.size()) >= limits_.files) {
    return Refuse(path, absl::StrCat("is one of more than ", limits_.files, " files"),
                  "Remove files that the template does not need.");
  }
  if (size > limits_.bytes - bytes_) return TooLarge(path);
  if (!paths_.emplace(path).second) {
    return Refuse(path, "occurs twice", "Pack the source again, with each file once.");
  }
  v1::Command::File& file = files_.emplace_back();
  file.set_path(std::string(path));
  file.set_executable(executable);
  return absl::OkStatus();
}

absl::Status SourceFiles::Append(std::string_view data) {
  v1::Command::File& file = files_.back();
  if (static_cast<int64_t>(data.size()) > limits_.bytes - bytes_) return TooLarge(file.path());
  bytes_ += static_cast<int64_t>(data.size());
  file.mutable_content()->append(data);
  return absl::OkStatus();
}

absl::StatusOr<SourceFiles::Files> SourceFiles::Finish() {
  if (files_.empty()) {
    return errors::SourceUnusable(source_, "it has no files", "Name a source with files.");
  }
  std::ranges::sort(files_, {}, [](const v1::Command::File& file) { return file.path(); });
  for (const v1::Command::File& file : files_) {
    if (!file.content().starts_with(kLfsPointer)) continue;
    return Refuse(file.path(), "is a pointer of Git LFS, whose content is not fetched",
                  "Clone the repository with Git LFS, and name the folder.");
  }
  Files files(std::make_move_iterator(files_.begin()), std::make_move_iterator(files_.end()));
  if (const absl::Status status = CheckFiles(files); !status.ok()) {
    return errors::SourceUnusable(source_, ToStd(status.message()),
                                  "Pack the source again with plain paths.");
  }
  return files;
}

}  // namespace muster::cli
