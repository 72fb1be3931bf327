// The disks of several machines behind one set of file operations.
#ifndef MUSTER_SERVICES_SIMULATION_SPLIT_DISK_H_
#define MUSTER_SERVICES_SIMULATION_SPLIT_DISK_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/file_ops.h"

namespace muster::testing {

// Passes each call to the disk that is mounted at the first folder of its path, because SQLite has
// one VFS (store/sqlite/simulated_vfs.h). NOT_FOUND if there is none. Thread-safe after the last
// Mount.
class SplitDisk final : public FileOps {
 public:
  // Paths below "/<folder>" are on `disk`, which outlives this object.
  void Mount(const std::string& folder, FileOps& disk) { disks_[folder] = &disk; }

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> CreateUnnamed(const std::string& folder) override;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status RenameNoReplace(const std::string& from, const std::string& to) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& path) override;
  absl::Status MakeFolder(const std::string& path) override;
  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& path) override;
  absl::StatusOr<FileInfo> Stat(const std::string& path) override;
  absl::StatusOr<SpaceInfo> Space(const std::string& path) override;

 private:
  absl::StatusOr<FileOps*> DiskOf(std::string_view path) const;

  std::map<std::string, FileOps*, std::less<>> disks_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_SPLIT_DISK_H_
