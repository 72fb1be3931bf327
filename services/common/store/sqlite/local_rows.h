// Statements on one row of a local database.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_LOCAL_ROWS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_LOCAL_ROWS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/sqlite/local_database.h"

namespace muster::sqlite {

// Runs a statement with the parameter `id` in a separate transaction; waits for the disk.
absl::Status WriteRow(LocalDatabase& database, const char* sql, const std::string& id);

// Calls `read` with the row that a query with the parameter `id` returns. NOT_FOUND if it returns
// none.
absl::Status ReadRow(LocalDatabase& database, const char* sql, const std::string& id,
                     const std::function<void(Rows& row)>& read);

// Returns the first column of the row that a query with the parameter `id` returns. NOT_FOUND.
absl::StatusOr<std::string> ReadText(LocalDatabase& database, const char* sql,
                                     const std::string& id);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_LOCAL_ROWS_H_
