// Offers collections of results to nodes, from the aggregator's change feed.
#ifndef MUSTER_SERVICES_RELAY_RUNS_RUN_OFFERS_H_
#define MUSTER_SERVICES_RELAY_RUNS_RUN_OFFERS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "muster/v1/attachment.pb.h"
#include "muster/v1/changes.pb.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/topology.h"

namespace muster {

// Sends an offer to its nodes by their next hops. Skips unreachable nodes. Does not block.
void SendOffer(Topology& topology, const v1::CollectionOffer& offer);

// For the root relay. A node receives an offer for each result without an outcome, and again
// whenever it is attached. Thread-safe.
class RunOffers {
 public:
  explicit RunOffers(Topology& topology) : topology_(topology) {}

  // Handles one event of the feed; events are in order.
  void HandleChange(const v1::FollowChangesResponse& event);

  // Nodes became reachable, or by another route.
  void OnReachable(const std::vector<std::string>& names);

 private:
  struct Plugin {
    std::string definition_yaml;
    std::set<std::string> pending;  // nodes
  };
  struct Active {
    google::protobuf::Timestamp deadline;
    std::map<std::string, Plugin> plugins;  // the plugins that nodes run
  };

  void HandleRun(const v1::Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandlePairs(const v1::FollowChangesResponse::PairsChanged& pairs,
                   std::map<std::pair<std::string, std::string>, std::vector<std::string>>* fresh)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<v1::CollectionOffer> OffersFor(const std::vector<std::string>& names) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::CollectionOffer Offer(const std::string& run, const std::string& plugin) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Topology& topology_;
  mutable Mutex mutex_;
  std::map<std::string, Active> runs_ ABSL_GUARDED_BY(mutex_);
  bool in_snapshot_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_RUNS_RUN_OFFERS_H_
