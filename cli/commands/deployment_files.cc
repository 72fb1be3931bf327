#include "cli/commands/deployment_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/text_values.h"
#include "services/common/templates/files.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using Files = google::protobuf::RepeatedPtrField<v1::Command::File>;

constexpr size_t kReadBuffer = size_t{256} << 10;
// A field of a message with a content of up to 128 KiB has so many more bytes.
constexpr size_t kFieldBytes = 4;

absl::Status Unusable(const fs::path& path, std::string_view why) {
  return UsageError(absl::StrCat(Printable(path.string()), ": ", ToAbsl(why)),
                    "A deployment has regular files, which its containers get at /files.");
}

// Sets the size and the SHA-256, unless the file is empty.
absl::Status Hash(const fs::path& path, int64_t expected, v1::Command::File* file) {
  std::ifstream in(path, std::ios::binary);
  Sha256 sha256;
  int64_t size = 0;
  std::vector<char> buffer(kReadBuffer);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    size += in.gcount();
    if (size > expected) return Unusable(path, "grows while it is read");
    sha256.Update({buffer.data(), static_cast<size_t>(in.gcount())});
  }
  if (!in.eof()) return Unusable(path, "cannot be read");
  if (size == 0) return absl::OkStatus();
  file->set_size(size);
  file->set_sha256(DigestBytes(sha256.Finish()));
  return absl::OkStatus();
}

// Collects the files of one deployment.
class FileCollector {
 public:
  absl::Status Add(const fs::path& path, const std::string& name) {
    std::error_code fault;
    const fs::file_status status = fs::symlink_status(path, fault);
    if (fault) return Unusable(path, fault.message());
    if (fs::is_symlink(status)) return Unusable(path, "is a symbolic link");
    if (!fs::is_regular_file(status)) return Unusable(path, "is not a regular file");
    if (files_.size() == kMaxFiles) {
      return Unusable(path, absl::StrCat("there are more than ", kMaxFiles, " files"));
    }
    const uintmax_t size = fs::file_size(path, fault);
    if (fault) return Unusable(path, fault.message());
    if (size > static_cast<uintmax_t>(kMaxContentSize - bytes_)) return TooLarge(path);
    LocalFile added = {.file = {}, .source = path.string()};
    added.file.set_path(name);
    added.file.set_executable((status.permissions() & fs::perms::owner_exec) != fs::perms::none);
    RETURN_IF_ERROR(Hash(path, static_cast<int64_t>(size), &added.file));
    bytes_ += added.file.size();
    files_.push_back(std::move(added));
    return absl::OkStatus();
  }

  absl::Status AddFolder(const fs::path& folder) {
    std::error_code fault;
    fs::recursive_directory_iterator entry(folder, fault);
    for (; !fault && entry != fs::recursive_directory_iterator(); entry.increment(fault)) {
      if (entry->is_directory(fault) && !entry->is_symlink(fault)) continue;
      RETURN_IF_ERROR(Add(entry->path(), entry->path().lexically_relative(folder).string()));
    }
    return fault ? Unusable(folder, fault.message()) : absl::OkStatus();
  }

  absl::StatusOr<std::vector<LocalFile>> Finish() {
    std::ranges::sort(files_, {}, [](const LocalFile& file) { return file.file.path(); });
    if (const absl::Status status = CheckFiles(FilesOf(files_)); !status.ok()) {
      return AsUsageError(status);
    }
    return std::move(files_);
  }

 private:
  static absl::Status TooLarge(const fs::path& path) {
    return UsageError(absl::StrCat(Printable(path.string()), ": the files have more than ",
                                   FormatByteSize(kMaxContentSize), " together"),
                      "Put large files into the image.");
  }

  std::vector<LocalFile> files_;
  int64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<LocalFile>> ReadDeploymentFiles(const std::string& path) {
  std::error_code fault;
  const fs::file_status status = fs::status(path, fault);
  if (fault) return Unusable(path, fault.message());
  FileCollector collector;
  if (!fs::is_directory(status)) {
    RETURN_IF_ERROR(collector.Add(path, fs::path(path).filename().string()));
    return collector.Finish();
  }
  RETURN_IF_ERROR(collector.AddFolder(path));
  ASSIGN_OR_RETURN(auto files, collector.Finish());
  if (files.empty()) return Unusable(path, "has no files");
  return files;
}

absl::Status PutIntoCommand(size_t bytes, std::vector<LocalFile>& files) {
  std::vector<LocalFile*> by_size;
  for (LocalFile& file : files) {
    if (IsStored(file.file)) by_size.push_back(&file);
  }
  std::ranges::sort(by_size, {}, [](const LocalFile* file) { return file->file.size(); });
  for (LocalFile* local : by_size) {
    v1::Command::File& file = local->file;
    const auto size = static_cast<size_t>(file.size());
    if (size + kFieldBytes > bytes) return absl::OkStatus();
    bytes -= size + kFieldBytes;
    const auto content = ReadFileBounded(local->source, size);
    if (!content.ok() || DigestBytes(Sha256::Of(*content)) != file.sha256()) {
      return Unusable(local->source, "has changed since it was read");
    }
    file.set_content(*content);
    file.clear_size();
    file.clear_sha256();
  }
  return absl::OkStatus();
}

Files FilesOf(const std::vector<LocalFile>& files) {
  Files all;
  for (const LocalFile& file : files) *all.Add() = file.file;
  return all;
}

}  // namespace muster::cli
