#include "cli/output/status_json.h"

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "cli/output/format.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

// The words of the original design that differ from those of the API.
constexpr char kPairRunning[] = "running";
constexpr char kPairComplete[] = "complete";
constexpr char kPairFailed[] = "failed";
constexpr char kPairTimedOut[] = "timed_out";
constexpr char kPairWithoutOutcome[] = "no_outcome";

// Returns an enum name as a word: "not-started" for "REASON_NOT_STARTED" with the prefix "REASON_",
// an empty text for the zero value.
template <typename Enum>
std::string Word(Enum value, absl::string_view prefix) {
  if (value == 0) return "";
  const auto* name = google::protobuf::GetEnumDescriptor<Enum>()->FindValueByNumber(value);
  if (name == nullptr) return "unknown";  // a value of a newer service
  return absl::StrReplaceAll(absl::AsciiStrToLower(name->name().substr(prefix.size())),
                             {{"_", "-"}});
}

template <typename Enum>
Enum FromWord(const std::string& word, const std::string& prefix) {
  const std::string name =
      absl::StrCat(prefix, absl::AsciiStrToUpper(absl::StrReplaceAll(word, {{"-", "_"}})));
  const auto* value = google::protobuf::GetEnumDescriptor<Enum>()->FindValueByName(name);
  return value == nullptr ? Enum() : static_cast<Enum>(value->number());
}

std::string PairWord(const v1::PairStatus& pair) {
  switch (pair.outcome()) {
    case v1::OUTCOME_GENUINE:
      return kPairComplete;
    case v1::OUTCOME_ERROR:
      return kPairFailed;
    case v1::OUTCOME_TIMED_OUT:
      return kPairTimedOut;
    default:
      return pair.reason() == v1::REASON_RUN_ENDED ? kPairWithoutOutcome : kPairRunning;
  }
}

v1::Outcome OutcomeOf(const std::string& word) {
  if (word == kPairComplete) return v1::OUTCOME_GENUINE;
  if (word == kPairFailed) return v1::OUTCOME_ERROR;
  if (word == kPairTimedOut) return v1::OUTCOME_TIMED_OUT;
  return v1::OUTCOME_PENDING;
}

void SetText(const char* name, const std::string& text, Json& json) {
  if (!text.empty()) json[name] = text;
}

void SetTime(const char* name, const google::protobuf::Timestamp& time, Json& json) {
  SetText(name, Rfc3339(FromProto(time)), json);
}

template <typename Holder>
void SetReasonsAndEstimate(const Holder& from, Json& json) {
  for (const v1::ReasonCount& count : from.reasons()) {
    json["reasons"][ReasonWord(count.reason())] = count.count();
  }
  if (!from.has_estimate()) return;
  SetTime("earliest", from.estimate().earliest(), json["estimate"]);
  SetTime("latest", from.estimate().latest(), json["estimate"]);
}

Json ProgressJson(const v1::Progress& progress) {
  Json json = {{"total", progress.total()}, {"completed", progress.completed()}};
  for (const std::string& name : progress.failures()) json["failures"].push_back(name);
  for (const std::string& name : progress.errors()) json["errors"].push_back(name);
  if (progress.omitted_failures() > 0) json["omitted_failures"] = progress.omitted_failures();
  if (progress.omitted_errors() > 0) json["omitted_errors"] = progress.omitted_errors();
  return json;
}

