#include "cli/backup/home_backup.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/backup/file_copy.h"
#include "cli/backup/home_files.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"
#include "services/common/store/sqlite/backup.h"
#include "services/common/version.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSecret = size_t{1} << 20;
constexpr int kMaxCopies = 5;  // of the database, while runs are deleted all the time

// Returns true for a key, and for a file that contains one, such as an operator's context.
bool HasKey(const std::string& path) {
  const auto text = ReadFileBounded(path, kMaxSecret);
  return absl::EndsWith(path, ".key") ||
         (text.ok() && absl::StrContains(*text, "PRIVATE KEY-----"));
}

// A backup that is being made.
class Backup {
 public:
  Backup(std::string home, std::string folder)
      : home_(std::move(home)), folder_(std::move(folder)) {}

  absl::StatusOr<BackupReport> Make(absl::Time now) {
    RETURN_IF_ERROR(VisitPlainFiles(home_, [this](const std::string& path) -> absl::Status {
      RETURN_IF_ERROR(Copy(path));
      if (HasKey(PathInBackup(folder_, path))) manifest_.keys.push_back(path);
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(CopyStore());
    RETURN_IF_ERROR(CopyJobs());
    RETURN_IF_ERROR(SyncFileSystem(folder_));
    manifest_.version = std::string(kVersion);
    manifest_.time = now;
    manifest_.home = home_;
    std::sort(manifest_.keys.begin(), manifest_.keys.end());
    manifest_.omitted = OmittedPaths(home_);
    RETURN_IF_ERROR(WriteManifest(folder_, manifest_));
    return BackupReport{std::move(manifest_), std::move(damaged_)};
  }

 private:
  // Copies a file, unless it was removed meanwhile.
  absl::Status Copy(const std::string& path) {
    const auto copied = CopyFile(absl::StrCat(home_, "/", path), PathInBackup(folder_, path));
    if (absl::IsNotFound(copied.status())) return absl::OkStatus();
    return Add(path, copied);
  }

  absl::Status Add(const std::string& path, const absl::StatusOr<FileDigest>& digest) {
    if (!digest.ok()) return digest.status();
    manifest_.files[path] = digest->sha256;
    manifest_.bytes += digest->size;
    return absl::OkStatus();
  }

  absl::Status CopyStore() {
    // Most blobs are copied before the database, so that few can be removed between both.
    RETURN_IF_ERROR(CopyNewBlobs());
    std::vector<DamagedFile> before;
    int copies = 0;
    do {
      before = std::exchange(damaged_, {});
      RETURN_IF_ERROR(CopyDatabase(kStateDatabase));
      // A blob is published before its record is committed.
      RETURN_IF_ERROR(CopyNewBlobs());
      RETURN_IF_ERROR(FindDamaged());
      // A blob that was removed with its run is missing once: the next copy has no record of it.
    } while (!damaged_.empty() && damaged_ != before && ++copies < kMaxCopies);
    return Add(kStateDatabase, DigestFile(PathInBackup(folder_, kStateDatabase)));
  }

  absl::Status CopyNewBlobs() {
    return VisitBlobs(home_, [this](const std::string& path) {
      return manifest_.files.contains(path) ? absl::OkStatus() : Copy(path);
    });
  }

  // A home of an earlier Muster has no jobs service.
  absl::Status CopyJobs() {
    std::error_code ignored;
    if (!fs::exists(fs::path(home_) / kJobsDatabase, ignored)) return absl::OkStatus();
    RETURN_IF_ERROR(CopyDatabase(kJobsDatabase));
    // A content is stored before its row, and none that a deployment names is removed.
    RETURN_IF_ERROR(VisitContents(home_, [this](const std::string& path) { return Copy(path); }));
    return Add(kJobsDatabase, DigestFile(PathInBackup(folder_, kJobsDatabase)));
  }

  absl::Status CopyDatabase(const char* database) {
    const std::string copy = PathInBackup(folder_, database);
    RETURN_IF_ERROR(MakeFolders(PosixFileOps(), ParentFolder(copy)));
    const absl::Status removed = PosixFileOps().Remove(copy);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
    return sqlite::CopyDatabase(absl::StrCat(home_, "/", database), copy);
  }

  absl::Status FindDamaged() {
    ASSIGN_OR_RETURN(auto recorded, sqlite::RecordedBlobs(PathInBackup(folder_, kStateDatabase)));
    for (const auto& [path, sha256] : manifest_.files) {
      if (!path.starts_with(kBlobFolder)) continue;
      const auto record = recorded.find(BlobNameOf(path));
      if (record == recorded.end()) continue;
      const sqlite::RecordedBlob& blob = record->second;
      if (!blob.sha256.empty() && ToHex(blob.sha256) != sha256) {
        damaged_.push_back({path, blob.run, blob.plugin, blob.node});
      }
      recorded.erase(record);
    }
    for (const auto& [name, blob] : recorded) {
      damaged_.push_back({"", blob.run, blob.plugin, blob.node});
    }
    return absl::OkStatus();
  }

  const std::string home_;
  const std::string folder_;
  Manifest manifest_;
  std::vector<DamagedFile> damaged_;
};

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

absl::StatusOr<BackupReport> BackUpHome(const std::string& home, const std::string& folder,
                                        absl::Time now) {
  std::error_code fault;
  const absl::Status state = PosixFileOps().Stat(fs::path(home) / kStateDatabase).status();
  if (absl::IsNotFound(state)) return errors::NotAHome(home);
  RETURN_IF_ERROR(state);
  const fs::path target = fs::weakly_canonical(fs::absolute(folder, fault), fault);
  if (IsBelow(target, fs::canonical(home, fault))) return errors::BackupInHome(folder);
  ASSIGN_OR_RETURN(const bool empty, IsEmptyFolder(target.string()));
  if (!empty) return errors::FolderNotEmpty(folder);
  RETURN_IF_ERROR(MakeFolders(PosixFileOps(), target.string()));
  return Backup(home, target.string()).Make(now);
}

}  // namespace muster::cli
