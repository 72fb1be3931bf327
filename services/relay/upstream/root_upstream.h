// The way of the relay at the centre: straight to aggregator and status.
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
#include "services/common/base/mutex.h"
#include "services/common/identity/certificate.h"
#include "services/common/service/feed_follower.h"
#include "services/relay/runs/run_offers.h"
#include "services/relay/trust.h"
#include "services/relay/upstream/upstream_base.h"

namespace muster {

// Follows the aggregator's change feed: who was revoked, which runs want results of whom. Asks it
// who may sign commands. Thread-safe.
class RootUpstream : public UpstreamBase {
 public:
  // All outlive it. `signers_known` is called each time that the aggregator has told who may sign
  // commands no more.
  RootUpstream(Topology& topology, Trust& trust, RunOffers& offers,
               std::shared_ptr<grpc::Channel> aggregator, std::shared_ptr<grpc::Channel> status,
               std::function<void()> signers_known);
  ~RootUpstream() override;

  // Upstream.
  std::shared_ptr<grpc::Channel> Results() override { return aggregator_; }
  std::shared_ptr<grpc::Channel> Status() override { return status_; }
  std::shared_ptr<grpc::Channel> Joining() override { return aggregator_; }
  bool connected() const override { return connected_; }

  // The fleet's command authority; nothing until the aggregator has told it.
  std::optional<Certificate> command_ca() const;
  // Whether the feed has been heard from its beginning.
  bool caught_up() const { return caught_up_; }

 private:
  void HandleChange(const v1::FollowChangesResponse& event) ABSL_LOCKS_EXCLUDED(mutex_);
  void Watch(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AskWhoIsRevoked() ABSL_LOCKS_EXCLUDED(mutex_);

  Trust& trust_;
  RunOffers& offers_;
  const std::shared_ptr<grpc::Channel> aggregator_;
  const std::shared_ptr<grpc::Channel> status_;
  const std::function<void()> signers_known_;
  std::atomic<bool> connected_ = false;
  std::atomic<bool> caught_up_ = false;
  std::set<std::string> snapshot_revoked_;  // the follower's thread alone, as the next
  bool in_snapshot_ = false;
  mutable Mutex mutex_;
  StoppableCondVar wake_;
  bool ask_ ABSL_GUARDED_BY(mutex_) = true;
  std::optional<Certificate> command_ca_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FeedFollower> follower_;
  std::jthread watcher_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_ROOT_UPSTREAM_H_