// The readers return a default if a field is missing or has another type.
std::string TextField(const Json& json, const char* name) {
  const auto it = json.find(name);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

int64_t NumberField(const Json& json, const char* name) {
  const auto it = json.find(name);
  return it != json.end() && it->is_number() ? it->get<int64_t>() : 0;
}

const Json& Child(const Json& json, const char* name) {
  static const Json* const kNothing = new Json(Json::object());
  const auto it = json.find(name);
  return it == json.end() ? *kNothing : *it;
}

// Parses a time and, if it is valid, stores it in the timestamp that `field` returns.
void ReadTime(const Json& json, const char* name, auto field) {
  absl::Time parsed;
  if (!absl::ParseTime(absl::RFC3339_full, TextField(json, name), &parsed, nullptr)) return;
  ToProto(parsed, field());
}

v1::ResultCounts ReadCounts(const Json& json) {
  v1::ResultCounts counts;
  counts.set_planned(NumberField(json, "planned"));
  counts.set_pending(NumberField(json, "pending"));
  counts.set_genuine(NumberField(json, "genuine"));
  counts.set_errors(NumberField(json, "errors"));
  counts.set_timed_out(NumberField(json, "timed_out"));
  return counts;
}

template <typename Holder>
void ReadReasonsAndEstimate(const Json& json, Holder* to) {
  const Json& reasons = Child(json, "reasons");
  for (const auto& item : reasons.items()) {
    v1::ReasonCount* reason = to->add_reasons();
    reason->set_reason(FromWord<v1::Reason>(item.key(), "REASON_"));
    reason->set_count(NumberField(reasons, item.key().c_str()));
  }
  const Json& estimate = Child(json, "estimate");
  if (estimate.empty()) return;
  ReadTime(estimate, "earliest", [&] { return to->mutable_estimate()->mutable_earliest(); });
  ReadTime(estimate, "latest", [&] { return to->mutable_estimate()->mutable_latest(); });
}

void ReadProgress(const Json& json, v1::Progress* progress) {
  progress->set_total(NumberField(json, "total"));
  progress->set_completed(NumberField(json, "completed"));
  for (const Json& name : Child(json, "failures")) {
    if (name.is_string()) progress->add_failures(name.get<std::string>());
  }
  for (const Json& name : Child(json, "errors")) {
    if (name.is_string()) progress->add_errors(name.get<std::string>());
  }
  progress->set_omitted_failures(NumberField(json, "omitted_failures"));
  progress->set_omitted_errors(NumberField(json, "omitted_errors"));
}

void ReadPair(const Json& json, v1::PairStatus* pair) {
  pair->set_plugin(TextField(json, "name"));
  const std::string node = TextField(json, "node");
  pair->set_node(node.empty() ? std::string(kGlobalNode) : node);
  pair->set_outcome(OutcomeOf(TextField(json, "status")));
  pair->set_presence(FromWord<v1::Presence>(TextField(json, "state"), "PRESENCE_"));
  pair->set_reason(FromWord<v1::Reason>(TextField(json, "reason"), "REASON_"));
  pair->set_phase(FromWord<v1::Phase>(TextField(json, "phase"), "PHASE_"));
  ReadTime(json, "since", [&] { return pair->mutable_reason_since(); });
  pair->set_detail(TextField(json, "detail"));
  pair->set_next(TextField(json, "next"));
  pair->set_error(TextField(json, "error"));
  pair->set_size(NumberField(json, "size"));
  if (json.contains("last-heartbeat")) {
    pair->mutable_heartbeat_age()->set_seconds(NumberField(json, "last-heartbeat"));
  }
  if (json.contains("progress")) ReadProgress(Child(json, "progress"), pair->mutable_progress());
  if (json.contains("message")) pair->mutable_progress()->set_message(TextField(json, "message"));
  if (json.contains("fault")) {
    const Json& fault = Child(json, "fault");
    pair->mutable_fault()->set_check(
        FromWord<v1::Fault::Check>(TextField(fault, "check"), "CHECK_"));
    pair->mutable_fault()->set_address(TextField(fault, "address"));
    pair->mutable_fault()->set_message(TextField(fault, "message"));
    pair->mutable_fault()->set_next_step(TextField(fault, "next_step"));
  }
}

}  // namespace

std::string ReasonWord(v1::Reason reason) { return Word(reason, "REASON_"); }

std::string PresenceWord(v1::Presence presence) { return Word(presence, "PRESENCE_"); }

