#include "services/relay/runs/run_offers.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "services/common/rpc/proto_time.h"
#include "services/relay/upstream/upstream.h"

namespace muster {
namespace {

// The maximum number of nodes in one message.
constexpr int kNodesAtOnce = 2'000;

// While the run is processed, a late result may still replace a pair that timed out.
bool AcceptsResults(v1::RunState state) {
  return state == v1::RUN_STATE_PLANNED || state == v1::RUN_STATE_RUNNING ||
         state == v1::RUN_STATE_POST_PROCESSING;
}

}  // namespace

void SendOffer(Topology& topology, const v1::CollectionOffer& offer) {
  std::map<std::shared_ptr<ChildLink>, v1::AttachResponse> by_child;
  for (const std::string& node : offer.nodes()) {
    auto link = topology.Route(node);
    if (link == nullptr) continue;
    v1::AttachResponse& message = by_child[link];
    v1::CollectionOffer& part = *message.mutable_collection();
    if (part.run().empty()) {
      part = offer;
      part.clear_nodes();
    }
    part.add_nodes(node);
    if (part.nodes_size() < kNodesAtOnce) continue;
    link->Send(std::move(message));
    by_child.erase(link);
  }
  for (auto& [link, message] : by_child) link->Send(std::move(message));
}

void RunOffers::HandleRun(const v1::Run& run) {
  if (!AcceptsResults(run.state())) {
    const bool offered = runs_.erase(run.id()) + before_snapshot_.erase(run.id()) > 0;
    return AddEnded(run.id(), std::max(FromProto(run.deadline()), FromProto(run.end_time())),
                    offered);
  }
  // If it had ended, the aggregator was restored from a backup.
  newly_ended_.erase(run.id());
  if (ended_.erase(run.id()) > 0) lists_outdated_ = true;
  Active& active = runs_[run.id()];
  active.deadline = run.deadline();
  active.offered = run.state() != v1::RUN_STATE_POST_PROCESSING;
  for (const v1::Plugin& plugin : run.plugins()) {
    // A plugin that runs once has no node; a plugin with an image runs in a container.
    if (plugin.once() || plugin.has_image()) continue;
    active.plugins[plugin.name()].definition_yaml = plugin.definition_yaml();
  }
}

void RunOffers::HandleDeletion(const std::string& run) {
  const auto active = runs_.extract(run);
  if (!active.empty()) AddEnded(run, FromProto(active.mapped().deadline), /*offered=*/true);
}

// The feed lists old runs, too, each time that it starts again.
void RunOffers::AddEnded(const std::string& run, absl::Time end, bool offered) {
  const absl::Time now = clock_.Now();
  std::erase_if(ended_, [&](const auto& ended) { return ended.second < now; });
  const absl::Time until = (offered ? std::max(end, now) : end) + kEndRemembered;
  const bool added = until >= now && ended_.try_emplace(run, until).second;
  if (added || offered) newly_ended_[run] |= offered;
  if (ended_.size() <= kMaxEndedRuns) return;
  const auto first = std::ranges::min_element(ended_, {}, [](const auto& e) { return e.second; });
  // It is not announced: each snapshot lists it again.
  if (const auto news = newly_ended_.find(first->first); news != newly_ended_.end()) {
    if (!news->second) newly_ended_.erase(news);
  }
  ended_.erase(first);
}

std::vector<std::string> RunOffers::EndedRuns() {
  MutexLock lock(mutex_);
  std::vector<std::string> runs;
  if (in_snapshot_) {
    lists_outdated_ = true;
    return runs;
  }
  for (const auto& [run, until] : ended_) runs.push_back(run);
  return runs;
}

void RunOffers::HandlePairs(
    const v1::FollowChangesResponse::PairsChanged& pairs,
    std::map<std::pair<std::string, std::string>, std::vector<std::string>>* fresh) {
  const auto run = runs_.find(pairs.run());
  if (run == runs_.end()) return;
  const auto plugin = run->second.plugins.find(pairs.plugin());
  if (plugin == run->second.plugins.end()) return;
  for (const auto& pair : pairs.pairs()) {
    std::set<std::string>& wanted = plugin->second.wanted;
    if (pair.outcome() == v1::OUTCOME_TIMED_OUT) {
      wanted.insert(pair.node());
    } else if (pair.outcome() != v1::OUTCOME_PENDING) {
      wanted.erase(pair.node());
    } else if (wanted.insert(pair.node()).second) {
      (*fresh)[{run->first, plugin->first}].push_back(pair.node());
    }
  }
}

v1::CollectionOffer RunOffers::Offer(const std::string& run, const std::string& plugin) const {
  const Active& active = runs_.at(run);
  v1::CollectionOffer offer;
  offer.set_run(run);
  v1::CollectionOffer::Plugin& wanted = *offer.add_plugins();
  wanted.set_name(plugin);
  wanted.set_definition_yaml(active.plugins.at(plugin).definition_yaml);
  *offer.mutable_deadline() = active.deadline;
  return offer;
}

void RunOffers::HandleChange(const v1::FollowChangesResponse& event,
                             absl::FunctionRef<void()> welcome) {
  News news;
  {
    MutexLock lock(mutex_);
    news = Apply(event);
  }
  if (news.welcome) welcome();
  for (const std::string& run : news.ended) SendEnd(run);
  for (const v1::CollectionOffer& offer : news.offers) SendOffer(topology_, offer);
}

RunOffers::News RunOffers::Apply(const v1::FollowChangesResponse& event) {
  News news;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> fresh;
  switch (event.event_case()) {
    case v1::FollowChangesResponse::kSnapshotBegin:
      in_snapshot_ = true;
      before_snapshot_.merge(std::exchange(runs_, {}));
      break;
    case v1::FollowChangesResponse::kSnapshotEnd:
      in_snapshot_ = false;
      news.offers = OffersFor(topology_.Nodes());
      for (const auto& [run, active] : std::exchange(before_snapshot_, {})) {
        if (runs_.contains(run)) continue;
        AddEnded(run, FromProto(active.deadline), /*offered=*/true);  // it was deleted
      }
      break;
    case v1::FollowChangesResponse::kRun:
      HandleRun(event.run());
      break;
    case v1::FollowChangesResponse::kRunDeleted:
      HandleDeletion(event.run_deleted().run());
      break;
    case v1::FollowChangesResponse::kPairs:
      HandlePairs(event.pairs(), &fresh);
      break;
    default:
      break;
  }
  if (in_snapshot_) return {};
  for (auto& [key, nodes] : fresh) {
    news.offers.push_back(Offer(key.first, key.second));
    for (std::string& node : nodes) news.offers.back().add_nodes(std::move(node));
  }
  for (auto& [run, offered] : std::exchange(newly_ended_, {})) news.ended.push_back(run);
  news.welcome = std::exchange(lists_outdated_, false);
  return news;
}

std::vector<v1::CollectionOffer> RunOffers::OffersFor(const std::vector<std::string>& names) const {
  std::vector<v1::CollectionOffer> offers;
  for (const auto& [run, active] : runs_) {
    if (!active.offered) continue;
    for (const auto& [name, plugin] : active.plugins) {
      v1::CollectionOffer offer;
      for (const std::string& node : names) {
        if (!plugin.wanted.contains(node)) continue;
        if (offer.run().empty()) offer = Offer(run, name);
        offer.add_nodes(node);
      }
      if (!offer.run().empty()) offers.push_back(std::move(offer));
    }
  }
  return offers;
}

void RunOffers::OnReachable(const std::vector<std::string>& names) {
  std::vector<v1::CollectionOffer> offers;
  {
    MutexLock lock(mutex_);
    if (in_snapshot_) return;
    offers = OffersFor(names);
  }
  for (const v1::CollectionOffer& offer : offers) {
    SendOffer(topology_, offer);
    // The run may have ended meanwhile, and its end was sent before the offer.
    if (HasEnded(offer.run())) SendEnd(offer.run());
  }
}

bool RunOffers::HasEnded(const std::string& run) {
  MutexLock lock(mutex_);
  return !runs_.contains(run) && !before_snapshot_.contains(run);
}

void RunOffers::SendEnd(const std::string& run) {
  v1::AttachResponse over;
  over.mutable_collection_ended()->set_run(run);
  for (const auto& child : topology_.Children()) child->Send(over);
}

}  // namespace muster
