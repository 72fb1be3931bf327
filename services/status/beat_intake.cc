#include "services/status/beat_intake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/heartbeat/beat_check.h"

namespace muster {
namespace {

// Pairs that a sender is remembered to have been told of; what is beyond is told of more often.
constexpr size_t kMaxContacts = 1000;

}  // namespace

absl::StatusOr<Registry::Answer> BeatIntake::Take(v1::StreamHeartbeatsRequest& beat,
                                                  const Identity& identity, Authorize authorize,
                                                  const Way& way) {
  const bool first = !seat_;
  if (first) {
    if (auto status = Begin(beat, identity, authorize, way); !status.ok()) return status;
  }
  if (auto status = CheckBeat(beat, seat_->sender()->node(), instance_); !status.ok()) {
    return status;
  }
  Registry::Answer answer;
  if (!parts_.registry.IsNews(*seat_, beat.sequence(), &answer)) {
    beat.set_goodbye(false);
    return answer;
  }
  for (v1::Activity& activity : *beat.mutable_activities()) {
    CleanActivity(&activity);
    if (auto status = TakeActivity(activity, identity, authorize); !status.ok()) return status;
  }
  // A run's credential is for one pair: who beats with it is at work on that.
  if (first && beat.activities_size() == 0 && RunOf(identity)) {
    auto status = TakeActivity(v1::Activity(), identity, authorize);
    if (!status.ok()) return status;
  }
  answer = parts_.registry.Beat(*seat_, beat.sequence(), ClockSkew(beat, parts_.clock.Now()));
  if (beat.goodbye()) parts_.registry.Goodbye(*seat_);
  return answer;
}

absl::Status BeatIntake::Begin(const v1::StreamHeartbeatsRequest& beat, const Identity& identity,
                               Authorize authorize, const Way& way) {
  auto node = NodeOf(identity, beat);
  // Who is not allowed to beat at all is told that, and not what is wrong with the message.
  v1::ResultKey own;
  if (node.ok()) own.set_node(*node);
  if (const auto run = RunOf(identity)) own.set_run(std::string(*run));
  if (const auto* pair = std::get_if<RunNodeIdentity>(&identity.name)) own.set_plugin(pair->plugin);
  if (const auto* any = std::get_if<RunPluginIdentity>(&identity.name)) own.set_plugin(any->plugin);
  const absl::Status allowed = authorize(Resource::Pair(own.run(), own.plugin(), own.node()));
  if (!node.ok()) return node.status();
  if (!allowed.ok()) return allowed;
  if (auto status = CheckBeat(beat, *node, beat.instance_id()); !status.ok()) return status;
  auto uri = ToUri(identity);
  if (!uri.ok()) return uri.status();
  instance_ = beat.instance_id();
  auto seat = parts_.registry.Open(
      {*std::move(uri), *std::move(node), instance_, beat.boot_id(), UptimeOf(beat), way.relay},
      way.line, way.peer);
  if (!seat.ok()) return seat.status();
  seat_ = *std::move(seat);
  return absl::OkStatus();
}

absl::Status BeatIntake::TakeActivity(const v1::Activity& activity, const Identity& identity,
                                      Authorize authorize) {
  const std::shared_ptr<const Sender> sender = seat_->sender();
  const auto key = PairOf(identity, sender->node(), activity.key());
  if (!key.ok()) return key.status();
  const absl::Status allowed = authorize(Resource::Pair(key->run(), key->plugin(), key->node()));
  if (!allowed.ok()) return allowed;
  if (auto took = parts_.listener.Took(*key, sender, activity); !took.ok()) return took;
  const size_t hash = std::hash<std::string>()(absl::StrCat(key->run(), "/", key->plugin()));
  if (std::find(contacts_.begin(), contacts_.end(), hash) != contacts_.end()) {
    return absl::OkStatus();
  }
  if (contacts_.size() < kMaxContacts) contacts_.push_back(hash);
  parts_.contact(*key, *sender);
  return absl::OkStatus();
}

}  // namespace muster
