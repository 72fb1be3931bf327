// Revocations, issued certificates, and single audit records.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_IDENTITIES_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_IDENTITIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"

namespace muster::sqlite {

// Adds a revocation with audit record and change; commands about nodes use it too. Returns false if
// the subject was already revoked. `vouched_by`: as in Actor.
bool AddRevocation(WriteContext& context, const RevocationRecord& revocation,
                   const std::string& vouched_by = "");
// Adds a certificate without an audit record, and removes a few that expired long ago, with their
// revocations.
void AddIssued(WriteContext& context, const IssuedRecord& issued);

absl::StatusOr<Revoke::Result> Execute(WriteContext& context, const Revoke& command);
absl::StatusOr<RecordIssued::Result> Execute(WriteContext& context, const RecordIssued& command);
absl::StatusOr<AppendAudit::Result> Execute(WriteContext& context, const AppendAudit& command);

// These functions read; the caller holds a read transaction.
std::vector<RevocationRecord> ReadRevocations(Connection& db);
std::optional<IssuedRecord> FindIssued(Connection& db, std::string_view issuer,
                                       std::string_view serial);
std::optional<IssuedRecord> ReadNewestIssued(Connection& db, std::string_view uri);
std::vector<IssuedRecord> ReadNewestOfEach(Connection& db, std::string_view prefix);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_IDENTITIES_H_
