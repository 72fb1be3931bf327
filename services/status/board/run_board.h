// One run: its pairs, what each is at, and in which order they changed.
#ifndef MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_
#define MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/status.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/status/board/lost_pairs.h"
#include "services/status/board/moment_clock.h"
#include "services/status/board/new_progress.h"
#include "services/status/board/pair.h"
#include "services/status/board/pair_change_log.h"
#include "services/status/board/pair_pages.h"
#include "services/status/board/pair_table.h"
#include "services/status/board/pair_writer.h"
#include "services/status/board/start_grace.h"
#include "services/status/board/summary_cache.h"
#include "services/status/board/text_budget.h"
#include "services/status/board/verdict_log.h"

namespace muster {

// The position of a watcher: it has received the changes of pairs up to `version`.
struct WatchPosition {
  uint64_t version = 0;
  uint64_t summary = 0;  // the version of the summary that it has
};

// One mutex guards the parts, each with one invariant: the pairs (PairTable), their order of change
// (PairChangeLog), the silent ones (LostPairs), the start grace (StartGrace), the progress to store
// (NewProgress) and the summary (SummaryCache). Thread-safe. Long answers release the lock after a
// few hundred pairs.
class RunBoard {
 public:
  // The environment of a run, which it does not outlive.
  struct Context {
    const Clock* clock = nullptr;
    VerdictLog* verdicts = nullptr;
    // Called after each change, under the run's lock: it may take at most a short lock.
    std::function<void(const std::string& run)> changed;
    // Called when the reason of a pair has changed, also under the run's lock.
    std::function<void(const std::string& node, const v1::NodeEvent& event)> event;
    // Returns why the service doubts its network or machine; empty if it does not. Also called
    // under the run's lock, as is the next.
    std::function<std::string()> doubt;
    // Returns the disconnected relays.
    std::function<std::vector<const RelayState*>()> lost_relays;
    // Returns since when heartbeats are accepted; monotonic.
    std::function<absl::Duration()> ready_since;
    // The memory for the texts of all runs.
    TextBudget* texts = nullptr;
  };

  RunBoard(std::string id, const Context& context);

  const std::string& id() const { return id_; }
  // Random, so that a cursor of another run, or from before a restart, is recognised.
  const std::string& epoch() const { return epoch_; }

  // Events of the feed. `live`: the change has just happened. Otherwise it is part of a snapshot,
  // which replaces the known state. `at`: its time; the infinite past if that is not known.
  void SetRun(const v1::Run& run);
  struct PairSet {
    bool added = false;  // the pair is new
    // The sender that has ended its work on the pair; null if it has not, or the pair timed out.
    std::shared_ptr<const Sender> finished_for;
  };
  using PairChanged = v1::FollowChangesResponse::PairChanged;
  PairSet SetPair(const std::string& plugin, const PairChanged& change, bool live, absl::Time at);
  // The aggregator has removed the run, or it is replaced: its watches end.
  void Delete();

  // Handles the activity of a sender for a pair. Sets `*attends` if the pair had another sender, or
  // none, before. PAIR_NOT_PLANNED.
  absl::Status HandleActivity(const v1::ResultKey& key, const std::shared_ptr<const Sender>& sender,
                              const v1::Activity& activity, bool* attends);
  // Handles a report without a heartbeat. PAIR_NOT_PLANNED.
  absl::Status Report(const v1::ReportProgressRequest& report);
  // The state of a pair from before a restart of this service.
  struct Memory {
    std::shared_ptr<const Sender> sender;       // null: none, or forgotten
    absl::Time first = absl::InfiniteFuture();  // of the first message; the infinite future: now
    std::unique_ptr<v1::Progress> progress;     // null: none
  };
  // Restores the state where nothing newer has arrived.
  void Restore(const v1::ResultKey& key, Memory memory);
  // The presence or the evidence of the sender of the pair has changed.
  void SenderChanged(const std::string& plugin, const std::string& node,
                     const std::shared_ptr<const Sender>& sender);

  // Evaluates the conditions that depend on time. Called once a second.
  void Tick();

