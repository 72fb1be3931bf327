// Revocations, issued certificates, and audit records that stand alone.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_IDENTITIES_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_IDENTITIES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"

namespace muster::sqlite {

// What commands about nodes do as well: with audit record and, for a revocation, change. False: it
// was revoked before.
bool AddRevocation(WriteContext& context, const RevocationRecord& revocation);
// Without an audit record.
void AddIssued(WriteContext& context, const IssuedRecord& issued);

absl::StatusOr<Revoke::Result> Execute(WriteContext& context, const Revoke& command);
absl::StatusOr<RecordIssued::Result> Execute(WriteContext& context, const RecordIssued& command);
absl::StatusOr<AppendAudit::Result> Execute(WriteContext& context, const AppendAudit& command);

// Reads; the caller holds a read transaction.
std::vector<RevocationRecord> ReadRevocations(Connection& db);
std::optional<IssuedRecord> FindIssued(Connection& db, std::string_view issuer,
                                       std::string_view serial);
std::vector<IssuedRecord> ReadIssued(Connection& db, std::string_view prefix, int limit);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_IDENTITIES_H_
