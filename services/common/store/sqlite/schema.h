// The tables of the state store, and how older ones become the current ones.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SCHEMA_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SCHEMA_H_

#include <span>

#include "absl/status/status.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// SQL that turns version i into i + 1, for i = 0, 1, ...; a step that was released is never
// changed.
std::span<const char* const> SchemaSteps();

// Brings the database to the version that `steps` end at, one step a transaction, so that a loss of
// the process leaves a version that the next start goes on from. FAILED_PRECONDITION with reason
// STORE_TOO_NEW if a newer Muster wrote it.
absl::Status Migrate(Connection& db, std::span<const char* const> steps);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_SCHEMA_H_
