// File operations that measure how long syncs take.
#ifndef MUSTER_SERVICES_COMMON_BASE_TIMED_FILE_OPS_H_
#define MUSTER_SERVICES_COMMON_BASE_TIMED_FILE_OPS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"

namespace muster {

// Passes all operations on to `ops`, and the duration of each File::SyncData and SyncFolder to
// `observe`. Thread-safe if `observe` is. `ops` and `clock` must outlive this and its files.
class TimedFileOps final : public FileOps {
 public:
  using Observe = std::function<void(absl::Duration)>;

  TimedFileOps(FileOps& ops, const Clock& clock, Observe observe)
      : ops_(ops), clock_(clock), observe_(std::move(observe)) {}

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> CreateUnnamed(const std::string& folder) override;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  absl::Status SyncFolder(const std::string& path) override;

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return ops_.Rename(from, to);
  }
  absl::Status RenameNoReplace(const std::string& from, const std::string& to) override {
    return ops_.RenameNoReplace(from, to);
  }
  absl::Status Remove(const std::string& path) override { return ops_.Remove(path); }
  absl::Status RemoveFolder(const std::string& path) override { return ops_.RemoveFolder(path); }
  absl::Status MakeFolder(const std::string& path) override { return ops_.MakeFolder(path); }
  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& path) override {
    return ops_.List(path);
  }
  absl::StatusOr<FileInfo> Stat(const std::string& path) override { return ops_.Stat(path); }
  absl::StatusOr<SpaceInfo> Space(const std::string& path) override { return ops_.Space(path); }

  // Runs `sync` and observes its duration, also that of one that fails.
  absl::Status Measure(const std::function<absl::Status()>& sync) const;

 private:
  absl::StatusOr<std::unique_ptr<File>> Wrap(absl::StatusOr<std::unique_ptr<File>> file);

  FileOps& ops_;
  const Clock& clock_;
  const Observe observe_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_TIMED_FILE_OPS_H_
