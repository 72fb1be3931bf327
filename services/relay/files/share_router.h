// Moves shared files upstream until a relay knows the target, and then downstream, relay by relay,
// to the one that the target is attached to.
//
// Upstream, this relay sends (ParentForwarder). Downstream, it offers the file on the stream of the
// child relay (ChildOffers), which fetches it (ShareFetcher), stores it and reports that; only then
// does this relay delete its copy. The records of the store hold all that must survive a restart.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/relay/files/child_offers.h"
#include "services/relay/files/parent_forwarder.h"
#include "services/relay/files/retry_schedule.h"
#include "services/relay/files/share_aggregator_client.h"
#include "services/relay/files/share_fetcher.h"
#include "services/relay/files/share_outcomes.h"
#include "services/relay/files/share_parent.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// Decides the next step of every file (share_step.h), once a second and after each change.
// Thread-safe.
class ShareRouter final : public ShareRouting {
 public:
  struct Times {
    absl::Duration tick = absl::Seconds(1);
    BackoffOptions retry{.first = absl::Seconds(1), .most = absl::Seconds(30)};
    // An offer without a report of the child is sent again after it.
    absl::Duration offer_again = absl::Seconds(10);
    // The time for which a target is not attached before the relay asks the parent for another
    // route.
    absl::Duration elsewhere = absl::Minutes(1);
    // The time after a start in which nodes attach again. No node is unknown before its end.
    absl::Duration settling = absl::Seconds(45);
    absl::Duration sweep = absl::Seconds(10);
  };

  // All of them outlive the router.
  struct Environment {
    ShareParent& parent;
    const TargetRegister& targets;
    PostTask post_upstream;    // work for the parent and the register
    PostTask post_downstream;  // fetches: neither direction waits for the other
    TimerService& timers;
    Executor& disk;  // runs Tick
  };

  ShareRouter(ShareParts parts, const Times& times, Environment environment);
  ~ShareRouter() override;

  // Starts the ticks. Once, when there may be a parent.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops them, and waits for a tick in progress.
  void Stop();

  // Requests a tick. Does nothing before Start.
  void Wake() override ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles a message of the parent. Does not wait.
  void HandleOffers(const v1::ShareOffers& offers) ABSL_LOCKS_EXCLUDED(mutex_);
  bool settled() const override;

  // Starts the due steps of all files; waits for the disk. One call at a time; for the router
  // itself, and for tests without Start.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void RequestTick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Act(const ShareRecord& record);
  void ActHeld(const ShareRecord& record);
  void SendIfElsewhere(const ShareRecord& record);
  // Refuses the file if the register has no such node. With an error as `if_joined` it refuses the
  // file of a joined node too.
  void LookUpTarget(const ShareRecord& record, const absl::Status& if_joined);
  void RemoveForParent(const v1::ShareKey& key);

  const ShareParts parts_;
  const Times times_;
  const Environment environment_;
  const absl::Duration begun_;  // monotonic
  const ShareOutcomes outcomes_;
  ParentForwarder forwarder_;
  ShareFetcher fetcher_;
  RetrySchedule lookups_;

  Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // a tick was requested and has not begun
  std::map<ShareName, v1::ShareKey> removals_ ABSL_GUARDED_BY(mutex_);  // of the parent

  // Used by Tick alone:
  ChildOffers child_offers_;
  uint64_t last_connection_ = 0;
  bool was_settled_ = false;
  absl::Duration swept_;

  ScheduledTask tick_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_
