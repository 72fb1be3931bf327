#include "services/common/heartbeat/heartbeat_check.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/heartbeat/progress_report.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr size_t kMaxInstance = 64;
constexpr size_t kMaxBoot = 64;
constexpr size_t kMaxText = 1024;
constexpr size_t kMaxAddress = 300;  // a host name of 253 and a port
constexpr int64_t kMaxUptimeSeconds = int64_t{100} * 366 * 24 * 3600;
constexpr absl::Duration kMaxSkew = absl::Seconds(kMaxUptimeSeconds);

}  // namespace

absl::StatusOr<std::string> NodeOf(const Identity& identity,
                                   const v1::StreamHeartbeatsRequest& first) {
  if (first.instance_id().empty() || first.instance_id().size() > kMaxInstance) {
    return errors::InvalidHeartbeat(
        "the first heartbeat requires an instance_id of 1 to 64 characters");
  }
  if (first.boot_id().size() > kMaxBoot) {
    return errors::InvalidHeartbeat("the boot_id is longer than 64 characters");
  }
  std::string node = first.node();
  if (node.empty()) {
    if (const auto* pair = std::get_if<RunNodeIdentity>(&identity.name)) node = pair->node;
    if (const auto* own = std::get_if<NodeIdentity>(&identity.name)) node = own->name;
  }
  if (node.empty()) {
    return errors::InvalidHeartbeat(
        "the first heartbeat must name a node, because the certificate does not");
  }
  RETURN_IF_ERROR(ValidateName("node", node));
  return node;
}

absl::Status CheckHeartbeat(const v1::StreamHeartbeatsRequest& heartbeat, const std::string& node,
                            const std::string& instance) {
  if (!heartbeat.node().empty() && heartbeat.node() != node) {
    return errors::InvalidHeartbeat("the node changed within the stream");
  }
  if (!heartbeat.instance_id().empty() && heartbeat.instance_id() != instance) {
    return errors::InvalidHeartbeat("the instance_id changed within the stream");
  }
  if (heartbeat.sequence() < 0) return errors::InvalidHeartbeat("the sequence is negative");
  if (heartbeat.uptime().seconds() < 0 || heartbeat.uptime().nanos() < 0 ||
      heartbeat.uptime().seconds() > kMaxUptimeSeconds) {
    return errors::InvalidHeartbeat("the uptime is invalid");
  }
  if (heartbeat.activities_size() > kMaxActivities) {
    return errors::InvalidHeartbeat("it has more than 1,000 activities");
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::ResultKey> PairOf(const Identity& identity, const std::string& node,
                                     const v1::ResultKey& key) {
  v1::ResultKey pair = key;
  if (pair.run().empty()) {
    if (const auto run = RunOf(identity)) pair.set_run(std::string(*run));
  }
  if (pair.plugin().empty()) {
    if (const auto* own = std::get_if<RunNodeIdentity>(&identity.name)) {
      pair.set_plugin(own->plugin);
    }
    if (const auto* own = std::get_if<RunPluginIdentity>(&identity.name)) {
      pair.set_plugin(own->plugin);
    }
  }
  if (pair.node().empty()) pair.set_node(node);
  if (pair.run().empty() || pair.plugin().empty()) {
    return errors::InvalidHeartbeat("an activity names no run or no plugin");
  }
  if (pair.node() != node) {
    return errors::InvalidHeartbeat("an activity is for another node than the sender's");
  }
  return pair;
}

std::string CleanText(const std::string& text, size_t max) {
  std::string clean;
  std::string_view rest = text;
  for (size_t characters = 0; characters < max && !rest.empty(); ++characters) {
    const size_t length = PrintableLength(rest);
    if (length == 0) {
      clean += ' ';
    } else {
      clean.append(rest.substr(0, length));
    }
    rest.remove_prefix(std::max<size_t>(1, length));
  }
  return clean;
}

void CleanActivity(v1::Activity* activity) {
  if (!v1::Phase_IsValid(activity->phase())) activity->set_phase(v1::PHASE_UNSPECIFIED);
  activity->set_message(CleanText(activity->message(), kMaxText));
  if (activity->has_progress()) {
    activity->mutable_progress()->clear_key();  // it is ignored
    CutProgress(activity->mutable_progress());
  }
  if (!activity->has_fault()) return;
  v1::Fault* fault = activity->mutable_fault();
  if (!v1::Fault::Check_IsValid(fault->check())) fault->set_check(v1::Fault::CHECK_UNSPECIFIED);
  fault->set_address(CleanText(fault->address(), kMaxAddress));
  fault->set_message(CleanText(fault->message(), kMaxText));
  fault->set_next_step(CleanText(fault->next_step(), kMaxText));
}

absl::Duration ClockSkew(const v1::StreamHeartbeatsRequest& heartbeat, absl::Time now) {
  if (!heartbeat.has_time()) return absl::ZeroDuration();
  return std::clamp(FromProto(heartbeat.time()) - now, -kMaxSkew, kMaxSkew);
}

absl::Duration UptimeOf(const v1::StreamHeartbeatsRequest& heartbeat) {
  return FromProto(heartbeat.uptime());
}

}  // namespace muster
