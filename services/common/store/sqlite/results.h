// Results: commits, generations and bodies.
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

// The state of a planned pair.
struct PairHead {
  Outcome outcome = Outcome::kPending;
  int64_t generation = 0;
  int64_t result = 0;  // results.id
  int64_t attempt = 0;
};
std::optional<PairHead> FindPair(Connection& db, const ResultKey& key);
// Returns true if the run's plan contains a pair of this node.
bool HasPairOfNode(Connection& db, std::string_view run, std::string_view node);

// Finds the pair of a run that is known to exist: rows of a deleted run may not be removed yet.
std::optional<PairHead> FindPairOfRun(Connection& db, const ResultKey& key);

// Sets the attempt below which opens of the pair are refused.
void SetAttempt(Connection& db, const ResultKey& key, int64_t attempt);

absl::StatusOr<CommitResult::Result> Execute(WriteContext& context, const CommitResult& command);
absl::StatusOr<TimeOutPair::Result> Execute(WriteContext& context, const TimeOutPair& command);

// These functions read; the caller holds a read transaction.

// Reads the columns uri, node_unproven, vouched_by and signature.
Delivery ParseDelivery(Rows& rows);

// Returns the current result of a pair without its body and the certificates of its signer, which
// are large; nullopt if the pair is not planned.
std::optional<ResultRecord> ReadHead(Connection& db, const ResultKey& key);
ResultRecord ReadHead(Connection& db, const ResultKey& key, const PairHead& pair);
std::optional<ResultRecord> ReadResult(Connection& db, const ResultKey& key);
std::vector<ResultRecord> ReadHistory(Connection& db, const ResultKey& key);
absl::StatusOr<Page<ResultRecord>> ReadResults(Connection& db, const ResultFilter& filter,
                                               std::string_view page_token, int limit);
absl::StatusOr<Page<PairRecord>> ReadPairs(Connection& db, std::string_view run,
                                           std::string_view page_token, int limit);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_RESULTS_H_
