// One run: its pairs, what each is at, and in which order they changed.
#ifndef MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_
#define MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/status.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/status/board/estimate.h"
#include "services/status/board/pair.h"
#include "services/status/board/pair_writer.h"
#include "services/status/board/verdicts.h"

namespace muster {

// Which part of a run is asked for.
struct StatusQuery {
  std::string run;  // empty: the newest
  std::string plugin;
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;  // unspecified: any
  std::vector<v1::Reason> reasons;                // empty: any
  int page_size = 0;                              // pairs; 0: none
  std::string page_token;
  // Only this plugin, only this node, whatever else is asked for: what the caller may see.
  std::string only_plugin;
  std::string only_node;
};

// How far a watcher is. It has been told what changed up to `told`.
struct WatchPosition {
  uint64_t told = 0;
  uint64_t summary = 0;  // the version of the run as a whole that it has
};

// Thread-safe. Answers are made in portions: nobody waits longer than for a few hundred pairs.
class RunBoard {
 public:
  // What a run's board needs of its surroundings; it outlives the run.
  struct Surroundings {
    const Clock* clock = nullptr;
    VerdictLog* verdicts = nullptr;
    // Something changed: called under the run's lock, so it may take a short lock at most.
    std::function<void(const std::string& run)> changed;
    // A pair's reason became another; under the run's lock, too.
    std::function<void(const std::string& node, const v1::NodeEvent& event)> event;
    // Why the service doubts its sight; empty when it does not.
    std::function<std::string()> doubt;
    // Since when heartbeats could be taken; monotonic.
    std::function<absl::Duration()> ready_since;
  };

  RunBoard(std::string id, const Surroundings& around);

  const std::string& id() const { return id_; }
  // Random: a cursor of another life of this service, or of another run, has another.
  const std::string& epoch() const { return epoch_; }

  // What the feed says. `live`: it has just happened, at `at`; else it is part of a snapshot, and
  // the truth whatever was known.
  void SetRun(const v1::Run& run);
  struct PairSet {
    bool added = false;  // the pair is new
    // Who attended to a pair that was unfinished until now; else null.
    std::shared_ptr<const Sender> finished_for;
  };
  PairSet SetPair(const v1::FollowChangesResponse::PairChanged& change, bool live, absl::Time at);
  // The aggregator has removed the run: watchers end.
  void Delete();

  // What a sender does for a pair. `*attends` is set if it did not attend to it before.
  // PAIR_NOT_PLANNED.
  absl::Status Took(const v1::ResultKey& key, const std::shared_ptr<const Sender>& sender,
                    const v1::Activity& activity, bool* attends);
  // PAIR_NOT_PLANNED.
  absl::Status Report(const v1::ReportProgressRequest& report);
  // What an earlier life of this service knew of a pair that was heard of.
  struct Memory {
    std::shared_ptr<const Sender> sender;       // null: nobody, or not known any more
    absl::Time first = absl::InfiniteFuture();  // the first word; the infinite future: now
    std::unique_ptr<v1::Progress> progress;     // null: none
  };
  // What was heard in this life counts more.
  void Recall(const v1::ResultKey& key, Memory memory);
  // The presence of what attends to the pair has changed.
  void SenderChanged(const std::string& plugin, const std::string& node,
                     const std::shared_ptr<const Sender>& sender);

  // Looks at what time alone can change. Once a second.
  void Tick();

  // The run without pairs, as who may see all of it sees it. Made anew when it has changed or is
  // older than a round of a watch, so that a thousand watchers cost one.
  std::shared_ptr<const v1::RunStatus> Summary();
  // Adds one page of pairs; it ends early rather than becoming too large. Gives the token of the
  // next page, empty at the end. INVALID_PAGE_TOKEN.
  absl::StatusOr<std::string> AddPairs(const StatusQuery& query, PairWriter* pairs);
  // `plugin` may be empty: any.
  bool Plans(const std::string& plugin, const std::string& node);
  // Whether the pair is unfinished, in a run that has not ended.
  bool IsOpen(const std::string& plugin, const std::string& node);
  // The node of each pair: one is there as often as it has pairs.
  std::vector<std::string> PlannedNodes() const;
  // The pairs of `node`, at most until `out` holds `limit`; returns about how many bytes they take.
  size_t AddPairsOf(const std::string& node, int limit,
                    google::protobuf::RepeatedPtrField<v1::PairStatus>* out);

