// Moves shared files upstream until a relay knows the target, and then downstream, relay by relay,
// to the one that the target is attached to.
//
// Upstream, this relay sends (ParentForwarder). Downstream, it offers the file on the stream of the
// child relay (ChildOffers), which fetches it (ShareFetcher), stores it and reports that; only then
// does this relay delete its copy. The records of the store hold all that must survive a restart.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/relay/files/child_offers.h"
#include "services/relay/files/parent_forwarder.h"
#include "services/relay/files/retry_schedule.h"
#include "services/relay/files/share_fetcher.h"
#include "services/relay/files/share_outcomes.h"
#include "services/relay/files/share_parent.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// Decides the next step of every file (share_step.h), once a second and after each change.
// Thread-safe.
class ShareRouter {
 public:
  struct Times {
    absl::Duration tick = absl::Seconds(1);
    RetrySchedule::Times retry;
    // An offer without a report of the child is sent again after it.
    absl::Duration offer_again = absl::Seconds(10);
    // The time of a target without attachment before the parent is asked for another route.
    absl::Duration elsewhere = absl::Minutes(1);
    // The time after a start in which nodes attach again and none is unknown yet.
    absl::Duration settling = absl::Seconds(45);
    absl::Duration sweep = absl::Seconds(10);
  };

  // Everything in it outlives the router.
  struct Environment {
    ShareParent& parent;
    // Returns TARGET_UNKNOWN for a node that never joined; waits for the aggregator.
    std::function<absl::Status(const std::string& node)> check_joined;
    PostTask post_upstream;    // work for the parent
    PostTask post_downstream;  // fetches: neither direction waits for the other
    std::function<void()> on_tick;
  };

  ShareRouter(ShareParts parts, const Times& times, Environment environment);
  ~ShareRouter();

  // Starts the thread that calls Tick. Once, when there may be a parent.
  void Start();
  // Stops it.
  void Stop();

  // Requests a tick. Does not wait.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles a message of the parent. Does not wait.
  void HandleOffers(const v1::ShareOffers& offers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether unknown targets are refused by now.
  bool settled() const;

  // Starts what is due. One call at a time: the thread calls it, and tests.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void Act(const ShareRecord& record);
  void ActHeld(const ShareRecord& record);
  void SendIfElsewhere(const ShareRecord& record);
  void LookUpTarget(const ShareRecord& record);
  void RemoveForParent(const v1::ShareKey& key);

  const ShareParts parts_;
  const Times times_;
  const Environment environment_;
  const absl::Duration started_;
  const ShareOutcomes outcomes_;
  ParentForwarder forwarder_;
  ShareFetcher fetcher_;
  RetrySchedule lookups_;

  Mutex mutex_;
  StoppableCondVar wake_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<ShareName, v1::ShareKey> removals_ ABSL_GUARDED_BY(mutex_);  // of the parent

  // Used by Tick alone:
  ChildOffers child_offers_;
  uint64_t last_connection_ = 0;
  absl::Duration swept_;

  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_
