// Runs, their plans and authorities: from creation to deletion.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_RUNS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_RUNS_H_

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

// What a delivery has to know of its run.
struct RunHead {
  RunState state = RunState::kPlanned;
  int64_t deadline_at = 0;
  int64_t seal_grace = 0;
  int64_t pending = 0;
  bool fail_fast = false;

  // Ended, or past its deadline and its grace: nothing more is taken.
  bool ClosedAt(int64_t now) const {
    return IsFinal(state) || (deadline_at > 0 && now > deadline_at + seal_grace);
  }
};
std::optional<RunHead> FindRun(Connection& db, std::string_view run);

// Tells the feed that something of a run changed that is not a result.
void NoteRun(WriteContext& context, std::string_view run, ChangeKind kind, int64_t at);

// Moves a run to `state` and tells the feed.
void MoveRun(WriteContext& context, std::string_view run, RunState state, int64_t at);

// Ends a run that has not ended as kFailed or kCancelled.
void FinishRun(WriteContext& context, const EndRun& end);

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
