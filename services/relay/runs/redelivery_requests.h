// Requests damaged results from their nodes again, from the aggregator's change feed.
#ifndef MUSTER_SERVICES_RELAY_RUNS_REDELIVERY_REQUESTS_H_
#define MUSTER_SERVICES_RELAY_RUNS_REDELIVERY_REQUESTS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "muster/v1/changes.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/topology.h"

namespace muster {

// For the root relay. A node receives a request when the aggregator makes it, whenever the node is
// attached, and again after a time that doubles, until the aggregator withdraws it: the result was
// delivered or declined, or its run was deleted. Thread-safe. No call blocks.
class RedeliveryRequests {
 public:
  // More are dropped, with a line in the log; the next snapshot of the feed has them again.
  static constexpr size_t kMaxRequests = 10'000;
  // The time until a request is repeated, in case that it was lost. There is one sender, so the
  // times need no jitter.
  static constexpr absl::Duration kFirstRepeat = absl::Seconds(15);
  static constexpr absl::Duration kMaxRepeat = absl::Hours(1);
  static constexpr size_t kRepeatsAtOnce = 100;  // of one Tick

  RedeliveryRequests(Topology& topology, const Clock& clock, size_t max_requests = kMaxRequests)
      : topology_(topology), clock_(clock), max_requests_(max_requests) {}

  // Handles one event of the feed; events are in order.
  void HandleChange(const v1::FollowChangesResponse& event) ABSL_LOCKS_EXCLUDED(mutex_);

  // Nodes became reachable, or by another route.
  void OnReachable(const std::vector<std::string>& names) ABSL_LOCKS_EXCLUDED(mutex_);

  // Repeats requests that are due. To be called several times a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of results that are requested.
  size_t count() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return requests_.size();
  }

 private:
  // A plugin of a run, by (run, plugin).
  using Key = std::pair<std::string, std::string>;
  using Name = std::pair<Key, std::string>;  // with the node
  struct Request {
    absl::Duration due;  // monotonic, of the repetition
    absl::Duration pause;
  };
  using Requests = std::map<Name, Request>;
  using Offers = std::vector<v1::CollectionOffer>;

  Offers Apply(const v1::FollowChangesResponse& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Change(const v1::FollowChangesResponse::RedeliveryChanged& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const std::string& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Requests::iterator Erase(Requests::iterator request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RepeatAfter(Requests::iterator request, absl::Duration pause)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the offers of these nodes. Takes time for their requests alone.
  Offers OffersFor(const std::vector<std::string>& nodes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Topology& topology_;
  const Clock& clock_;
  const size_t max_requests_;
  mutable Mutex mutex_;
  Requests requests_ ABSL_GUARDED_BY(mutex_);
  // The same requests by node, and by the time of their repetition.
  std::map<std::string, std::set<Key>> of_node_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Duration, Name>> due_ ABSL_GUARDED_BY(mutex_);
  bool in_snapshot_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_RUNS_REDELIVERY_REQUESTS_H_
