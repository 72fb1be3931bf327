// Returns the space of a database and its write-ahead log to the disk.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SPACE_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SPACE_H_

#include <cstdint>

#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

inline constexpr int kKeptFreePages = 1024;             // 4 MiB of free pages remain in a database
inline constexpr int64_t kLargeLog = int64_t{8} << 20;  // an idle database keeps no larger log

// Returns the number of free pages; 0 after a failure, which `db` then has.
int64_t FreePages(Connection& db);

// Returns the size of the file of the log, which a checkpoint does not reduce.
int64_t LogBytes(Connection& db);

// Writes the log to the database and truncates its file, unless a reader needs it now: does not
// wait. Called outside of a transaction, with the connection that writes. Returns a code of SQLite.
[[nodiscard]] int TruncateLog(Connection& db);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_SPACE_H_
