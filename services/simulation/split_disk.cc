#include "services/simulation/split_disk.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster::testing {

absl::StatusOr<FileOps*> SplitDisk::DiskOf(std::string_view path) const {
  const std::string_view name = path.substr(1);
  const auto disk = disks_.find(name.substr(0, name.find('/')));
  if (disk != disks_.end()) return disk->second;
  return absl::NotFoundError(absl::StrCat("no disk has ", ToAbsl(path)));
}

absl::StatusOr<std::unique_ptr<File>> SplitDisk::Create(const std::string& path) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->Create(path);
}

absl::StatusOr<std::unique_ptr<File>> SplitDisk::CreateUnnamed(const std::string& folder) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(folder));
  return disk->CreateUnnamed(folder);
}

absl::StatusOr<std::unique_ptr<File>> SplitDisk::Open(const std::string& path, OpenMode mode) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->Open(path, mode);
}

absl::Status SplitDisk::Rename(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(from));
  return disk->Rename(from, to);
}

absl::Status SplitDisk::RenameNoReplace(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(from));
  return disk->RenameNoReplace(from, to);
}

absl::Status SplitDisk::SyncFolder(const std::string& path) {
  if (path == "/") return absl::OkStatus();  // where the disks are mounted
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->SyncFolder(path);
}

absl::Status SplitDisk::Remove(const std::string& path) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->Remove(path);
}

absl::Status SplitDisk::RemoveFolder(const std::string& path) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->RemoveFolder(path);
}

absl::Status SplitDisk::MakeFolder(const std::string& path) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->MakeFolder(path);
}

absl::StatusOr<std::vector<FolderEntry>> SplitDisk::List(const std::string& path) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->List(path);
}

absl::StatusOr<FileInfo> SplitDisk::Stat(const std::string& path) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->Stat(path);
}

absl::StatusOr<SpaceInfo> SplitDisk::Space(const std::string& path) {
  ASSIGN_OR_RETURN(FileOps * disk, DiskOf(path));
  return disk->Space(path);
}

}  // namespace muster::testing
