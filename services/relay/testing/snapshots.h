// Copies of a folder before each change of the disk: the states that the loss of the process
// leaves.
#ifndef MUSTER_SERVICES_RELAY_TESTING_SNAPSHOTS_H_
#define MUSTER_SERVICES_RELAY_TESTING_SNAPSHOTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/store/sqlite/fault_vfs.h"

namespace muster::testing {

// Watches the changes of SQLite and those made through ops(). Create it before any database is
// opened. Thread-safe; a snapshot delays the change that follows it.
class Snapshots {
 public:
  // `folder` is copied to "<folder>-1", "<folder>-2", ...
  explicit Snapshots(std::string folder);
  ~Snapshots();

  FileOps& ops() { return *ops_; }
  sqlite::FaultVfs& vfs() { return vfs_; }

  // Copies the folder before each change from now on, and calls `taken` with the copy's folder.
  void Start(std::function<void(const std::string& copy)> taken);
  void Stop();

 private:
  class HookedOps;
  class HookedFile;

  void BeforeChange() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string folder_;
  sqlite::FaultVfs vfs_;
  const std::unique_ptr<FileOps> ops_;
  Mutex mutex_;
  std::function<void(const std::string&)> taken_ ABSL_GUARDED_BY(mutex_);
  int copies_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_SNAPSHOTS_H_
