// What the status service knows: every run with its pairs, and what plugins say of their progress.
#ifndef MUSTER_SERVICES_STATUS_BOARD_H_
#define MUSTER_SERVICES_STATUS_BOARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/status.pb.h"

namespace muster {

// Which part of a run is asked for.
struct StatusQuery {
  std::string run;  // empty: the newest
  std::string plugin;
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;  // unspecified: any
  int page_size = 0;                              // pairs; 0: none
  std::string page_token;
  // Only this pair, whatever else is asked for.
  std::string only_plugin;
  std::string only_node;
};

// Thread-safe. All in memory: everything but the progress comes again from the feed after a
// restart. Its size is bounded by the runs that the aggregator keeps.
class Board {
 public:
  // Takes one event of the change feed, at the time `now`. A snapshot replaces everything when it
  // is complete; until then questions are answered from what was known.
  void Apply(const v1::FollowChangesResponse& event, absl::Time now);

  // RUN_NOT_FOUND, STATUS_NOT_READY before the first snapshot, INVALID_PAGE_TOKEN.
  absl::StatusOr<v1::RunStatus> Get(const StatusQuery& query) const;

  // RUN_NOT_FOUND, PAIR_NOT_PLANNED, INVALID_PROGRESS.
  absl::Status Report(const v1::ReportProgressRequest& report, absl::Time now);

  // OK once the first snapshot is complete.
  absl::Status Ready() const;

 private:
  struct Pair {
    v1::Outcome outcome = v1::OUTCOME_PENDING;
    int64_t generation = 0;
    int64_t size = 0;
    std::string error;
    absl::Time updated;
    std::unique_ptr<v1::Progress> progress;
  };

  struct Plugin {
    v1::ResultCounts counts;
    std::map<std::string, Pair, std::less<>> pairs;  // by node
  };

  struct Run {
    v1::Run run;  // without definitions
    std::map<std::string, Plugin, std::less<>> plugins;
  };

  using Runs = std::map<std::string, Run, std::less<>>;

  void ApplyRun(const v1::Run& run);
  void ApplyPair(const v1::FollowChangesResponse::PairChanged& change, absl::Time now);
  void KeepProgress(Runs& from);
  const Run* Newest() const;
  static void AddPlugins(const Run& run, const StatusQuery& query, v1::RunStatus* status);
  static absl::Status AddPairs(const Run& run, const StatusQuery& query, v1::RunStatus* status);
  static bool Matches(const StatusQuery& query, const std::string& node, const Pair& pair);
  static void AddPair(const std::string& plugin, const std::string& node, const Pair& pair,
                      v1::RunStatus* status);

  mutable std::mutex mutex_;
  Runs runs_;                 // guarded by mutex_
  Runs next_;                 // guarded by mutex_: the snapshot that is arriving
  bool in_snapshot_ = false;  // guarded by mutex_
  bool ready_ = false;        // guarded by mutex_
  absl::Time feed_time_;      // guarded by mutex_
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_H_
