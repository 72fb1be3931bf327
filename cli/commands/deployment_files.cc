#include "cli/commands/deployment_files.h"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "cli/exit_code.h"
#include "cli/output/progress_bar.h"
#include "cli/rpc/content_client.h"
#include "cli/sources/folder_source.h"
#include "cli/sources/source_files.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/signed_command.h"
#include "services/common/templates/files.h"

namespace muster::cli {
namespace {

// The fields of a command beside its content have fewer bytes.
constexpr size_t kOtherFields = size_t{4} << 10;

absl::StatusOr<std::vector<LocalFile>> Read(const std::string& path) {
  std::error_code fault;
  SourceFiles files(path, {}, "");
  RETURN_IF_ERROR(std::filesystem::is_directory(path, fault) ? ReadFolderSource(path, files)
                                                             : ReadFileSource(path, files));
  return files.Finish();
}

absl::Status Upload(Console& console, const OperatorContext& context,
                    const std::vector<LocalFile>& files) {
  std::vector<LocalContent> contents;
  for (const LocalFile& file : files) {
    if (IsStored(file.file)) {
      contents.push_back({file.file.sha256(), file.file.size(), file.source});
    }
  }
  if (contents.empty()) return absl::OkStatus();
  ContentClient client(context);
  ASSIGN_OR_RETURN(const auto missing, client.FindMissing(contents));
  if (missing.empty()) return absl::OkStatus();
  int64_t total = 0;
  for (const LocalContent& content : missing) total += content.size;
  ProgressBar bar(console, "files", 0, total);
  int64_t before = 0;
  for (const LocalContent& content : missing) {
    RETURN_IF_ERROR(client.Upload(content, [&](int64_t bytes) { bar.Update(before + bytes); }));
    before += content.size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<LocalFile>> ReadDeploymentFiles(const std::string& path) {
  auto files = Read(path);
  if (absl::IsInvalidArgument(files.status())) return AsUsageError(files.status());
  return files;
}

absl::Status SendFiles(Console& console, const OperatorContext& context, size_t used,
                       std::vector<LocalFile>& files) {
  used += kOtherFields;
  const absl::Status put = PutIntoCommand(used < kMaxCommand ? kMaxCommand - used : 0, files);
  if (!put.ok()) return AsUsageError(put);
  return Upload(console, context, files);
}

}  // namespace muster::cli
