// Runs with their plans and CAs, from creation to deletion.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_RUNS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_RUNS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"
#include "services/common/store/state_store.h"

namespace muster::sqlite {

// Adds a change of a run other than a result to the feed.
void AddRunChange(WriteContext& context, std::string_view run, ChangeKind kind, int64_t at);

// Sets a run to `state` and adds the change to the feed.
void SetRunState(WriteContext& context, std::string_view run, RunState state, int64_t at);

// Ends a run that has not ended as kFailed or kCancelled.
void FinishRun(WriteContext& context, const EndRun& end);

// The parts of a creation, for one in several transactions (plan_steps.h). Pairs are sorted by key,
// so that each page of the table is written once.
void SortPairs(std::vector<PlannedPair>& pairs);
// Returns the number of new pairs.
int64_t InsertPairs(Connection& db, std::string_view run, std::span<const PlannedPair> pairs);
// Returns the outcome if this request was executed before or the id is in use.
std::optional<absl::StatusOr<CreateRun::Result>> CheckCreation(WriteContext& context,
                                                               const CreateRun& command);
// Writes everything except the pairs, of which `planned` exist.
CreateRun::Result FinishCreation(WriteContext& context, const CreateRun& command, int64_t planned);

absl::StatusOr<CreateRun::Result> Execute(WriteContext& context, const CreateRun& command);
absl::StatusOr<ReportListener::Result> Execute(WriteContext& context,
                                               const ReportListener& command);
absl::StatusOr<TimeOutRun::Result> Execute(WriteContext& context, const TimeOutRun& command);
absl::StatusOr<KeepPartials::Result> Execute(WriteContext& context, const KeepPartials& command);
absl::StatusOr<SealRun::Result> Execute(WriteContext& context, const SealRun& command);
absl::StatusOr<ReportSealFault::Result> Execute(WriteContext& context,
                                                const ReportSealFault& command);
absl::StatusOr<EndRun::Result> Execute(WriteContext& context, const EndRun& command);
absl::StatusOr<DeleteRun::Result> Execute(WriteContext& context, const DeleteRun& command);
absl::StatusOr<WipeAuthority::Result> Execute(WriteContext& context, const WipeAuthority& command);
absl::StatusOr<PinRun::Result> Execute(WriteContext& context, const PinRun& command);

// Removes some rows of deleted runs; returns true if more remain.
bool PruneDeletedRuns(WriteContext& context, int64_t step);

// These functions read; the caller holds a read transaction.
std::optional<RunView> ReadRun(Connection& db, std::string_view run);
absl::StatusOr<Page<RunRecord>> ReadRuns(Connection& db, std::string_view page_token, int limit);
std::vector<RunView> ReadLiveRuns(Connection& db);
absl::StatusOr<Page<FinishedRun>> ReadFinishedRuns(Connection& db, std::string_view page_token,
                                                   int limit);
FinishedTotals CountFinishedRuns(Connection& db);
std::optional<RunAuthorityRecord> ReadAuthority(Connection& db, std::string_view run);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_RUNS_H_
