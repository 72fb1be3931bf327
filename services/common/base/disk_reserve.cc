#include "services/common/base/disk_reserve.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/store.h"

namespace muster {
namespace {

constexpr int64_t kLargestShare = 32;  // of the file system
constexpr int64_t kNeededToStart = int64_t{1} << 20;

int64_t Limited(FileOps& ops, const std::string& path, int64_t bytes) {
  const auto space = ops.Space(ParentFolder(path));
  return space.ok() ? std::min(bytes, space->total / kLargestShare) : 0;
}

absl::Status CreateFile(FileOps& ops, const std::string& path, int64_t bytes) {
  ASSIGN_OR_RETURN(const auto file, ops.Create(path));
  RETURN_IF_ERROR(file->Reserve(bytes));
  return file->Truncate(bytes);
}

}  // namespace

DiskReserve::DiskReserve(FileOps& ops, std::string path, int64_t bytes)
    : ops_(ops), path_(std::move(path)), bytes_(Limited(ops, path_, bytes)) {}

void DiskReserve::Start() {
  MutexLock lock(mutex_);
  const auto found = ops_.Stat(path_);
  const bool whole = found.ok() && found->size == bytes_ && bytes_ > 0;
  if (whole && Available() >= std::min(bytes_, kNeededToStart)) {
    held_ = true;
    return;
  }
  // It is missing, has another size, or the start needs its space.
  ops_.Remove(path_).IgnoreError();
  if (!TryCreate() && bytes_ > 0) {
    Log(LogLevel::kWarning, "the disk has no room for the reserve",
        {{"path", path_}, {"bytes", bytes_}});
  }
}

bool DiskReserve::Release() {
  MutexLock lock(mutex_);
  if (!held_ || bytes_ == 0) return false;
  held_ = false;
  const absl::Status removed = ops_.Remove(path_);
  Log(LogLevel::kWarning, "the disk is full: its reserve is released",
      {{"path", path_}, {"bytes", bytes_}, {"error", removed}});
  return removed.ok();
}

void DiskReserve::Restore() {
  MutexLock lock(mutex_);
  if (!held_ && TryCreate() && bytes_ > 0) {
    Log(LogLevel::kInfo, "the disk has room again: its reserve is restored", {{"path", path_}});
  }
}

absl::Status DiskReserve::CheckData(int64_t more) {
  MutexLock lock(mutex_);
  if (bytes_ == 0) return absl::OkStatus();
  const bool held = held_ || TryCreate();
  const int64_t available = Available();
  if (!held || available - more < bytes_) {
    return errors::DiskHasOnlyReserve(available, bytes_);
  }
  return absl::OkStatus();
}

int64_t DiskReserve::reserved() const {
  MutexLock lock(mutex_);
  return held_ ? bytes_ : 0;
}

bool DiskReserve::TryCreate() {
  if (bytes_ > 0) {
    if (Available() < 2 * bytes_) return false;
    if (!CreateFile(ops_, path_, bytes_).ok()) {
      ops_.Remove(path_).IgnoreError();
      return false;
    }
  }
  held_ = true;
  return true;
}

int64_t DiskReserve::Available() const {
  const auto space = ops_.Space(ParentFolder(path_));
  return space.ok() ? space->available : 0;
}

void ReleaseReserveIfFull(FileOps& ops, const std::string& path) {
  const auto space = ops.Space(ParentFolder(path));
  if (space.ok() && space->available < kNeededToStart) ops.Remove(path).IgnoreError();
}

}  // namespace muster