  // Returns the run without pairs, for a caller who may see all of it.
  std::shared_ptr<const v1::RunStatus> Summary();
  // Adds one page of pairs, which ends early rather than becoming too large. Returns the token of
  // the next page, or an empty one at the end. INVALID_PAGE_TOKEN.
  absl::StatusOr<std::string> AddPairs(const StatusQuery& query, PairWriter* pairs);
  // Returns whether the feed has listed every planned pair. Before, no count is true.
  bool complete() const;
  // Returns whether the pair is planned. An empty `plugin` means any.
  bool Plans(const std::string& plugin, const std::string& node);
  // Returns whether the pair may still get a genuine result: it is pending or timed out, and the
  // run has not ended.
  bool IsOpen(const std::string& plugin, const std::string& node);
  // Returns the node of each pair: as often as the node has pairs.
  std::vector<std::string> PlannedNodes() const;
  // Adds the pairs of `node` until `out` holds `limit`. Returns about how many bytes they take.
  size_t AddPairsOf(const std::string& node, int limit,
                    google::protobuf::RepeatedPtrField<v1::PairStatus>* out);

  // Adds at most `limit` pairs that changed after version `after` up to `until`, the oldest change
  // first. Returns the version up to which all were added.
  uint64_t AddChanges(uint64_t after, uint64_t until, int limit, PairWriter* pairs);
  // Returns the newest versions.
  WatchPosition Newest() const;
  // For the metrics: the state, and the number of pending pairs by reason (none when ended).
  struct Tally {
    v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
    std::array<size_t, v1::Reason_ARRAYSIZE> unfinished = {};
  };
  Tally MakeTally() const;
  bool ended() const {
    MutexLock lock(mutex_);
    return IsEnded(run_.state());
  }
  bool deleted() const {
    MutexLock lock(mutex_);
    return deleted_;
  }
  size_t pair_count() const {
    MutexLock lock(mutex_);
    return pairs_.size();
  }
  // Returns the run as SetRun received it last, without definitions.
  v1::Run row() const {
    MutexLock lock(mutex_);
    return run_;
  }
  // Returns the progress of the pending pairs that reported since the last call.
  std::vector<std::pair<v1::ResultKey, v1::Progress>> DrainNewProgress();

 private:
  Outlook OutlookNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns why judgement on nodes of this run is suspended; empty if it is not.
  std::string DoubtNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateLostAfter(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A message about the pair has arrived.
  Work& Hear(Pair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The pair has an outcome since `at`, in monotonic time; the infinite past if that is not known.
  void Finish(Pair& pair, absl::Duration at, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An agent of the plan that can work has reported.
  void MarkReported() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandleReport(Pair& pair, const v1::ReportProgressRequest& report, const Moment& now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Determines the reason again after a change of the pair's facts. Returns whether it is another
  // one. `live`: the change happens now, and is added to the history of the node.
  bool Judge(Pair& pair, const Moment& now, bool live = true) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Judges the pending pairs after the run has ended, or continues.
  void JudgePending(const Moment& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Touch(Pair& pair, bool summary) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickPace(const Moment& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickStart(const Moment& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string id_;
  const std::string epoch_;
  const Context context_;

  mutable Mutex mutex_;
  mutable MomentClock clock_ ABSL_GUARDED_BY(mutex_);
  v1::Run run_ ABSL_GUARDED_BY(mutex_);  // without definitions
  TextBudget texts_;                     // outlives pairs_
  PairTable pairs_ ABSL_GUARDED_BY(mutex_);
  PairChangeLog log_ ABSL_GUARDED_BY(mutex_);
  LostPairs lost_ ABSL_GUARDED_BY(mutex_);
  StartGrace start_ ABSL_GUARDED_BY(mutex_);
  bool deleted_ ABSL_GUARDED_BY(mutex_) = false;
  int ticks_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration created_at_ ABSL_GUARDED_BY(mutex_);  // monotonic
  SummaryCache summary_ ABSL_GUARDED_BY(mutex_);
  NewProgress new_progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_
