// Disk space that is kept for the work that makes room on a full disk: a start, and the changes
// that cancel and delete.
#ifndef MUSTER_SERVICES_COMMON_BASE_DISK_RESERVE_H_
#define MUSTER_SERVICES_COMMON_BASE_DISK_RESERVE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"

namespace muster {

// The file in the state folder of the service.
inline constexpr char kDiskReserveFile[] = "reserve";

// A file that occupies disk space. It is removed when the disk is full, and created again when
// twice its size is free: the second half is for data. Where the file system cannot reserve space,
// the file is sparse and reserves nothing. Thread-safe; calls may wait for the disk.
class DiskReserve {
 public:
  // `bytes` is reduced to 1/32 of the file system; 0: no reserve. The folder of `path` must exist.
  DiskReserve(FileOps& ops, std::string path, int64_t bytes);

  // Releases the reserve if the disk is so full that a start may fail; creates it otherwise.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the file. Returns true if that made room.
  bool Release() ABSL_LOCKS_EXCLUDED(mutex_);

  // Creates the reserve again if it was released and enough space is free.
  void Restore() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns OK if `more` bytes of data leave the reserve untouched, otherwise DISK_FULL with the
  // numbers.
  absl::Status CheckData(int64_t more) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the bytes that are reserved now; 0 after a release.
  int64_t reserved() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool TryCreate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t Available() const;

  FileOps& ops_;
  const std::string path_;
  const int64_t bytes_;
  mutable Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

// Removes the file of a reserve if its file system has less than 1 MiB free. For a program that has
// to write before the owner of the reserve starts.
void ReleaseReserveIfFull(FileOps& ops, const std::string& path);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_DISK_RESERVE_H_
