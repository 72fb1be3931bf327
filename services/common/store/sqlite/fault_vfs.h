// A SQLite VFS for tests that fails at the n-th write or sync of the process.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_

#include <functional>

namespace muster::sqlite {

enum class Fault { kFullDisk, kWriteError, kSyncError };

// Every database that is opened during its lifetime uses it. Only one may exist, and it may be
// created and destroyed only while no database is open.
class FaultVfs {
 public:
  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  // Fails the n-th write (kFullDisk, kWriteError) or sync (kSyncError) from now on; with `for_good`
  // also all later ones until Clear.
  void FailAt(Fault fault, int n, bool for_good = false);
  void Clear();

  // Returns the number of syncs that were requested after a failed one.
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