Json StatusJson(const v1::PairStatus& pair) {
  Json json = {{"name", pair.plugin()},
               {"node", pair.node() == kGlobalNode ? "" : pair.node()},
               {"status", PairWord(pair)}};
  if (pair.has_heartbeat_age()) json["last-heartbeat"] = pair.heartbeat_age().seconds();
  SetText("state", PresenceWord(pair.presence()), json);
  SetText("reason", ReasonWord(pair.reason()), json);
  SetTime("since", pair.reason_since(), json);
  SetText("detail", pair.detail(), json);
  SetText("next", pair.next(), json);
  SetText("message", pair.progress().message(), json);
  SetText("error", pair.error(), json);
  if (pair.size() > 0) json["size"] = pair.size();
  SetText("phase", Word(pair.phase(), "PHASE_"), json);
  if (pair.has_progress()) json["progress"] = ProgressJson(pair.progress());
  if (pair.has_fault()) {
    Json& fault = json["fault"];
    SetText("check", Word(pair.fault().check(), "CHECK_"), fault);
    SetText("address", pair.fault().address(), fault);
    SetText("message", pair.fault().message(), fault);
    SetText("next_step", pair.fault().next_step(), fault);
  }
  return json;
}

Json StatusJson(const v1::RunStatus& status) {
  Json json = {{"status",
                status.state() == v1::RUN_STATE_PLANNED ? kPairRunning : StateWord(status.state())},
               {"percent_complete", status.percent_complete()},
               {"plugins", Json::array()}};
  for (const v1::PairStatus& pair : status.pairs()) json["plugins"].push_back(StatusJson(pair));
  json["run"] = status.run();
  SetText("title", status.title(), json);
  if (status.damaged_results() > 0) json["damaged_results"] = status.damaged_results();
  json["state"] = StateWord(status.state());
  SetText("state_reason", status.state_reason(), json);
  SetTime("create_time", status.create_time(), json);
  SetTime("deadline", status.deadline(), json);
  SetTime("end_time", status.end_time(), json);
  SetTime("time", status.time(), json);
  SetTime("feed_time", status.feed_time(), json);
  json["counts"] = ToJson(status.counts());
  SetReasonsAndEstimate(status, json);
  SetText("doubt", status.doubt(), json);
  for (const v1::PluginStatus& plugin : status.plugins()) {
    Json row = {{"name", plugin.plugin()},
                {"once", plugin.once()},
                {"percent_complete", plugin.percent_complete()},
                {"counts", ToJson(plugin.counts())}};
    SetReasonsAndEstimate(plugin, row);
    json["summary"].push_back(std::move(row));
  }
  return json;
}

absl::StatusOr<v1::RunStatus> ParseStatusJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return errors::InvalidStatus("not a JSON object");
  if (!json.contains("status") || !Child(json, "plugins").is_array()) {
    return errors::InvalidStatus("field \"status\" or \"plugins\" is missing");
  }
  v1::RunStatus status;
  status.set_run(TextField(json, "run"));
  status.set_title(TextField(json, "title"));
  status.set_damaged_results(NumberField(json, "damaged_results"));
  const std::string state = TextField(json, json.contains("state") ? "state" : "status");
  status.set_state(FromWord<v1::RunState>(state, "RUN_STATE_"));
  const Json& percent = Child(json, "percent_complete");
  if (percent.is_number()) status.set_percent_complete(percent.get<double>());
  for (const Json& pair : Child(json, "plugins")) {
    if (pair.is_object()) ReadPair(pair, status.add_pairs());
  }
  status.set_state_reason(TextField(json, "state_reason"));
  ReadTime(json, "create_time", [&] { return status.mutable_create_time(); });
  ReadTime(json, "deadline", [&] { return status.mutable_deadline(); });
  ReadTime(json, "end_time", [&] { return status.mutable_end_time(); });
  ReadTime(json, "time", [&] { return status.mutable_time(); });
  ReadTime(json, "feed_time", [&] { return status.mutable_feed_time(); });
  *status.mutable_counts() = ReadCounts(Child(json, "counts"));
  ReadReasonsAndEstimate(json, &status);
  status.set_doubt(TextField(json, "doubt"));
  for (const Json& row : Child(json, "summary")) {
    v1::PluginStatus* plugin = status.add_plugins();
    plugin->set_plugin(TextField(row, "name"));
    const Json& once = Child(row, "once");
    plugin->set_once(once.is_boolean() && once.get<bool>());
    const Json& part = Child(row, "percent_complete");
    if (part.is_number()) plugin->set_percent_complete(part.get<double>());
    *plugin->mutable_counts() = ReadCounts(Child(row, "counts"));
    ReadReasonsAndEstimate(row, plugin);
  }
  return status;
}

}  // namespace muster::cli
