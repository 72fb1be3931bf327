// A SQLite VFS for tests that fails at the n-th write or sync of the process.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_

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
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_FAULT_VFS_H_
