#include "services/common/store/sqlite/backup.h"

#include <sqlite3.h>

#include <memory>
#include <utility>

#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

absl::Status CopyDatabase(const std::string& from, const std::string& to) {
  // SQLite would create the file with another mode.
  RETURN_IF_ERROR(PosixFileOps().Create(to).status());
  ASSIGN_OR_RETURN(const auto source, Connection::Open(from, Connection::Access::kReadOnly));
  sqlite3_busy_timeout(source->handle(), 5000);
  ASSIGN_OR_RETURN(const auto copy, Connection::Open(to, Connection::Access::kReadWrite));
  sqlite3_backup* const backup =
      sqlite3_backup_init(copy->handle(), "main", source->handle(), "main");
  if (backup == nullptr) {
    return SqliteError(sqlite3_extended_errcode(copy->handle()), to, "begin the copy");
  }
  // One step is one read transaction, so no commit of another process restarts the copy.
  const int stepped = sqlite3_backup_step(backup, -1);
  const int finished = sqlite3_backup_finish(backup);
  if (stepped != SQLITE_DONE || finished != SQLITE_OK) {
    return SqliteError(stepped != SQLITE_DONE ? stepped : finished, to, "copy the database");
  }
  // Without a write-ahead log, readers of the copy change no file.
  copy->Execute("PRAGMA journal_mode = DELETE");
  return copy->TakeStatus();
}

absl::StatusOr<std::map<std::string, RecordedBlob>> RecordedBlobs(const std::string& path) {
  ASSIGN_OR_RETURN(const auto db, Connection::Open(path, Connection::Access::kReadOnly));
  std::map<std::string, RecordedBlob> blobs;
  {
    // Results of deleted runs are removed later than their blobs.
    Rows rows = db->Query(
        "SELECT blob, sha256, run, plugin, node FROM results WHERE blob <> ''"
        " AND run IN (SELECT id FROM runs)"
        " UNION ALL SELECT partial_blob, '', run, plugin, node FROM results WHERE partial_blob <> "
        "''"
        " AND run IN (SELECT id FROM runs)"
        " UNION ALL SELECT archive_blob, archive_sha256, id, '', '' FROM runs"
        " WHERE archive_blob <> ''");
    while (rows.Next()) {
      RecordedBlob& blob = blobs[rows.Text()];
      blob.sha256 = rows.Text();
      blob.run = rows.Text();
      blob.plugin = rows.Text();
      blob.node = rows.Text();
    }
  }
  RETURN_IF_ERROR(db->TakeStatus());
  return blobs;
}

absl::Status RenewFeed(const std::string& path) {
  ASSIGN_OR_RETURN(const auto db, Connection::Open(path, Connection::Access::kReadWrite));
  db->Run("INSERT OR REPLACE INTO marks VALUES ('feed', lower(hex(randomblob(8))))");
  return db->TakeStatus();
}

}  // namespace muster::sqlite
