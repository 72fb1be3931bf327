#include "cli/commands/deployment_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/text_values.h"
#include "services/common/identity/signed_command.h"
#include "services/common/templates/files.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using Files = google::protobuf::RepeatedPtrField<v1::Command::File>;

absl::Status Unusable(const fs::path& path, std::string_view why) {
  return UsageError(absl::StrCat(Printable(path.string()), ": ", ToAbsl(why)),
                    "A deployment has regular files, which its containers get at /files.");
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
    auto content = ReadFileBounded(path.string(), kMaxCommand);
    if (absl::IsResourceExhausted(content.status())) return TooLarge(path);
    if (!content.ok()) return AsUsageError(content.status());
    bytes_ += content->size();
    if (bytes_ > kMaxCommand) return TooLarge(path);
    v1::Command::File file;
    file.set_path(name);
    file.set_content(*std::move(content));
    file.set_executable((status.permissions() & fs::perms::owner_exec) != fs::perms::none);
    files_.push_back(std::move(file));
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

  absl::StatusOr<Files> Finish() {
    std::ranges::sort(files_, {}, [](const v1::Command::File& file) { return file.path(); });
    Files files(std::make_move_iterator(files_.begin()), std::make_move_iterator(files_.end()));
    if (const absl::Status status = CheckFiles(files); !status.ok()) return AsUsageError(status);
    return files;
  }

 private:
  static absl::Status TooLarge(const fs::path& path) {
    return UsageError(absl::StrCat(Printable(path.string()), ": the files have more than ",
                                   FormatByteSize(kMaxCommand), " together"),
                      "They are part of the signed command. Put large files into the image.");
  }

  std::vector<v1::Command::File> files_;
  size_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<Files> ReadDeploymentFiles(const std::string& path) {
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

}  // namespace muster::cli
