// The state of the status service: every run with its pairs and their senders, and every node.
#ifndef MUSTER_SERVICES_STATUS_BOARD_BOARD_H_
#define MUSTER_SERVICES_STATUS_BOARD_BOARD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/status.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/status/board/ended_runs.h"
#include "services/status/board/nodes.h"
#include "services/status/board/run_board.h"
#include "services/status/board/sender_pairs.h"
#include "services/status/board/text_budget.h"
#include "services/status/board/verdict_log.h"
#include "services/status/board/watch_hub.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// All in memory: after a restart the outcomes arrive from the feed again, and the activities are
// restored from the store. A run that has ended is in memory without its pairs, unless a caller has
// asked for them recently (EndedRuns). Thread-safe.
class Board : public HeartbeatListener {
 public:
  struct Options {
    const Clock* clock = nullptr;
    WatchHub* hub = nullptr;
    VerdictLog* verdicts = nullptr;
    // Returns why the service doubts its network or machine; empty if it does not.
    std::function<std::string()> doubt;
    // Returns the disconnected relays.
    std::function<std::vector<const RelayState*>()> lost_relays;
    // A pair of the node has another reason. This and the next take at most a short lock.
    std::function<void(const std::string& node, const v1::NodeEvent& event)> event;
    std::function<void(const std::string& run)> gone;  // the aggregator has removed the run
    // The runs of the first snapshot: all others were removed before.
    std::function<void(const std::set<std::string>& runs)> known;
    // No pair of the sender awaits a result. Called without a lock.
    std::function<void(const std::shared_ptr<const Sender>& sender)> done;
    EndedRuns::Read read_pairs;
    // Calls RestoreContact and RestoreProgress for the stored pairs of a run. May wait for the
    // disk.
    EndedRuns::Restore restore;
  };

  // All functions are required.
  explicit Board(Options options);

  // Applies an event of the change feed. A complete snapshot replaces everything.
  void Apply(const v1::FollowChangesResponse& event);

  // Restore the state of pairs from before a restart: the time of a sender's first message, and the
  // progress. Called after PresenceChanged for the restored senders, by Options::restore or before.
  void RestoreContact(const v1::ResultKey& key, const std::string& uri, absl::Time first);
  void RestoreProgress(const v1::ResultKey& key, v1::Progress progress);

  // HeartbeatListener.
  absl::Status HandleActivity(const v1::ResultKey& key, const std::shared_ptr<const Sender>& sender,
                              const v1::Activity& activity) override;
  void PresenceChanged(const std::shared_ptr<const Sender>& sender) override;

  // RUN_NOT_FOUND, PAIR_NOT_PLANNED, INVALID_PROGRESS, STATUS_NOT_READY.
  absl::Status Report(const v1::ReportProgressRequest& report);

  // Evaluates the conditions that depend on time. Called once a second.
  void Tick();

  // Returns the id of the newest run for an empty name; any other name is returned unchanged.
  // RUN_NOT_FOUND if there is no run, STATUS_NOT_READY.
  absl::StatusOr<std::string> Resolve(const std::string& run) const;
  // RUN_NOT_FOUND; STATUS_NOT_READY also for a new run until the feed has listed all its pairs.
  absl::StatusOr<std::shared_ptr<RunBoard>> Find(const std::string& run) const;
  // Calls `ready` with the run once it has its pairs: before this returns, unless the run has
  // ended. `caller` is the URI of who asks. Errors: those of Find and of EndedRuns::Load.
  void FindWithPairs(const std::string& run, std::string_view caller, EndedRuns::Ready ready);
  // Appends the bytes of a v1::RunStatus. RUN_NOT_FOUND if the caller's node is not planned,
  // INVALID_PAGE_TOKEN.
  absl::Status Get(RunBoard& run, const StatusQuery& query, std::string* bytes) const;
  // Adds the run without pairs, as a watcher receives it.
  void AddSummary(RunBoard& run, v1::RunStatus* status) const;

  // Errors: those of Nodes::List, STATUS_NOT_READY.
  absl::StatusOr<v1::ListNodesResponse> ListNodes(const v1::ListNodesRequest& request) const;
  // Without events. NODE_NOT_FOUND, STATUS_NOT_READY.
  absl::StatusOr<v1::Node> GetNode(const std::string& node) const;

  // For the metrics: runs by state, and the unfinished pairs of all of them by reason.
  struct Tally {
    std::array<size_t, v1::RunState_ARRAYSIZE> runs = {};
    std::array<size_t, v1::Reason_ARRAYSIZE> unfinished = {};
  };
  Tally MakeTally() const;
  const TextBudget& texts() const { return texts_; }

  // Returns the new progress of all runs since the last call.
  std::vector<std::pair<v1::ResultKey, v1::Progress>> DrainNewProgress();

  // OK once the first snapshot is complete.
  absl::Status Ready() const;

 private:
  struct Entry {
    std::shared_ptr<RunBoard> board;
    absl::Time created;
    bool loaded = false;  // its pairs are from EndedRuns: their nodes do not count as planned
  };
  struct RestoredPair {
    v1::ResultKey key;
    RunBoard::Memory memory;
  };

  Moment Now() const { return {options_.clock->Now(), options_.clock->MonotonicNow()}; }
  std::shared_ptr<RunBoard> Known(const std::string& run) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<RunBoard>> Runs() const ABSL_LOCKS_EXCLUDED(mutex_);
  void ApplyRun(const v1::Run& run) ABSL_LOCKS_EXCLUDED(mutex_);
  void ApplyPairs(const v1::FollowChangesResponse::PairsChanged& changes);
  void RemoveRun(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndSnapshot() ABSL_LOCKS_EXCLUDED(mutex_, early_mutex_);
  void RestorePairs() ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces the run by one without pairs, which is returned.
  std::shared_ptr<RunBoard> DropPairs(const RunBoard& run) ABSL_LOCKS_EXCLUDED(mutex_);
  void Replace(const std::string& run, std::shared_ptr<RunBoard> by) ABSL_LOCKS_EXCLUDED(mutex_);
  void DropIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  static bool LacksPairs(const RunBoard& run) { return run.ended() && !run.complete(); }
  void Attend(const v1::ResultKey& key, const std::shared_ptr<const Sender>& sender);
  void ReportIfDone(const std::shared_ptr<const Sender>& sender);
  void ReportUnknownIfDone(const std::vector<std::shared_ptr<const Sender>>& senders);
  void Prune();

  const Options options_;
  TextBudget texts_;  // of the runs
  Nodes nodes_;
  RunBoard::Context context_;
  EndedRuns ended_;
  absl::Duration dropped_at_;            // used by Apply: of the last DropIdle; monotonic
  bool in_snapshot_ = false;             // used by Apply
  std::set<std::string> snapshot_runs_;  // used by Apply: the runs of the snapshot
  int ticks_ = 0;                        // used by Tick
  std::atomic<bool> ready_ = false;
  std::atomic<int64_t> ready_since_ = 0;  // monotonic nanoseconds
  std::atomic<int64_t> feed_micros_ = 0;  // wall time of the last event

  mutable Mutex mutex_;
  std::map<std::string, Entry> runs_ ABSL_GUARDED_BY(mutex_);
  std::vector<RestoredPair> restored_ ABSL_GUARDED_BY(mutex_);  // until the first snapshot
  // Later changes of a sender concern its pairs.
  SenderPairs sender_pairs_;
  Mutex early_mutex_;
  // Senders that were reported before the first snapshot, by URI and node.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Sender>> early_
      ABSL_GUARDED_BY(early_mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_BOARD_H_
