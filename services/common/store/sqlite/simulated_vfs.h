// SQLite on a simulated disk: a VFS for tests of crash safety.
//
// Does what SQLite's own VFS for Unix does with the same calls: it syncs the folder after the first
// sync of a new journal and ignores its failure, and takes an empty file for an absent one. Locks
// and the index of the write-ahead log are in memory and end with their connections.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SIMULATED_VFS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SIMULATED_VFS_H_

#include <cstdint>
#include <functional>

#include "services/common/base/file_ops.h"

namespace muster::sqlite {

// Every database that is opened during its lifetime is on `disk`. Only one may exist, and it may be
// created and destroyed only while no database is open. Numbers that SQLite draws follow `seed`.
class SimulatedVfs {
 public:
  SimulatedVfs(FileOps& disk, uint64_t seed);
  ~SimulatedVfs();
  SimulatedVfs(const SimulatedVfs&) = delete;
  SimulatedVfs& operator=(const SimulatedVfs&) = delete;

  // Calls `hook` before a connection that only reads begins to read, without a lock. Null: no more.
  static void BeforeReads(std::function<void()> hook);

  // Returns whether this thread is in a call of the VFS.
  static bool InCall();
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_SIMULATED_VFS_H_
