// Creates a database.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_CREATE_DATABASE_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_CREATE_DATABASE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"

namespace muster::sqlite {

// Returns whether the database exists. An empty file is left by an interrupted creation of an
// earlier version.
absl::StatusOr<bool> DatabaseExists(FileOps& ops, const std::string& path);

// Creates an empty database with mode 0600 that uses the write-ahead log, in place of an absent or
// empty file. It appears whole and durable, or not at all. SQLite itself would write the first page
// under the name of the database; only the journal completes that page, and SQLite ignores that the
// name of the journal may not be durable, or that it cannot look for the journal.
//
// `pragmas` are executed first. STORE_NEEDS_LOCAL_DISK where the file system cannot have a
// write-ahead log.
absl::Status CreateDatabase(FileOps& ops, const std::string& path, const char* pragmas = "");

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_CREATE_DATABASE_H_
