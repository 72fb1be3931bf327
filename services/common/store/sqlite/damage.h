// Stored results and archives that a verification found damaged.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_DAMAGE_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_DAMAGE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"
#include "services/common/store/state_store.h"

namespace muster::sqlite {

absl::StatusOr<RecordDamage::Result> Execute(WriteContext& context, const RecordDamage& command);
absl::StatusOr<DeclineRedelivery::Result> Execute(WriteContext& context,
                                                  const DeclineRedelivery& command);
absl::StatusOr<SaveScrubPosition::Result> Execute(WriteContext& context,
                                                  const SaveScrubPosition& command);

// Removes the record of damage of a pair or an archive. Returns false if there is none.
bool ForgetDamage(Connection& db, const ResultKey& key);

// Replaces the bytes of the damaged result `head` by those of `result`, and ends the request for
// it. Returns false if the result is not damaged, or if their SHA-256 are not equal.
bool RepairResult(WriteContext& context, int64_t row, const ResultRecord& head,
                  const ResultRecord& result);

// These functions read; the caller holds a transaction. ReadDamage returns an empty text if the
// current result of the pair is whole.
std::string ReadDamage(Connection& db, const ResultKey& key);
// As ResultRecord::redelivery.
std::string ReadRedelivery(Connection& db, const ResultKey& key);
absl::StatusOr<Page<ResultKey>> ReadRedeliveries(Connection& db, std::string_view run,
                                                 std::string_view page_token, int limit);
int64_t CountDamaged(Connection& db);
std::string ReadScrubPosition(Connection& db);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_DAMAGE_H_