  // Pairs that changed after `after` up to `until`, the oldest change first, at most `limit`; the
  // version up to which all were told.
  uint64_t AddChanges(uint64_t after, uint64_t until, int limit, PairWriter* pairs);
  // The newest versions of the pairs and of the run as a whole.
  WatchPosition Newest() const;
  // For the metrics: the state, and how many unfinished pairs have each reason (none when ended).
  struct Tally {
    v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
    std::array<size_t, v1::Reason_ARRAYSIZE> unfinished = {};
  };
  Tally MakeTally() const;
  bool ended() const;
  bool deleted() const;
  absl::Time created() const;
  // What a progress report of an unfinished pair came to, since the last call.
  std::vector<std::pair<v1::ResultKey, v1::Progress>> TakeNewProgress();

 private:
  struct LogEntry {
    uint64_t version;
    Pair* pair;
  };

  Moment Now() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Pair* Find(std::string_view plugin, std::string_view node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Pair* AddPair(PluginPairs& plugin, const std::string& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Work& Hear(Pair& pair);
  void Finish(Pair& pair, absl::Duration at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reopen(Pair& pair);
  void Progressed(Pair& pair, const v1::ReportProgressRequest& report, const Moment& now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `news`: it happens now, and belongs into the history of the node.
  void Judge(Pair& pair, const Moment& now, bool news = true) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Touch(Pair& pair, bool summary) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Compact() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellEvent(const Pair& pair, const Moment& now);
  void TickPace(PluginPairs& plugin, const Moment& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickSilent(const Moment& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickStart(const Moment& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WithdrawLost(Pair& pair);
  void WithdrawAllLost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WithdrawStartGraceExpired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Outlook OutlookNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::RunStatus MakeSummary(const std::string& doubt, const Moment& now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::ResultKey KeyOf(const Pair& pair) const;
  std::string StartGraceReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether somebody is there who checks its way or waits, without having found a fault.
  bool SomebodyWaits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool Matches(const StatusQuery& query, const Pair& pair);
  // Adds what a portion of pairs after `*after` has; false at the end of the page, of which
  // `*more` says whether it is the last.
  bool AddPortion(const StatusQuery& query, std::pair<std::string, std::string>* after, bool* more,
                  PairWriter* pairs) ABSL_LOCKS_EXCLUDED(mutex_);
  static void AddEstimate(v1::RunStatus* status);
  void AddPluginStatus(PluginPairs& plugin, const Moment& now, v1::RunStatus* status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<TimeRange> EstimateOf(PluginPairs& plugin, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddStragglers(const PairView& view, v1::RunStatus* status) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string id_;
  const std::string epoch_;
  const Surroundings around_;

  mutable Mutex mutex_;
  v1::Run run_ ABSL_GUARDED_BY(mutex_);  // without definitions
  std::map<std::string, PluginPairs, std::less<>> plugins_ ABSL_GUARDED_BY(mutex_);
  std::array<PairList, v1::Reason_ARRAYSIZE> by_reason_
      ABSL_GUARDED_BY(mutex_);                         // unfinished pairs
  std::vector<LogEntry> log_ ABSL_GUARDED_BY(mutex_);  // ascending; some are overtaken
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t summary_version_ ABSL_GUARDED_BY(mutex_) = 1;
  size_t pair_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool came_ ABSL_GUARDED_BY(mutex_) = false;                 // somebody of the plan was heard of
  bool start_grace_expired_ ABSL_GUARDED_BY(mutex_) = false;  // that verdict stands
  bool deleted_ ABSL_GUARDED_BY(mutex_) = false;
  int ticks_ ABSL_GUARDED_BY(mutex_) = 0;
  // The wall clock as the monotonic one shows it.
  mutable absl::Time wall_zero_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration known_since_ ABSL_GUARDED_BY(mutex_);  // monotonic
  absl::Duration created_at_ ABSL_GUARDED_BY(mutex_);   // monotonic
  std::shared_ptr<const v1::RunStatus> summary_ ABSL_GUARDED_BY(mutex_);
  uint64_t summary_of_ ABSL_GUARDED_BY(mutex_) = 0;    // its version
  absl::Duration summary_at_ ABSL_GUARDED_BY(mutex_);  // monotonic
  std::vector<Pair*> new_progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_
