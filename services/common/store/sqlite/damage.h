// Stored results and archives that a verification found damaged.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_DAMAGE_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_DAMAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"

namespace muster::sqlite {

absl::StatusOr<RecordDamage::Result> Execute(WriteContext& context, const RecordDamage& command);
absl::StatusOr<SaveScrubPosition::Result> Execute(WriteContext& context,
                                                  const SaveScrubPosition& command);

// Removes the record of damage of a pair or an archive. Returns false if there is none.
bool ForgetDamage(Connection& db, const ResultKey& key);

// Replaces the bytes of a damaged result by those of `result`, which has the same content. Returns
// false if the current result of the pair is not damaged.
bool RepairResult(WriteContext& context, int64_t row, const ResultRecord& result);

// These functions read; the caller holds a transaction. ReadDamage returns an empty text if the
// current result of the pair is whole.
std::string ReadDamage(Connection& db, const ResultKey& key);
int64_t CountDamaged(Connection& db);
std::string ReadScrubPosition(Connection& db);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_DAMAGE_H_
