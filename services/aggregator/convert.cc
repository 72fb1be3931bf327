#include "services/aggregator/convert.h"

#include <string>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/upload/description_limits.h"

namespace muster {
namespace {

constexpr int64_t kMicros = 1'000'000;

v1::RunState ToProto(RunState state) {
  switch (state) {
    case RunState::kPlanned:
      return v1::RUN_STATE_PLANNED;
    case RunState::kRunning:
      return v1::RUN_STATE_RUNNING;
    case RunState::kPostProcessing:
      return v1::RUN_STATE_POST_PROCESSING;
    case RunState::kComplete:
      return v1::RUN_STATE_COMPLETE;
    case RunState::kFailed:
      return v1::RUN_STATE_FAILED;
    case RunState::kCancelled:
      return v1::RUN_STATE_CANCELLED;
  }
  return v1::RUN_STATE_UNSPECIFIED;
}

std::string HostInUrl(const std::string& host) {
  return host.find(':') == std::string::npos ? host : absl::StrCat("[", host, "]");
}

template <typename Listener>
void SetListener(const ListenerRecord& record, Listener* listener) {
  listener->set_open(record.open);
  listener->set_fault(record.fault);
  if (record.port == 0) return;
  for (const std::string& host : record.hosts) {
    listener->add_urls(absl::StrCat("https://", HostInUrl(host), ":", record.port));
  }
}

}  // namespace

google::protobuf::Timestamp ToTimestamp(int64_t micros) {
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(micros / kMicros);
  timestamp.set_nanos(static_cast<int32_t>(micros % kMicros * 1000));
  return timestamp;
}

google::protobuf::Duration ToDuration(int64_t micros) {
  google::protobuf::Duration duration;
  duration.set_seconds(micros / kMicros);
  duration.set_nanos(static_cast<int32_t>(micros % kMicros * 1000));
  return duration;
}

v1::Outcome ToProto(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPending:
      return v1::OUTCOME_PENDING;
    case Outcome::kGenuine:
      return v1::OUTCOME_GENUINE;
    case Outcome::kError:
      return v1::OUTCOME_ERROR;
    case Outcome::kTimedOut:
      return v1::OUTCOME_TIMED_OUT;
  }
  return v1::OUTCOME_UNSPECIFIED;
}

v1::Result ToProto(const ResultRecord& result) {
  v1::Result proto;
  proto.mutable_key()->set_run(result.key.run);
  proto.mutable_key()->set_plugin(result.key.plugin);
  proto.mutable_key()->set_node(result.key.node);
  proto.set_outcome(ToProto(result.outcome));
  proto.set_generation(result.generation);
  if (result.outcome == Outcome::kPending) return proto;
  proto.set_size(result.size);
  proto.set_crc32c(result.crc32c);
  proto.set_sha256(result.sha256);
  proto.set_media_type(result.media_type);
  proto.set_file_name(result.file_name);
  proto.set_error(result.error);
  proto.mutable_delivery()->set_uri(result.delivery.uri);
  proto.mutable_delivery()->set_node_unproven(result.delivery.node_unproven);
  proto.mutable_delivery()->set_vouched_by(result.delivery.vouched_by);
  proto.mutable_delivery()->set_signed_(!result.delivery.signature.empty());
  *proto.mutable_commit_time() = ToTimestamp(result.committed_at);
  proto.set_partial_size(result.partial_size);
  proto.set_damage(result.damage);
  proto.set_redelivery(result.redelivery);
  return proto;
}

v1::Run ToProto(const RunRecord& run) {
  v1::Run proto;
  proto.set_id(run.id);
  proto.set_title(run.title);
  proto.set_state(ToProto(run.state));
  proto.set_state_reason(run.reason);
  *proto.mutable_create_time() = ToTimestamp(run.created_at);
  *proto.mutable_deadline() = ToTimestamp(run.deadline_at);
  *proto.mutable_seal_grace() = ToDuration(run.seal_grace);
  if (run.ended_at != 0) *proto.mutable_end_time() = ToTimestamp(run.ended_at);
  proto.set_created_by(run.created_by);
  for (const PluginRecord& plugin : run.plugins) {
    v1::Plugin* out = proto.add_plugins();
    out->set_name(plugin.name);
    out->set_once(plugin.once);
    out->set_definition_yaml(plugin.definition_yaml);
    out->set_has_image(plugin.has_image);
  }
  v1::ResultCounts* counts = proto.mutable_counts();
  counts->set_planned(run.planned);
  counts->set_pending(run.pending);
  counts->set_genuine(run.genuine);
  counts->set_errors(run.errors);
  counts->set_timed_out(run.timed_out);
  proto.set_damaged_results(run.damaged);
  proto.set_pinned(run.pinned);
  proto.set_stored_size(StoredBytes(run));
  proto.set_run_ca_deleted(run.ca_deleted);
  SetListener(run.listener, proto.mutable_legacy_listener());
  *proto.mutable_start_grace() = ToDuration(run.start_grace);
  *proto.mutable_lost_after() = ToDuration(run.lost_after);
  proto.set_fail_fast(run.fail_fast);
  if (run.status_listener) SetListener(*run.status_listener, proto.mutable_status_listener());
  if (run.state == RunState::kPostProcessing) {
    if (run.timed_out > 0) *proto.mutable_seal_time() = ToTimestamp(SealGraceEnd(run));
    proto.set_seal_fault(run.seal_fault);
  }
  return proto;
}

ResultKey FromProto(const v1::ResultKey& key) { return {key.run(), key.plugin(), key.node()}; }

absl::Status CheckRunId(const std::string& run) {
  if (IsRunId(run)) return absl::OkStatus();
  return errors::InvalidRunId(absl::CHexEscape(run.substr(0, 64)));
}

absl::Status CheckKey(const ResultKey& key) {
  RETURN_IF_ERROR(CheckRunId(key.run));
  RETURN_IF_ERROR(ValidateName("plugin", key.plugin));
  return ValidateName("node", key.node);
}

Delivery DeliveryBy(const Caller& caller) {
  Delivery delivery;
  delivery.uri = UriOf(caller);
  delivery.node_unproven = RoleOf(caller.identity) == Role::kRunPlugin;
  if (caller.via) delivery.vouched_by = ToUri(*caller.via).value_or("");
  return delivery;
}

Actor ActorOf(const Caller& caller) {
  return {UriOf(caller), caller.via ? ToUri(*caller.via).value_or("") : ""};
}

absl::StatusOr<UploadRecord> FromProto(const v1::ResultDescription& description,
                                       const Caller& caller) {
  UploadRecord upload;
  upload.key = FromProto(description.key());
  RETURN_IF_ERROR(CheckKey(upload.key));
  RETURN_IF_ERROR(CheckTexts(description));
  upload.attempt = description.attempt();
  upload.media_type = description.media_type();
  upload.file_name = description.file_name();
  upload.is_error = description.is_error();
  upload.delivery = DeliveryBy(caller);
  return upload;
}

Resource OwnPair(const Caller& caller) {
  if (const auto* pair = std::get_if<RunNodeIdentity>(&caller.identity.name)) {
    return Resource::Pair(pair->run, pair->plugin, pair->node);
  }
  if (const auto* plugin = std::get_if<RunPluginIdentity>(&caller.identity.name)) {
    return Resource::Pair(plugin->run, plugin->plugin, "");
  }
  if (const auto* node = std::get_if<NodeIdentity>(&caller.identity.name)) {
    return Resource::Pair("", "", node->name);
  }
  return Resource::Fleet();
}

}  // namespace muster
