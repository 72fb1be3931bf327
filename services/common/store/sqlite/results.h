// Results: their commit, their generations, their bodies.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_RESULTS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_RESULTS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"
#include "services/common/store/state_store.h"

namespace muster::sqlite {

// Where a pair of the plan stands.
struct PairHead {
  Outcome outcome = Outcome::kPending;
  int64_t generation = 0;
  int64_t result = 0;  // results.id
  int64_t attempt = 0;
};
std::optional<PairHead> FindPair(Connection& db, const ResultKey& key);

// The same where it is known that there is such a run: rows of one that was deleted may still lie
// there.
std::optional<PairHead> FindPairOfRun(Connection& db, const ResultKey& key);

absl::StatusOr<CommitResult::Result> Execute(WriteContext& context, const CommitResult& command);
absl::StatusOr<TimeOutPair::Result> Execute(WriteContext& context, const TimeOutPair& command);

// Reads; the caller holds a read transaction.

// The current result of a pair without its body; nullopt if the pair is not planned.
std::optional<ResultRecord> ReadHead(Connection& db, const ResultKey& key);
ResultRecord ReadHead(Connection& db, const ResultKey& key, const PairHead& pair);
std::optional<ResultRecord> ReadResult(Connection& db, const ResultKey& key);
std::vector<ResultRecord> ReadHistory(Connection& db, const ResultKey& key);
absl::StatusOr<Page<ResultRecord>> ReadResults(Connection& db, const ResultFilter& filter,
                                               std::string_view page_token, int limit);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_RESULTS_H_
