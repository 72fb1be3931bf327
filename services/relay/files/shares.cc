#include "services/relay/files/shares.h"

#include <utility>

#include "services/common/base/status_macros.h"

namespace muster {
namespace {

// Uploads and readers of shared files wait for the disk on these threads.
constexpr size_t kDiskThreads = 4;
constexpr size_t kDiskQueue = 16'384;

constexpr size_t kRouterThreads = 4;
constexpr size_t kRouterQueue = 64;

PostTask PostTo(Executor& executor) {
  return [&executor](absl::AnyInvocable<void()> task) { return executor.Post(std::move(task)); };
}

}  // namespace

Shares::Shares()
    : disk_({"shares", kDiskThreads, kDiskQueue}),
      upstream_({"share-up", kRouterThreads, kRouterQueue}),
      downstream_({"share-down", kRouterThreads, kRouterQueue}) {}

Shares::~Shares() {
  StopRouter();
  disk_.Drain(absl::InfiniteDuration()).IgnoreError();
}

void Shares::HandleMessage(const v1::AttachResponse& message) {
  if (message.has_shares()) router_->HandleOffers(message.shares());
  if (message.has_share_query()) queries_->HandleQuery(message.share_query());
}

void Shares::StopRouter() {
  if (router_ != nullptr) router_->Stop();
  if (parent_ != nullptr) parent_->Stop();
  // Without a limit: their tasks use the members. Calls have ended, and the disk ends the rest.
  upstream_.Drain(absl::InfiniteDuration()).IgnoreError();
  downstream_.Drain(absl::InfiniteDuration()).IgnoreError();
  if (queries_) queries_->Stop();
}

absl::StatusOr<std::unique_ptr<Shares>> Shares::Open(SharesOptions options,
                                                     const Environment& environment,
                                                     RpcRuntime runtime) {
  std::unique_ptr<Shares> shares(new Shares());
  Shares& own = *shares;
  ASSIGN_OR_RETURN(own.store_, ShareStore::Open(std::move(options.store), own.disk_,
                                                environment.clock, environment.metrics));
  const ShareParts parts{*own.store_,     environment.tree,  environment.clock, options.fleet,
                         options.is_root, environment.peers, environment.trust};
  own.aggregator_.emplace(parts);
  own.parent_ = std::make_unique<RemoteShareParent>(environment.peers);
  own.router_ = std::make_unique<ShareRouter>(
      parts, options.times,
      ShareRouter::Environment{*own.parent_, *own.aggregator_, PostTo(own.upstream_),
                               PostTo(own.downstream_), environment.timers, own.disk_});
  own.local_index_.emplace(parts, *own.router_);
  own.queries_.emplace(parts, *own.local_index_, environment.timers, own.disk_);
  own.fleet_index_.emplace(parts, *own.local_index_, *own.queries_, *own.aggregator_, own.disk_);
  runtime.executor = &own.disk_;
  own.service_.emplace(runtime, parts,
                       ShareService::Helpers{*own.local_index_, *own.queries_, *own.aggregator_,
                                             *own.fleet_index_, *own.router_});
  return shares;
}

}  // namespace muster
