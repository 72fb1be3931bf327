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

constexpr absl::Duration kTick = absl::Seconds(1);
constexpr std::chrono::seconds kAnswerWithin(10);
// Repairs a missed list; a revocation in the feed updates the list immediately.
constexpr int kTicksBetweenUpdates = 60;

}  // namespace

RootUpstream::RootUpstream(Topology& topology, Trust& trust, RunOffers& offers,
                           GetChannel aggregator, GetChannel status,
                           std::function<void()> signers_known, TimerService& timers,
                           Executor& executor)
    : UpstreamBase(topology),
      trust_(trust),
      offers_(offers),
      aggregator_(std::move(aggregator)),
      status_(std::move(status)),
      signers_known_(std::move(signers_known)),
      follower_(std::make_unique<FeedFollower>(
          aggregator_, [this](const v1::FollowChangesResponse& event) { HandleChange(event); },
          timers, executor)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

RootUpstream::~RootUpstream() {
  thread_.request_stop();
  wake_.NotifyAll();
  thread_.join();
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
  stale_ = true;
  wake_.NotifyAll();
}

// Watches the connection to the aggregator, and keeps the command revocations current.
void RootUpstream::Run(const std::stop_token& stop) {
  int ticks = 0;
  while (!stop.stop_requested()) {
    const bool connected = follower_->connected();
    if (connected_.exchange(connected) != connected) NotifyListeners();
    bool update = false;
    {
      MutexLock lock(mutex_);
      update = stale_ || ++ticks >= kTicksBetweenUpdates;
      // A revocation that arrives during the update requires another one.
      if (update && connected) stale_ = false;
    }
    if (update && connected) {
      const absl::Status updated = UpdateCommandRevocations();
      if (updated.ok()) {
        ticks = 0;
        update = false;
      } else {
        MutexLock lock(mutex_);
        stale_ = true;
        Log(LogLevel::kWarning, "cannot get the command revocations", {{"error", updated}});
      }
    }
    MutexLock lock(mutex_);
    // A failed update is repeated at the next tick.
    wake_.WaitFor(mutex_, stop, kTick, [this, update]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stale_ && !update;
    });
  }
}

absl::Status RootUpstream::UpdateCommandRevocations() {
  const auto stub = v1::IdentityService::NewStub(aggregator_());
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
