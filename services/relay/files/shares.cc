#include "services/relay/files/shares.h"

#include <utility>

#include "services/common/base/status_macros.h"

namespace muster {
namespace {

// Uploads and readers wait for the disk here, and for nobody else.
constexpr size_t kThreads = 4;
constexpr size_t kMaxQueue = 16'384;

}  // namespace

Shares::Shares() : disk_({"shares", kThreads, kMaxQueue}) {}

Shares::~Shares() {
  StopRouter();
  disk_.Drain(absl::Seconds(10)).IgnoreError();
}

void Shares::HandleMessage(const v1::AttachResponse& message) {
  if (message.has_shares()) router_->HandleOffers(message.shares());
  if (message.has_share_query()) queries_->HandleQuery(message.share_query());
}

void Shares::StopRouter() {
  if (router_ != nullptr) router_->Stop();
  if (queries_) queries_->Stop();
}

absl::StatusOr<std::unique_ptr<Shares>> Shares::Open(SharesOptions options, const Topology& tree,
                                                     const Clock& clock, RpcRuntime runtime,
                                                     Metrics& metrics) {
  ASSIGN_OR_RETURN(auto store, ShareStore::Open(std::move(options.store), clock, metrics));
  std::unique_ptr<Shares> shares(new Shares());
  shares->store_ = std::move(store);
  const ShareParts parts{*shares->store_,
                         tree,
                         clock,
                         std::move(options.fleet),
                         options.is_root,
                         std::move(options.parent),
                         std::move(options.aggregator),
                         std::move(options.roots),
                         std::move(options.is_revoked)};
  Shares& own = *shares;
  own.aggregator_.emplace(parts);
  own.router_ = std::make_unique<ShareRouter>(parts, options.times, *own.aggregator_,
                                              [&own] { own.queries_->Tick(); });
  ShareRouter& router = *own.router_;
  const auto changed = [&router] { router.Wake(); };
  own.local_index_.emplace(parts, changed);
  own.queries_.emplace(parts, *own.local_index_);
  own.fleet_index_.emplace(parts, *own.local_index_, *own.queries_, *own.aggregator_, own.disk_);
  runtime.executor = &own.disk_;
  own.service_.emplace(
      runtime, parts,
      ShareService::Helpers{*own.local_index_, *own.queries_, *own.aggregator_, *own.fleet_index_},
      changed, [&router] { return router.settled(); });
  return shares;
}

}  // namespace muster
