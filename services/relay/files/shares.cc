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
  StopWay();
  disk_.Drain(absl::Seconds(10)).IgnoreError();
}

void Shares::Take(const v1::AttachResponse& message) {
  if (message.has_shares()) way_->Take(message.shares());
  if (message.has_share_query()) queries_->Serve(message.share_query());
}

void Shares::StopWay() {
  if (way_ != nullptr) way_->Stop();
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
  own.centre_.emplace(parts);
  own.way_ = std::make_unique<ShareRouter>(parts, options.times, *own.centre_,
                                           [&own] { own.queries_->Tick(); });
  ShareRouter& way = *own.way_;
  const auto changed = [&way] { way.Wake(); };
  own.desk_.emplace(parts, changed);
  own.queries_.emplace(parts, *own.desk_);
  own.office_.emplace(parts, *own.desk_, *own.queries_, *own.centre_, own.disk_);
  runtime.executor = &own.disk_;
  own.service_.emplace(runtime, parts,
                       ShareService::Helpers{*own.desk_, *own.queries_, *own.centre_, *own.office_},
                       changed, [&way] { return way.settled(); });
  return shares;
}

}  // namespace muster
