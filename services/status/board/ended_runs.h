// Loads the pairs of runs that have ended, and chooses the ones to drop.
#ifndef MUSTER_SERVICES_STATUS_BOARD_ENDED_RUNS_H_
#define MUSTER_SERVICES_STATUS_BOARD_ENDED_RUNS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/caller_quota.h"
#include "services/status/board/run_board.h"

namespace muster {

// The pairs of a run that has ended do not change any more. So the feed does not list them, and
// they are in memory only while callers ask for them. Thread-safe. Calls no function of its callers
// with its lock held.
class EndedRuns {
 public:
  using Ready = absl::AnyInvocable<void(absl::StatusOr<std::shared_ptr<RunBoard>> run)>;
  using Add = std::function<void(const v1::FollowChangesResponse& event)>;
  using Done = std::function<void(const absl::Status& status)>;
  // Reads the pairs of `run` from the aggregator: calls `add` with each event, then `done` once.
  using Read = std::function<void(const std::string& run, Add add, Done done)>;
  // Adds what is stored about the pairs of a run from before a restart.
  using Restore = std::function<void(const std::string& run)>;

  static constexpr size_t kMaxPairs = 200'000;  // about 70 MiB

  EndedRuns(const Clock& clock, Read read, Restore restore, size_t max_pairs = kMaxPairs)
      : clock_(clock),
        read_(std::move(read)),
        restore_(std::move(restore)),
        max_pairs_(max_pairs) {}

  // Calls `ready` once `run`, which has ended, has all of its pairs. Callers that wait for the same
  // run share one read. `caller` is who asks (HolderOf): one of them waits at most a hundred
  // times. OVERLOADED, TOO_MANY_WAITING_CALLS, PAIRS_NOT_LOADED, RUN_NOT_FOUND.
  void Load(const std::shared_ptr<RunBoard>& run, std::string_view caller, Ready ready)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A caller has asked for the run now.
  void MarkUsed(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the runs whose pairs are to be dropped: runs that have ended and were not asked for
  // within ten minutes, and the ones that were not asked for longest if all have more than
  // `max_pairs` together. The last used run is kept, however large it is.
  std::vector<std::string> FindIdle(const std::vector<std::shared_ptr<RunBoard>>& runs)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    Ready ready;
    CallerQuota::Ticket ticket;
  };

  void Finish(const std::shared_ptr<RunBoard>& run, absl::Status status)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock& clock_;
  const Read read_;
  const Restore restore_;
  const size_t max_pairs_;
  Mutex mutex_;
  CallerQuota quota_;
  std::map<std::string, std::vector<Waiting>> waiting_ ABSL_GUARDED_BY(mutex_);  // by run
  std::map<std::string, absl::Duration> used_ ABSL_GUARDED_BY(mutex_);  // monotonic, by run
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_ENDED_RUNS_H_
