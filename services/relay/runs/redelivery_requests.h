// Requests damaged results from their nodes again, from the aggregator's change feed.
#ifndef MUSTER_SERVICES_RELAY_RUNS_REDELIVERY_REQUESTS_H_
#define MUSTER_SERVICES_RELAY_RUNS_REDELIVERY_REQUESTS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/v1/attachment.pb.h"
#include "muster/v1/changes.pb.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/topology.h"

namespace muster {

// For the root relay. A node receives a request when the aggregator makes it, and again whenever
// the node is attached, until the aggregator withdraws it: the result was delivered or declined, or
// its run was deleted. Thread-safe. No call blocks.
class RedeliveryRequests {
 public:
  // More are dropped, with a line in the log; the next snapshot of the feed has them again.
  static constexpr size_t kMaxRequests = 10'000;

  explicit RedeliveryRequests(Topology& topology, size_t max_requests = kMaxRequests)
      : topology_(topology), max_requests_(max_requests) {}

  // Handles one event of the feed; events are in order.
  void HandleChange(const v1::FollowChangesResponse& event) ABSL_LOCKS_EXCLUDED(mutex_);

  // Nodes became reachable, or by another route.
  void OnReachable(const std::vector<std::string>& names) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of results that are requested.
  size_t count() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return count_;
  }

 private:
  // A plugin of a run, by (run, plugin).
  using Key = std::pair<std::string, std::string>;

  std::vector<v1::CollectionOffer> Apply(const v1::FollowChangesResponse& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Change(const v1::FollowChangesResponse::RedeliveryChanged& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const std::string& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<v1::CollectionOffer> OffersFor(const std::vector<std::string>& names) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Topology& topology_;
  const size_t max_requests_;
  mutable Mutex mutex_;
  std::map<Key, std::set<std::string>> nodes_ ABSL_GUARDED_BY(mutex_);
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;  // of the nodes in nodes_
  bool in_snapshot_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_RUNS_REDELIVERY_REQUESTS_H_
