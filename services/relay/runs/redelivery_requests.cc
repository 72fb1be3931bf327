#include "services/relay/runs/redelivery_requests.h"

#include <utility>

#include "services/common/base/log.h"
#include "services/relay/runs/run_offers.h"

namespace muster {
namespace {

v1::CollectionOffer Offer(const std::string& run, const std::string& plugin) {
  v1::CollectionOffer offer;
  offer.set_run(run);
  offer.add_plugins()->set_name(plugin);
  offer.set_redelivery(true);
  return offer;
}

}  // namespace

void RedeliveryRequests::HandleChange(const v1::FollowChangesResponse& event) {
  std::vector<v1::CollectionOffer> offers;
  {
    MutexLock lock(mutex_);
    offers = Apply(event);
  }
  for (const v1::CollectionOffer& offer : offers) SendOffer(topology_, offer);
}

std::vector<v1::CollectionOffer> RedeliveryRequests::Apply(const v1::FollowChangesResponse& event) {
  if (event.has_snapshot_begin()) {
    in_snapshot_ = true;
    nodes_.clear();
    count_ = 0;
  } else if (event.has_snapshot_end()) {
    in_snapshot_ = false;
    return OffersFor(topology_.Nodes());
  } else if (event.has_run_deleted()) {
    Drop(event.run_deleted().run());
  } else if (event.has_run() && (event.run().state() == v1::RUN_STATE_CANCELLED ||
                                 event.run().state() == v1::RUN_STATE_FAILED)) {
    Drop(event.run().id());
  } else if (event.has_redelivery()) {
    const auto& change = event.redelivery();
    Change(change);
    if (!in_snapshot_ && change.requested()) {
      v1::CollectionOffer offer = Offer(change.run(), change.plugin());
      offer.add_nodes(change.node());
      return {std::move(offer)};
    }
  }
  return {};
}

void RedeliveryRequests::Change(const v1::FollowChangesResponse::RedeliveryChanged& change) {
  const Key key{change.run(), change.plugin()};
  if (!change.requested()) {
    const auto found = nodes_.find(key);
    if (found == nodes_.end()) return;
    count_ -= found->second.erase(change.node());
    if (found->second.empty()) nodes_.erase(found);
    return;
  }
  if (count_ >= max_requests_) {
    LogLimited(LogLevel::kWarning, "too many damaged results are requested from their nodes", "",
               {{"run", change.run()}, {"plugin", change.plugin()}, {"node", change.node()}});
    return;
  }
  if (nodes_[key].insert(change.node()).second) ++count_;
}

void RedeliveryRequests::Drop(const std::string& run) {
  for (auto it = nodes_.lower_bound({run, ""}); it != nodes_.end() && it->first.first == run;) {
    count_ -= it->second.size();
    it = nodes_.erase(it);
  }
}

std::vector<v1::CollectionOffer> RedeliveryRequests::OffersFor(
    const std::vector<std::string>& names) const {
  std::vector<v1::CollectionOffer> offers;
  for (const auto& [key, nodes] : nodes_) {
    v1::CollectionOffer offer;
    for (const std::string& name : names) {
      if (!nodes.contains(name)) continue;
      if (offer.run().empty()) offer = Offer(key.first, key.second);
      offer.add_nodes(name);
    }
    if (!offer.run().empty()) offers.push_back(std::move(offer));
  }
  return offers;
}

void RedeliveryRequests::OnReachable(const std::vector<std::string>& names) {
  std::vector<v1::CollectionOffer> offers;
  {
    MutexLock lock(mutex_);
    if (in_snapshot_) return;
    offers = OffersFor(names);
  }
  for (const v1::CollectionOffer& offer : offers) SendOffer(topology_, offer);
}

}  // namespace muster
