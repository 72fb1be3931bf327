// Offers collections of results to nodes, and ends them, from the aggregator's change feed.
#ifndef MUSTER_SERVICES_RELAY_RUNS_RUN_OFFERS_H_
#define MUSTER_SERVICES_RELAY_RUNS_RUN_OFFERS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "muster/v1/changes.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/topology.h"

namespace muster {

// Sends an offer to its nodes by their next hops. Skips unreachable nodes. Does not block.
void SendOffer(Topology& topology, const v1::CollectionOffer& offer);

// For the root relay. A node receives an offer for each result without an outcome, and again
// whenever it is attached, also if the pair has timed out: its agent may have crashed, and a late
// result counts. In post-processing nothing is offered. All nodes learn of the end of a run; those
// that are unreachable then learn of it by the welcome at their return (EndedRuns). Thread-safe.
class RunOffers {
 public:
  // The end of a run is remembered for this long, and until this long after its deadline.
  static constexpr absl::Duration kEndRemembered = absl::Hours(24);

  RunOffers(Topology& topology, const Clock& clock) : topology_(topology), clock_(clock) {}

  // Handles one event of the feed; events are in order. Calls `welcome` if the children may have
  // another list of ended runs than EndedRuns returns, before it sends them an offer.
  void HandleChange(const v1::FollowChangesResponse& event, absl::FunctionRef<void()> welcome);

  // Nodes became reachable, or by another route.
  void OnReachable(const std::vector<std::string>& names);

  // Returns the remembered runs that have ended: at most kMaxEndedRuns, those that are
  // remembered longest. Returns none during a snapshot: if the aggregator was restored from a
  // backup, some of them have not ended.
  std::vector<std::string> EndedRuns();

 private:
  struct Plugin {
    std::string definition_yaml;
    std::set<std::string> wanted;  // nodes: their pairs are pending or timed out
  };
  struct Active {
    google::protobuf::Timestamp deadline;
    std::map<std::string, Plugin> plugins;  // the plugins that nodes run
    bool offered = true;                    // false in post-processing
  };

  // The messages to send once the lock is released.
  struct News {
    std::vector<v1::CollectionOffer> offers;
    std::vector<std::string> ended;  // runs
    bool welcome = false;
  };

  News Apply(const v1::FollowChangesResponse& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandleRun(const v1::Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandleDeletion(const std::string& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `end`: of the run, or its deadline if that is later. `offered`: children may collect for it.
  void AddEnded(const std::string& run, absl::Time end, bool offered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandlePairs(const v1::FollowChangesResponse::PairsChanged& pairs,
                   std::map<std::pair<std::string, std::string>, std::vector<std::string>>* fresh)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<v1::CollectionOffer> OffersFor(const std::vector<std::string>& names) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::CollectionOffer Offer(const std::string& run, const std::string& plugin) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasEnded(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendEnd(const std::string& run);

  Topology& topology_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Active> runs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Active> before_snapshot_ ABSL_GUARDED_BY(mutex_);
  // Until when the end of a run is remembered.
  std::map<std::string, absl::Time> ended_ ABSL_GUARDED_BY(mutex_);
  // The runs that were not announced yet, and whether children may collect for them.
  std::map<std::string, bool> newly_ended_ ABSL_GUARDED_BY(mutex_);
  // Children may have another list of ended runs.
  bool lists_outdated_ ABSL_GUARDED_BY(mutex_) = false;
  bool in_snapshot_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_RUNS_RUN_OFFERS_H_
