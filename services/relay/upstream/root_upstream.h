// The upstream of the root relay: the aggregator and the status service.
#ifndef MUSTER_SERVICES_RELAY_UPSTREAM_ROOT_UPSTREAM_H_
#define MUSTER_SERVICES_RELAY_UPSTREAM_ROOT_UPSTREAM_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "muster/v1/changes.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/identity/certificate.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/service/feed_follower.h"
#include "services/relay/runs/run_offers.h"
#include "services/relay/trust.h"
#include "services/relay/upstream/upstream_base.h"

namespace muster {

// Follows the aggregator's change feed with its revocations and runs, and gets the command
// revocations. Thread-safe.
class RootUpstream : public UpstreamBase {
 public:
  // All outlive it; events of the feed are handled on `executor`. `signers_known` is called each
  // time the aggregator has sent the command revocations.
  RootUpstream(Topology& topology, Trust& trust, RunOffers& offers, GetChannel aggregator,
               GetChannel status, std::function<void()> signers_known, TimerService& timers,
               Executor& executor);
  ~RootUpstream() override;

  // Upstream.
  std::shared_ptr<grpc::Channel> Results() override { return aggregator_(); }
  std::shared_ptr<grpc::Channel> Status() override { return status_(); }
  std::shared_ptr<grpc::Channel> Joining() override { return aggregator_(); }
  bool connected() const override { return connected_; }

  // The fleet's command authority; empty until the aggregator has sent it.
  std::optional<Certificate> command_ca() const;
  // Returns whether the first snapshot of the feed is complete.
  bool caught_up() const { return caught_up_; }

 private:
  void HandleChange(const v1::FollowChangesResponse& event) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status UpdateCommandRevocations() ABSL_LOCKS_EXCLUDED(mutex_);

  Trust& trust_;
  RunOffers& offers_;
  const GetChannel aggregator_;
  const GetChannel status_;
  const std::function<void()> signers_known_;
  std::atomic<bool> connected_ = false;
  std::atomic<bool> caught_up_ = false;
  std::set<std::string> snapshot_revoked_;  // used by HandleChange, as the next
  bool in_snapshot_ = false;
  mutable Mutex mutex_;
  StoppableCondVar wake_;
  bool stale_ ABSL_GUARDED_BY(mutex_) = true;
  std::optional<Certificate> command_ca_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FeedFollower> follower_;
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_ROOT_UPSTREAM_H_
