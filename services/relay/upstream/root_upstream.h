// The upstream of the root relay: the aggregator, the status service and the jobs service.
#ifndef MUSTER_SERVICES_RELAY_UPSTREAM_ROOT_UPSTREAM_H_
#define MUSTER_SERVICES_RELAY_UPSTREAM_ROOT_UPSTREAM_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/identities.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/recorded_operators.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/service/feed_follower.h"
#include "services/common/service/operator_follower.h"
#include "services/common/service/revocation_follower.h"
#include "services/relay/runs/redelivery_requests.h"
#include "services/relay/runs/run_offers.h"
#include "services/relay/trust.h"
#include "services/relay/upstream/upstream_base.h"

namespace muster {

// Follows the aggregator's change feed with its revocations, operators and runs, and gets the
// command revocations.
//
// Has no thread: a task on the executor observes the connection every second, and begins and ends
// the calls for the command revocations. Thread-safe.
class RootUpstream : public UpstreamBase {
 public:
  // The channels to the services.
  struct Services {
    GetChannel aggregator;
    GetChannel status;
    GetChannel jobs;
  };

  // The objects outlive it. `signers_known` is called on `executor` each time the aggregator has
  // sent the command revocations.
  RootUpstream(Topology& topology, Trust& trust, RecordedOperators& operators, RunOffers& offers,
               RedeliveryRequests& redeliveries, Services services,
               std::function<void()> signers_known, const Clock& clock, TimerService& timers,
               Executor& executor);
  ~RootUpstream() override;

  // Upstream.
  std::shared_ptr<grpc::Channel> Results() override { return services_.aggregator(); }
  std::shared_ptr<grpc::Channel> Status() override { return services_.status(); }
  std::shared_ptr<grpc::Channel> Joining() override { return services_.aggregator(); }
  std::shared_ptr<grpc::Channel> Jobs() override { return services_.jobs(); }
  absl::Status JobsUnreachable() const override;
  bool connected() const override { return connected_; }
  std::vector<std::string> ended_runs() const override { return offers_.EndedRuns(); }

  // The fleet's command authority; empty until the aggregator has sent it.
  std::optional<Certificate> command_ca() const;
  // Returns whether the first snapshot of the feed is complete.
  bool caught_up() const { return caught_up_; }

 private:
  class RevocationsCall;

  void HandleChange(const v1::FollowChangesResponse& event) ABSL_LOCKS_EXCLUDED(mutex_);
  void Step() ABSL_LOCKS_EXCLUDED(mutex_);
  void BeginCall() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndCall() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status UpdateCommandRevocations(const v1::CommandRevocations& list)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Trust& trust_;
  RunOffers& offers_;
  RedeliveryRequests& redeliveries_;
  const Services services_;
  const std::function<void()> signers_known_;
  std::atomic<bool> connected_ = false;
  std::atomic<bool> caught_up_ = false;
  RevocationFollower revocations_;  // used by HandleChange, as the next
  OperatorFollower operators_;
  const Clock& clock_;
  mutable Mutex mutex_;
  bool stale_ ABSL_GUARDED_BY(mutex_) = true;  // the list may have changed since the last call
  std::optional<Certificate> command_ca_ ABSL_GUARDED_BY(mutex_);
  // Used by step_, and by the destructor after its end.
  std::unique_ptr<RevocationsCall> call_;                 // null: none is open
  absl::Duration update_at_ = -absl::InfiniteDuration();  // monotonic, as the next
  absl::Duration not_before_ = -absl::InfiniteDuration();
  std::atomic<bool> started_ = false;  // follower_ is set
  ScheduledTask step_;
  std::unique_ptr<FeedFollower> follower_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_ROOT_UPSTREAM_H_
