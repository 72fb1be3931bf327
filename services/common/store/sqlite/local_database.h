// A small database of one service: its changes are durable when they return, and concurrent changes
// share one sync.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_LOCAL_DATABASE_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_LOCAL_DATABASE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// A database with a write-ahead log that is synced at each commit. Thread-safe; every call waits
// for the disk.
//
// The first of the waiting writers commits the changes of all of them in one transaction. After a
// failed write or sync the content of the disk is unknown: from then on every write fails
// with STORE_FAILED, and the next Open recovers from the content of the disk.
class LocalDatabase {
 public:
  // Called once, on the thread of a writer, after the disk failed: the service must end, and its
  // next start recovers the database. Must not block. May be empty.
  using OnFatal = std::function<void(const absl::Status&)>;

  // Opens the database, creates it if it is missing, and applies the schema `steps` (schema.h). The
  // caller holds a lock that keeps other processes out. After a crash it checks the database.
  // DATA_LOSS (STORE_CORRUPT) if the file is no database or is damaged. `ops`: the disk of SQLite's
  // VFS.
  static absl::StatusOr<std::unique_ptr<LocalDatabase>> Open(const std::string& path,
                                                             std::span<const char* const> steps,
                                                             OnFatal on_fatal = {},
                                                             FileOps& ops = PosixFileOps());
  ~LocalDatabase();
  LocalDatabase(const LocalDatabase&) = delete;
  LocalDatabase& operator=(const LocalDatabase&) = delete;

  // A change of rows. It may run twice, and on the thread of another writer. An error undoes it.
  using Change = absl::FunctionRef<absl::Status(Connection& db)>;
  // Returns after the change is durable. RESOURCE_EXHAUSTED (DISK_FULL) leaves the database as it
  // was.
  absl::Status Write(Change change) ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs a query on the committed rows.
  absl::Status Read(absl::FunctionRef<absl::Status(Connection& db)> query)
      ABSL_LOCKS_EXCLUDED(reader_mutex_);

  // Returns the number of writers that wait for a commit.
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Writer {
    Change change;
    absl::Status status;
    bool done = false;
  };

  LocalDatabase(std::string path, OnFatal on_fatal, std::unique_ptr<Connection> writer,
                std::unique_ptr<Connection> reader);

  void Commit(const std::vector<Writer*>& group);
  absl::Status TryTogether(const std::vector<Writer*>& group);
  absl::Status Failure() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Stop(const absl::Status& failure) ABSL_LOCKS_EXCLUDED(mutex_);
  void TruncateLargeLog() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  const OnFatal on_fatal_;
  const std::unique_ptr<Connection> writer_;  // of the committing thread alone

  mutable Mutex mutex_;
  CondVar committed_;
  std::vector<Writer*> queue_ ABSL_GUARDED_BY(mutex_);
  bool committing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status fatal_ ABSL_GUARDED_BY(mutex_);

  Mutex reader_mutex_;
  const std::unique_ptr<Connection> reader_ ABSL_PT_GUARDED_BY(reader_mutex_);
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_LOCAL_DATABASE_H_
