#include "services/relay/runs/redelivery_requests.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/relay/runs/run_offers.h"

namespace muster {
namespace {

// Collects requests into one offer for each plugin of a run.
class OfferList {
 public:
  void Add(const std::pair<std::string, std::string>& key, const std::string& node) {
    v1::CollectionOffer& offer = offers_[key];
    if (offer.run().empty()) {
      offer.set_run(key.first);
      offer.add_plugins()->set_name(key.second);
      offer.set_redelivery(true);
    }
    offer.add_nodes(node);
  }

  std::vector<v1::CollectionOffer> Dequeue() {
    std::vector<v1::CollectionOffer> offers;
    for (auto& [key, offer] : offers_) offers.push_back(std::move(offer));
    return offers;
  }

 private:
  std::map<std::pair<std::string, std::string>, v1::CollectionOffer> offers_;
};

}  // namespace

void RedeliveryRequests::HandleChange(const v1::FollowChangesResponse& event) {
  Offers offers;
  {
    MutexLock lock(mutex_);
    offers = Apply(event);
  }
  for (const v1::CollectionOffer& offer : offers) SendOffer(topology_, offer);
}

RedeliveryRequests::Offers RedeliveryRequests::Apply(const v1::FollowChangesResponse& event) {
  if (event.has_snapshot_begin()) {
    in_snapshot_ = true;
    Clear();
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
      OfferList offers;
      offers.Add({change.run(), change.plugin()}, change.node());
      return offers.Dequeue();
    }
  }
  return {};
}

void RedeliveryRequests::Change(const v1::FollowChangesResponse::RedeliveryChanged& change) {
  const Name name{{change.run(), change.plugin()}, change.node()};
  auto found = requests_.find(name);
  if (!change.requested()) {
    if (found != requests_.end()) Erase(found);
    return;
  }
  if (found == requests_.end()) {
    if (requests_.size() >= max_requests_) {
      return LogLimited(
          LogLevel::kWarning, "too many damaged results are requested from their nodes", "",
          {{"run", change.run()}, {"plugin", change.plugin()}, {"node", name.second}});
    }
    found = requests_.emplace(name, Request{}).first;
    of_node_[name.second].insert(name.first);
  }
  RepeatAfter(found, kFirstRepeat);
}

void RedeliveryRequests::Clear() {
  requests_.clear();
  of_node_.clear();
  due_.clear();
}

void RedeliveryRequests::Drop(const std::string& run) {
  for (auto it = requests_.lower_bound({{run, ""}, ""});
       it != requests_.end() && it->first.first.first == run;) {
    it = Erase(it);
  }
}

RedeliveryRequests::Requests::iterator RedeliveryRequests::Erase(Requests::iterator request) {
  const auto& [key, node] = request->first;
  const auto keys = of_node_.find(node);
  keys->second.erase(key);
  if (keys->second.empty()) of_node_.erase(keys);
  due_.erase({request->second.due, request->first});
  return requests_.erase(request);
}

void RedeliveryRequests::RepeatAfter(Requests::iterator request, absl::Duration pause) {
  due_.erase({request->second.due, request->first});
  request->second = {clock_.MonotonicNow() + pause, pause};
  due_.emplace(request->second.due, request->first);
}

RedeliveryRequests::Offers RedeliveryRequests::OffersFor(const std::vector<std::string>& nodes) {
  OfferList offers;
  for (const std::string& node : nodes) {
    const auto keys = of_node_.find(node);
    if (keys == of_node_.end()) continue;
    for (const Key& key : keys->second) {
      offers.Add(key, node);
      RepeatAfter(requests_.find({key, node}), kFirstRepeat);
    }
  }
  return offers.Dequeue();
}

void RedeliveryRequests::OnReachable(const std::vector<std::string>& names) {
  Offers offers;
  {
    MutexLock lock(mutex_);
    if (in_snapshot_) return;
    offers = OffersFor(names);
  }
  for (const v1::CollectionOffer& offer : offers) SendOffer(topology_, offer);
}

void RedeliveryRequests::Tick() {
  OfferList offers;
  {
    MutexLock lock(mutex_);
    if (in_snapshot_) return;
    const absl::Duration now = clock_.MonotonicNow();
    for (size_t sent = 0; sent < kRepeatsAtOnce && !due_.empty(); ++sent) {
      const auto& [due, name] = *due_.begin();
      if (due > now) break;
      offers.Add(name.first, name.second);
      const auto request = requests_.find(name);
      RepeatAfter(request, std::min(request->second.pause * 2, kMaxRepeat));
    }
  }
  for (const v1::CollectionOffer& offer : offers.Dequeue()) SendOffer(topology_, offer);
}

}  // namespace muster
