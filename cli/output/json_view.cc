#include "cli/output/json_view.h"

#include <map>
#include <string_view>

#include "cli/output/format.h"
#include "services/common/base/utf8.h"
#include "services/common/templates/exact_json.h"

namespace muster::cli {
namespace {

std::string TimeText(const google::protobuf::Timestamp& time) { return Rfc3339(FromProto(time)); }

template <typename List>
Json TextList(const List& list) {
  Json json = Json::array();
  for (const auto& text : list) json.push_back(text);
  return json;
}

}  // namespace

std::string StateWord(v1::RunState state) {
  switch (state) {
    case v1::RUN_STATE_PLANNED:
      return "planned";
    case v1::RUN_STATE_RUNNING:
      return "running";
    case v1::RUN_STATE_POST_PROCESSING:
      return "post-processing";
    case v1::RUN_STATE_COMPLETE:
      return "complete";
    case v1::RUN_STATE_FAILED:
      return "failed";
    case v1::RUN_STATE_CANCELLED:
      return "cancelled";
    default:
      return "unknown";  // a state of a newer service
  }
}

bool HasEnded(v1::RunState state) {
  return state == v1::RUN_STATE_COMPLETE || state == v1::RUN_STATE_FAILED ||
         state == v1::RUN_STATE_CANCELLED;
}

std::string OutcomeWord(v1::Outcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_PENDING:
      return "pending";
    case v1::OUTCOME_GENUINE:
      return "genuine";
    case v1::OUTCOME_ERROR:
      return "error";
    case v1::OUTCOME_TIMED_OUT:
      return "timed-out";
    default:
      return "unknown";
  }
}

std::string OutcomeWord(v1::Outcome outcome, v1::RunState state) {
  return outcome == v1::OUTCOME_PENDING && HasEnded(state) ? "no-outcome" : OutcomeWord(outcome);
}

Json ToJson(const v1::ResultCounts& counts) {
  return {{"planned", counts.planned()},
          {"pending", counts.pending()},
          {"genuine", counts.genuine()},
          {"errors", counts.errors()},
          {"timed_out", counts.timed_out()}};
}

Json ToJson(const v1::Run& run) {
  Json plugins = Json::array();
  for (const v1::Plugin& plugin : run.plugins()) {
    plugins.push_back(
        {{"name", plugin.name()}, {"once", plugin.once()}, {"has_image", plugin.has_image()}});
  }
  const v1::LegacyListener& listener = run.legacy_listener();
  return {{"id", run.id()},
          {"title", run.title()},
          {"state", StateWord(run.state())},
          {"state_reason", run.state_reason()},
          {"create_time", TimeText(run.create_time())},
          {"deadline", TimeText(run.deadline())},
          {"end_time", TimeText(run.end_time())},
          {"created_by", run.created_by()},
          {"plugins", plugins},
          {"counts", ToJson(run.counts())},
          {"damaged_results", run.damaged_results()},
          {"legacy_listener",
           {{"urls", TextList(listener.urls())},
            {"open", listener.open()},
            {"fault", listener.fault()}}},
          {"status_listener",
           {{"urls", TextList(run.status_listener().urls())},
            {"open", run.status_listener().open()},
            {"fault", run.status_listener().fault()}}},
          {"pinned", run.pinned()},
          {"stored_size", run.stored_size()}};
}

Json ToJson(const v1::Result& result, v1::RunState state) {
  return {{"plugin", result.key().plugin()},
          {"node", result.key().node()},
          {"outcome", OutcomeWord(result.outcome(), state)},
          {"generation", result.generation()},
          {"size", result.size()},
          {"sha256", Hex(result.sha256())},
          {"media_type", result.media_type()},
          {"file_name", result.file_name()},
          {"error", result.error()},
          {"damage", result.damage()},
          {"redelivery", result.redelivery()},
          {"commit_time", TimeText(result.commit_time())},
          {"partial_size", result.partial_size()},
          {"delivered_by", result.delivery().uri()},
          {"node_unproven", result.delivery().node_unproven()}};
}

Json ToJson(const v1::Operator& person) {
  return {{"name", person.name()},
          {"uri", person.uri()},
          {"revoked", person.revoked()},
          {"issue_time", TimeText(person.issue_time())},
          {"expire_time", TimeText(person.expire_time())}};
}

Json ToJson(const v1::JoinToken& token) {
  return {
      {"id", token.id()},
      {"node", token.node()},
      {"count", token.count()},
      {"labels", std::map<std::string, std::string>(token.labels().begin(), token.labels().end())},
      {"created_by", token.created_by()},
      {"create_time", TimeText(token.create_time())},
      {"expire_time", TimeText(token.expire_time())},
      {"revoked", token.revoked()},
      {"joined", std::vector<std::string>(token.joined().begin(), token.joined().end())},
      {"joined_count", token.joined_count()},
      {"relay", token.relay()},
      {"parents", TextList(token.parents())}};
}

Json ToJson(const v1::EnrolledNode& node) {
  // The root relay is the last parent of every node: a node without others shows it, as in tables.
  const Json parents = node.parents().empty() ? Json::array({"root"}) : TextList(node.parents());
  return {
      {"name", node.name()},
      {"uri", node.uri()},
      {"labels", std::map<std::string, std::string>(node.labels().begin(), node.labels().end())},
      {"join_time", TimeText(node.join_time())},
      {"join_token", node.join_token()},
      {"expire_time", TimeText(node.expire_time())},
      {"revoked", node.revoked()},
      {"revoke_time", TimeText(node.revoke_time())},
      {"revoke_reason", node.revoke_reason()},
      {"revoked_by", node.revoked_by()},
      {"kind", node.is_relay() ? "relay" : "node"},
      {"relay_targets", TextList(node.relay_targets())},
      {"join_targets", TextList(node.join_targets())},
      {"parents", parents}};
}

std::string Dump(const Json& json) {
  const std::string text = ExactJsonText(json);
  std::string line;
  line.reserve(text.size() + 1);
  for (std::string_view left = text; !left.empty();) {
    size_t length = PrintableLength(left);
    if (length > 0) {
      line += left.substr(0, length);
    } else {
      // A control character beyond C0, in a string: `text` is UTF-8.
      for (length = 1; length < left.size() && (left[length] & 0xC0) == 0x80;) ++length;
      const std::string escaped = Json(left.substr(0, length)).dump(-1, ' ', /*ensure_ascii=*/true);
      line.append(escaped, 1, escaped.size() - 2);
    }
    left.remove_prefix(length);
  }
  return line + "\n";
}

}  // namespace muster::cli
