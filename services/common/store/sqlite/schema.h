// The tables of the state store and their migration.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SCHEMA_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SCHEMA_H_

#include <span>

#include "absl/status/status.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// Returns SQL that converts version i to i + 1, for i = 0, 1, .... A released step never changes.
std::span<const char* const> SchemaSteps();

// Migrates the database to the version at the end of `steps`, one step per transaction, so that the
// next start continues after the loss of the process. Fails with FAILED_PRECONDITION
// (STORE_TOO_NEW) if a later Muster wrote it.
absl::Status Migrate(Connection& db, std::span<const char* const> steps);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_SCHEMA_H_
