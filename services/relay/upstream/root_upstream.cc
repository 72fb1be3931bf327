#include "services/relay/upstream/root_upstream.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <utility>

#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr absl::Duration kLook = absl::Seconds(1);
constexpr std::chrono::seconds kAnswerWithin(10);
// A list that was missed is fetched by then; a revocation in the feed asks at once.
constexpr int kLooksBetweenAsking = 60;

}  // namespace

RootUpstream::RootUpstream(Topology& topology, Trust& trust, RunOffers& offers,
                           std::shared_ptr<grpc::Channel> aggregator,
                           std::shared_ptr<grpc::Channel> status,
                           std::function<void()> signers_known)
    : UpstreamBase(topology),
      trust_(trust),
      offers_(offers),
      aggregator_(std::move(aggregator)),
      status_(std::move(status)),
      signers_known_(std::move(signers_known)),
      follower_(std::make_unique<FeedFollower>(
          aggregator_, [this](const v1::FollowChangesResponse& event) { HandleChange(event); })),
      watcher_([this](const std::stop_token& stop) { Watch(stop); }) {}

RootUpstream::~RootUpstream() {
  watcher_.request_stop();
  wake_.NotifyAll();
  watcher_.join();
  follower_.reset();
}

std::optional<Certificate> RootUpstream::command_ca() const {
  MutexLock lock(mutex_);
  return command_ca_;
}

void RootUpstream::HandleChange(const v1::FollowChangesResponse& event) {
  offers_.HandleChange(event);
  switch (event.event_case()) {
    case v1::FollowChangesResponse::kSnapshotBegin:
      in_snapshot_ = true;
      snapshot_revoked_.clear();
      return;
    case v1::FollowChangesResponse::kSnapshotEnd:
      in_snapshot_ = false;
      caught_up_ = true;
      trust_.Replace(std::exchange(snapshot_revoked_, {}));
      break;
    case v1::FollowChangesResponse::kRevoked:
      if (in_snapshot_) {
        snapshot_revoked_.insert(event.revoked().subject());
        return;
      }
      trust_.Revoke({event.revoked().subject()});
      break;
    default:
      return;
  }
  MutexLock lock(mutex_);
  ask_ = true;
  wake_.NotifyAll();
}

// Looks whether the aggregator is heard, and keeps the list of revoked signers.
void RootUpstream::Watch(const std::stop_token& stop) {
  int looks = 0;
  while (!stop.stop_requested()) {
    const bool heard = follower_->connected();
    if (connected_.exchange(heard) != heard) Changed();
    bool ask = false;
    {
      MutexLock lock(mutex_);
      ask = ask_ || ++looks >= kLooksBetweenAsking;
    }
    if (ask && heard) {
      const absl::Status asked = AskWhoIsRevoked();
      if (asked.ok()) {
        looks = 0;
        MutexLock lock(mutex_);
        ask_ = false;
      } else {
        Log(LogLevel::kWarning, "cannot ask who may sign commands no more", {{"error", asked}});
      }
    }
    MutexLock lock(mutex_);
    // What failed is not asked again before the next look.
    wake_.WaitFor(mutex_, stop, kLook,
                  [this, ask]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ask_ && !ask; });
  }
}

absl::Status RootUpstream::AskWhoIsRevoked() {
  const auto stub = v1::IdentityService::NewStub(aggregator_);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAnswerWithin);
  v1::CommandRevocations list;
  const grpc::Status called = stub->GetCommandRevocations(&context, {}, &list);
  if (!called.ok()) return FromGrpc(called);
  ASSIGN_OR_RETURN(auto authority, Certificate::FromPem(list.command_ca_pem()));
  trust_.UpdateCommandRevocations(list);
  {
    MutexLock lock(mutex_);
    command_ca_ = std::move(authority);
  }
  signers_known_();
  return absl::OkStatus();
}

}  // namespace muster
