#include "services/status/heartbeat_intake.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/heartbeat/heartbeat_check.h"

namespace muster {
namespace {

// The pairs of a sender that are remembered; `contact` is called more than once for others.
constexpr size_t kMaxContacts = 1000;

// Returns a text that identifies a pair of the sender.
std::string PairName(const v1::ResultKey& key) {
  return absl::StrCat(key.run(), "/", key.plugin());
}

// Returns the last activity of each pair: a message may have many of one pair, and each costs
// other senders time.
std::vector<v1::Activity*> LatestOfEachPair(v1::StreamHeartbeatsRequest& heartbeat) {
  std::vector<v1::Activity*> latest;
  absl::flat_hash_map<std::string, size_t> places;
  for (v1::Activity& activity : *heartbeat.mutable_activities()) {
    const auto [place, is_new] = places.try_emplace(PairName(activity.key()), latest.size());
    if (is_new) latest.push_back(&activity);
    latest[place->second] = &activity;
  }
  return latest;
}

}  // namespace

absl::StatusOr<Registry::Answer> HeartbeatIntake::Handle(v1::StreamHeartbeatsRequest& heartbeat,
                                                         const Identity& identity,
                                                         Authorize authorize,
                                                         const SenderConnection& connection) {
  const bool first = !stream_ref_;
  if (first) {
    RETURN_IF_ERROR(Begin(heartbeat, identity, authorize, connection));
  }
  RETURN_IF_ERROR(CheckHeartbeat(heartbeat, stream_ref_->sender()->node(), instance_));
  Registry::Answer answer;
  if (!parts_.registry.IsNews(*stream_ref_, heartbeat.sequence(), &answer)) {
    heartbeat.set_goodbye(false);
    return answer;
  }
  for (v1::Activity* activity : LatestOfEachPair(heartbeat)) {
    CleanActivity(activity);
    RETURN_IF_ERROR(HandleActivity(*activity, identity, authorize));
  }
  // The credential of a run is for one pair: a sender with it works on that pair.
  if (first && heartbeat.activities_size() == 0 && RunOf(identity)) {
    RETURN_IF_ERROR(HandleActivity(v1::Activity(), identity, authorize));
  }
  answer = parts_.registry.HandleHeartbeat(*stream_ref_, heartbeat.sequence(),
                                           ClockSkew(heartbeat, parts_.clock.Now()));
  if (heartbeat.goodbye()) parts_.registry.Goodbye(*stream_ref_);
  return answer;
}

absl::Status HeartbeatIntake::Begin(const v1::StreamHeartbeatsRequest& heartbeat,
                                    const Identity& identity, Authorize authorize,
                                    const SenderConnection& connection) {
  auto node = NodeOf(identity, heartbeat);
  // The check of permission comes before the checks of the message.
  v1::ResultKey own;
  if (node.ok()) own.set_node(*node);
  if (const auto run = RunOf(identity)) own.set_run(std::string(*run));
  if (const auto* pair = std::get_if<RunNodeIdentity>(&identity.name)) own.set_plugin(pair->plugin);
  if (const auto* any = std::get_if<RunPluginIdentity>(&identity.name)) own.set_plugin(any->plugin);
  const absl::Status allowed = authorize(Resource::Pair(own.run(), own.plugin(), own.node()));
  if (!node.ok()) return node.status();
  if (!allowed.ok()) return allowed;
  RETURN_IF_ERROR(CheckHeartbeat(heartbeat, *node, heartbeat.instance_id()));
  if (heartbeat.activities_size() > 0) {
    ASSIGN_OR_RETURN(own, PairOf(identity, *node, heartbeat.activities(0).key()));
  }
  ASSIGN_OR_RETURN(auto uri, ToUri(identity));
  instance_ = heartbeat.instance_id();
  ASSIGN_OR_RETURN(stream_ref_,
                   parts_.registry.Open({std::move(uri), *std::move(node), instance_,
                                         heartbeat.boot_id(), UptimeOf(heartbeat), PairName(own)},
                                        connection));
  return absl::OkStatus();
}

absl::Status HeartbeatIntake::HandleActivity(const v1::Activity& activity, const Identity& identity,
                                             Authorize authorize) {
  const std::shared_ptr<const Sender> sender = stream_ref_->sender();
  ASSIGN_OR_RETURN(const auto key, PairOf(identity, sender->node(), activity.key()));
  RETURN_IF_ERROR(authorize(Resource::Pair(key.run(), key.plugin(), key.node())));
  RETURN_IF_ERROR(parts_.listener.HandleActivity(key, sender, activity));
  const size_t hash = std::hash<std::string>()(PairName(key));
  if (std::find(contacts_.begin(), contacts_.end(), hash) != contacts_.end()) {
    return absl::OkStatus();
  }
  if (contacts_.size() < kMaxContacts) contacts_.push_back(hash);
  parts_.contact(key, *sender);
  return absl::OkStatus();
}

}  // namespace muster
