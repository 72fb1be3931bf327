// Checks and repairs a database after an unclean stop.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// Writes the write-ahead log of a database again, if there is one, and makes it durable with its
// name. To be called before the database is opened: if the last sync of an earlier process failed,
// the kernel may show pages of the log that never reached the disk, and considers them clean. A
// later commit would follow a gap, and a checkpoint that is interrupted would leave half of its
// pages without the log that completes them.
absl::Status RewriteLog(FileOps& ops, const std::string& path);

// Changes the database to the write-ahead log. Returns false where the file system cannot have one.
absl::StatusOr<bool> UseWriteAheadLog(Connection& db);

// Creates the log unless it exists, and makes the names of the database and the log durable,
// because SQLite ignores a failure of that. To be called before the first change: a checkpoint that
// is interrupted leaves half of its pages, and only the log completes them.
absl::Status SyncNames(FileOps& ops, Connection& db, const std::string& path);

// Writes all pages to the database: it must not depend on the log of an earlier process. While
// another process reads the database (a backup), pages remain in the log, which RewriteLog made
// durable.
absl::Status EmptyLog(Connection& db, const std::string& path);

// Reads every page of a database. Fails with DATA_LOSS (STORE_CORRUPT) if one is damaged.
absl::Status CheckDatabase(Connection& db, const std::string& path);

// Does the same for a database that is in use, on a separate connection, table by table, so that no
// read transaction delays the checkpoint for longer. CANCELLED soon after `stop` was set.
absl::Status CheckTables(const std::string& path, std::atomic<bool>& stop);

// Returns true if an earlier check found damage: the database must not be served before a check
// passes.
bool IsSuspect(FileOps& ops, const std::string& path);
absl::Status SetSuspect(FileOps& ops, const std::string& path, bool suspect);

// Checks the database table by table, on its own thread and connection, while it is in use: the
// check of a large one takes longer than a restart may take. Thread-safe.
class BackgroundCheck {
 public:
  // Calls `damaged` on the thread, once, if there is damage; the database is then marked as
  // suspect.
  BackgroundCheck(std::string path, FileOps& ops, std::function<void(const absl::Status&)> damaged);

  // Aborts a running check.
  ~BackgroundCheck();

  // Returns true if every table passed.
  bool passed() const { return passed_; }

 private:
  void Run();

  const std::string path_;
  FileOps& ops_;
  const std::function<void(const absl::Status&)> damaged_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> passed_ = false;
  std::thread thread_;  // declared last: starts after all other members
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_
