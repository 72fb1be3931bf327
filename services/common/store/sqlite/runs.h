// Runs, their plans and authorities: from creation to deletion.
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

// Tells the feed that something of a run changed that is not a result.
void NoteRun(WriteContext& context, std::string_view run, ChangeKind kind, int64_t at);

// Moves a run to `state` and tells the feed.
void MoveRun(WriteContext& context, std::string_view run, RunState state, int64_t at);

// Ends a run that has not ended as kFailed or kCancelled.
void FinishRun(WriteContext& context, const EndRun& end);

// The parts of a creation, for one that takes several transactions (plan_steps.h).
// In the order of the key: each page of the table is written once.
void SortPairs(std::vector<PlannedPair>& pairs);
// Returns how many were not there yet.
int64_t InsertPairs(Connection& db, std::string_view run, std::span<const PlannedPair> pairs);
// The answer, if this request was dealt with before or the id is taken.
std::optional<absl::StatusOr<CreateRun::Result>> CheckCreation(WriteContext& context,
                                                               const CreateRun& command);
// Everything but the pairs, of which `planned` are there.
CreateRun::Result FinishCreation(WriteContext& context, const CreateRun& command, int64_t planned);

absl::StatusOr<CreateRun::Result> Execute(WriteContext& context, const CreateRun& command);
absl::StatusOr<ReportListener::Result> Execute(WriteContext& context,
                                               const ReportListener& command);
absl::StatusOr<TimeOutRun::Result> Execute(WriteContext& context, const TimeOutRun& command);
absl::StatusOr<KeepPartials::Result> Execute(WriteContext& context, const KeepPartials& command);
absl::StatusOr<SealRun::Result> Execute(WriteContext& context, const SealRun& command);
absl::StatusOr<EndRun::Result> Execute(WriteContext& context, const EndRun& command);
absl::StatusOr<DeleteRun::Result> Execute(WriteContext& context, const DeleteRun& command);
absl::StatusOr<WipeAuthority::Result> Execute(WriteContext& context, const WipeAuthority& command);

// Removes some rows of a deleted run; true if there are more.
bool PruneDeletedRuns(WriteContext& context, int64_t step);

// Reads; the caller holds a read transaction.
std::optional<RunView> ReadRun(Connection& db, std::string_view run);
absl::StatusOr<Page<RunRecord>> ReadRuns(Connection& db, std::string_view page_token, int limit);
std::vector<RunView> ReadLiveRuns(Connection& db);
std::optional<RunAuthorityRecord> ReadAuthority(Connection& db, std::string_view run);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_RUNS_H_
