#include "services/relay/shares/shares.h"

#include <utility>

namespace muster {
namespace {

// Uploads and readers wait for the disk here, and for nobody else.
constexpr size_t kThreads = 4;
constexpr size_t kMaxQueue = 16'384;

}  // namespace

Shares::Shares() : disk_({"shares", kThreads, kMaxQueue}) {}

Shares::~Shares() {
  if (way_ != nullptr) way_->Stop();
  disk_.Drain(absl::Seconds(10)).IgnoreError();
}

absl::StatusOr<std::unique_ptr<Shares>> Shares::Open(SharesOptions options, const Tree& tree,
                                                     const Clock& clock, RpcRuntime runtime,
                                                     Metrics& metrics) {
  auto store = ShareStore::Open(std::move(options.store), clock, metrics);
  if (!store.ok()) return store.status();
  std::unique_ptr<Shares> shares(new Shares());
  shares->store_ = *std::move(store);
  const ShareParts parts{*shares->store_,
                         tree,
                         clock,
                         std::move(options.fleet),
                         options.is_root,
                         std::move(options.parent),
                         std::move(options.roots),
                         std::move(options.is_revoked)};
  shares->way_ = std::make_unique<ShareWay>(parts, options.times);
  runtime.executor = &shares->disk_;
  ShareWay& way = *shares->way_;
  shares->service_.emplace(
      runtime, parts, [&way] { way.Wake(); }, [&way] { return way.settled(); });
  return shares;
}

}  // namespace muster
