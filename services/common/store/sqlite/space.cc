#include "services/common/store/sqlite/space.h"

#include <sqlite3.h>

namespace muster::sqlite {
namespace {

constexpr int kBusyTimeoutMs = 1000;  // as every connection sets it

}  // namespace

int64_t FreePages(Connection& db) {
  Rows rows = db.Query("PRAGMA freelist_count");
  return rows.Next() ? rows.Int() : 0;
}

int64_t LogBytes(Connection& db) {
  sqlite3_file* log = nullptr;
  sqlite3_int64 bytes = 0;
  const int code = sqlite3_file_control(db.handle(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (code != SQLITE_OK || log == nullptr || log->pMethods == nullptr) return 0;
  return log->pMethods->xFileSize(log, &bytes) == SQLITE_OK ? bytes : 0;
}

int TruncateLog(Connection& db) {
  sqlite3_busy_timeout(db.handle(), 0);
  const int code =
      sqlite3_wal_checkpoint_v2(db.handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_busy_timeout(db.handle(), kBusyTimeoutMs);
  return code;
}

}  // namespace muster::sqlite
