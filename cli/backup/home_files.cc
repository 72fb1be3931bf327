#include "cli/backup/home_files.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array kOmitted = {"agent",
                                 "aggregator/blobs/staged",
                                 "aggregator/reserve",
                                 "bin",
                                 "jobs/contents/staged",
                                 "jobs/reserve",
                                 "jobs/workspaces/staged",
                                 "log",
                                 "node",
                                 "relay/jobs",
                                 "relay/known-nodes",
                                 "relay/shares",
                                 "relay/spool",
                                 "run",
                                 "status/status.db"};

bool IsOmitted(const fs::path& path) {
  return std::find(kOmitted.begin(), kOmitted.end(), path.string()) != kOmitted.end();
}

// Returns true for what a start makes again: locks, the side files of databases, the certificates
// of the services. A copy of such a certificate might not match the copy of its key.
bool IsMadeAgain(const fs::path& path) {
  const std::string name = path.filename();
  const bool service = path.has_parent_path() && path.parent_path().filename() == "tls";
  return name == "lock" || absl::EndsWith(name, ".lock") || absl::EndsWith(name, ".db-wal") ||
         absl::EndsWith(name, ".db-shm") || name == "tls-published" ||
         (service && (name == "key.pem" || name == "cert.pem"));
}

bool IsPlain(const fs::path& path) {
  return path != kStateDatabase && path != kJobsDatabase && path != kBlobFolder &&
         path != kContentFolder && path != kWorkspaceFolder && !IsOmitted(path) &&
         !IsMadeAgain(path);
}

using Admits = bool (*)(const fs::path&);
using Visit = std::function<absl::Status(const std::string&)>;

// Visits the files in `folder`, a path in the home, whose path passes `admits`. A folder that does
// not pass is not entered.
absl::Status Walk(const fs::path& home, const fs::path& folder, Admits admits, const Visit& visit) {
  const auto entries = PosixFileOps().List((home / folder).string());
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();  // it was removed meanwhile
  if (!entries.ok()) return entries.status();
  for (const FolderEntry& entry : *entries) {
    const fs::path path = folder / entry.name;
    if (!admits(path)) continue;
    std::error_code ignored;
    const fs::path target = home / path;
    const bool link = entry.type == FileType::kOther;
    if (entry.type == FileType::kFolder || (link && fs::is_directory(target, ignored))) {
      RETURN_IF_ERROR(Walk(home, path, admits, visit));
    } else if (entry.type == FileType::kFile || (link && fs::is_regular_file(target, ignored))) {
      RETURN_IF_ERROR(visit(path.string()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> OmittedPaths(const fs::path& home) {
  std::vector<std::string> paths;
  std::error_code ignored;
  std::copy_if(kOmitted.begin(), kOmitted.end(), std::back_inserter(paths),
               [&](const char* path) { return fs::exists(home / path, ignored); });
  return paths;
}

absl::Status VisitPlainFiles(const fs::path& home, const Visit& visit) {
  return Walk(home, "", IsPlain, visit);
}

absl::Status VisitBlobs(const fs::path& home, const Visit& visit) {
  return Walk(home, kBlobFolder, [](const fs::path&) { return true; }, visit);
}

absl::Status VisitContents(const fs::path& home, const Visit& visit) {
  const Admits all = [](const fs::path&) { return true; };
  RETURN_IF_ERROR(Walk(home, kContentFolder, all, visit));
  return Walk(home, kWorkspaceFolder, all, visit);
}

std::string BlobNameOf(const std::string& path) {
  std::vector<std::string> parts =
      absl::StrSplit(path.substr(std::string_view(kBlobFolder).size() + 1), '/');
  std::erase_if(parts, [](const std::string& part) { return part.starts_with('='); });
  return absl::StrJoin(parts, "/");
}

}  // namespace muster::cli
