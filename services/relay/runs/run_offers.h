// Which nodes are to be asked for results of which runs, from the aggregator's change feed.
#ifndef MUSTER_SERVICES_RELAY_RUNS_RUN_OFFERS_H_
#define MUSTER_SERVICES_RELAY_RUNS_RUN_OFFERS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "muster/v1/attachment.pb.h"
#include "muster/v1/changes.pb.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/topology.h"

namespace muster {

// Sends a collection down to `nodes`, each by the child that it is reached by; nodes that are away
// are left out. Does not wait.
void SendOffer(Topology& topology, const v1::CollectionOffer& offer);

// At the relay at the centre. A node is asked for a result as long as none is there, not even an
// error, and whenever it attaches. Thread-safe.
class RunOffers {
 public:
  explicit RunOffers(Topology& topology) : topology_(topology) {}

  // An event of the feed, in order.
  void HandleChange(const v1::FollowChangesResponse& event);

  // These can be reached now.
  void OnReachable(const std::vector<std::string>& names);

  // Results that attached nodes are asked for.
  size_t open() const;

 private:
  struct Plugin {
    std::string definition_yaml;
    std::set<std::string> pending;  // nodes
  };
  struct Active {
    google::protobuf::Timestamp deadline;
    std::map<std::string, Plugin> plugins;  // those that a node runs by itself
  };

  void TakeRun(const v1::Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakePair(const v1::FollowChangesResponse::PairChanged& pair,
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
