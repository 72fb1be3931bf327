// A SQLite VFS that fails on demand, for tests: the n-th write or sync of the process.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_

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
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_
