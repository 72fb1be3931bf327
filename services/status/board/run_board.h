// One run: its pairs, what each is at, and in which order they changed.
#ifndef MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_
#define MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_

#include <array>
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
#include "services/status/board/pair.h"
#include "services/status/board/pair_change_log.h"
#include "services/status/board/pair_pages.h"
#include "services/status/board/pair_table.h"
#include "services/status/board/pair_writer.h"
#include "services/status/board/start_grace.h"
#include "services/status/board/verdicts.h"

namespace muster {

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
  // What a progress report of an unfinished pair came to, since the last call.
  std::vector<std::pair<v1::ResultKey, v1::Progress>> TakeNewProgress();

 private:
  Outlook OutlookNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateLostAfter(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A message about the pair has arrived.
  Work& Hear(Pair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `at`: when the pair finished, in monotonic time; the infinite past if that is not known.
  void Finish(Pair& pair, absl::Duration at, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyReport(Pair& pair, const v1::ReportProgressRequest& report, const Moment& now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Determines the reason again after a change of the pair's facts. Returns whether it is another
  // one. `news`: the change happens now, and belongs into the history of the node.
  bool Judge(Pair& pair, const Moment& now, bool news = true) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Touch(Pair& pair, bool summary) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickPace(const Moment& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickStart(const Moment& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string id_;
  const std::string epoch_;
  const Surroundings around_;
  const absl::Duration known_since_;  // monotonic

  mutable Mutex mutex_;
  mutable MomentClock clock_ ABSL_GUARDED_BY(mutex_);
  v1::Run run_ ABSL_GUARDED_BY(mutex_);  // without definitions
  PairTable pairs_ ABSL_GUARDED_BY(mutex_);
  PairChangeLog log_ ABSL_GUARDED_BY(mutex_);
  LostPairs lost_ ABSL_GUARDED_BY(mutex_);
  StartGrace start_ ABSL_GUARDED_BY(mutex_);
  bool deleted_ ABSL_GUARDED_BY(mutex_) = false;
  int ticks_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration created_at_ ABSL_GUARDED_BY(mutex_);  // monotonic
  uint64_t summary_version_ ABSL_GUARDED_BY(mutex_) = 1;
  std::shared_ptr<const v1::RunStatus> summary_ ABSL_GUARDED_BY(mutex_);
  uint64_t summary_of_ ABSL_GUARDED_BY(mutex_) = 0;    // the version of summary_
  absl::Duration summary_at_ ABSL_GUARDED_BY(mutex_);  // monotonic
  std::vector<Pair*> new_progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_RUN_BOARD_H_
