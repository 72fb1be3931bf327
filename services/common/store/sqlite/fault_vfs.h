// A SQLite VFS for tests: it fails on demand, and reports each change of the disk.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_

#include <functional>

namespace muster::sqlite {

enum class Fault { kFullDisk, kWriteError, kSyncError };

// From its creation on every database that is opened goes through it. One at a time, and only while
// no database is open.
class FaultVfs {
 public:
  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  // The n-th write (kFullDisk, kWriteError) or sync (kSyncError) from now fails; with `for_good`
  // all later ones too, until Clear.
  void FailAt(Fault fault, int n, bool for_good = false);
  void Clear();

  // Syncs that were asked for after one had failed.
  int syncs_after_failure() const;

  // Calls `hook` before each write and truncation of a file, and before each removal of one. Null:
  // no more. One database thread at a time may run while it is set.
  void BeforeChange(std::function<void()> hook);

  // Returns whether a write to a file was not followed by a sync of the file yet. The index of the
  // write-ahead log, which is rebuilt after a crash, does not count.
  bool has_unsynced_writes() const;
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_
