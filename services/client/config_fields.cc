#include "services/client/config_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/errors/client.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"

namespace muster::client {
namespace {

using Json = nlohmann::json;
using Time = std::optional<std::chrono::system_clock::time_point>;

constexpr std::string_view kAgentOnly[] = {"mode",       "module",           "definition",
                                           "time_limit", "max_output_bytes", "progress_port"};

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

// Parses the text of an environment variable. Returns false if it is not a value of that type.
bool Assign(const ConfigField& field, const std::string& text) {
  return std::visit(
      Overloaded{[&](std::string* to) {
                   *to = text;
                   return true;
                 },
                 [&](std::vector<std::string>* to) {
                   *to = absl::StrSplit(text, ',', absl::SkipWhitespace());
                   return true;
                 },
                 [&](int64_t* to) {
                   return absl::SimpleAtoi(text, to) && *to >= field.least && *to <= field.most;
                 },
                 [&](bool* to) { return absl::SimpleAtob(text, to); },
                 [&](std::chrono::milliseconds* to) {
                   absl::Duration value;
                   if (!absl::ParseDuration(text, &value) || value < absl::ZeroDuration() ||
                       value > absl::Hours(24 * 365)) {
                     return false;
                   }
                   *to = absl::ToChronoMilliseconds(value);
                   return true;
                 },
                 [&](Time* to) {
                   absl::Time value;
                   if (!absl::ParseTime(absl::RFC3339_full, text, &value, nullptr)) return false;
                   *to = absl::ToChronoTime(value);
                   return true;
                 }},
      field.target);
}

std::string WantedNumber(const ConfigField& field) {
  if (field.most < std::numeric_limits<int64_t>::max()) {
    return absl::StrCat("a whole number from ", field.least, " to ", field.most);
  }
  return absl::StrCat("a whole number above ", field.least - 1);
}

std::string Wanted(const ConfigField& field) {
  return std::visit(
      Overloaded{[](std::string*) -> std::string { return "a string"; },
                 [](std::vector<std::string>*) -> std::string { return "a list of strings"; },
                 [&](int64_t*) { return WantedNumber(field); },
                 [](bool*) -> std::string { return "true or false"; },
                 [](std::chrono::milliseconds*) -> std::string {
                   return "a duration such as \"5s\" or \"1m30s\"";
                 },
                 [](Time*) -> std::string { return "a time such as \"2026-11-21T14:00:00Z\""; }},
      field.target);
}

bool AssignJson(const ConfigField& field, const Json& value) {
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&field.target)) {
    if (!value.is_array()) return false;
    for (const Json& item : value) {
      if (!item.is_string()) return false;
    }
    **list = value.get<std::vector<std::string>>();
    return true;
  }
  if (std::holds_alternative<int64_t*>(field.target)) {
    return value.is_number_integer() && Assign(field, value.dump());
  }
  if (auto* const* flag = std::get_if<bool*>(&field.target)) {
    if (value.is_boolean()) **flag = value.get<bool>();
    return value.is_boolean();
  }
  return value.is_string() && Assign(field, value.get<std::string>());
}

absl::Status CheckChoice(const ConfigField& field, std::string_view where) {
  if (field.choices.empty()) return absl::OkStatus();
  const std::string& value = *std::get<std::string*>(field.target);
  if (value.empty() || std::ranges::find(field.choices, value) != field.choices.end()) {
    return absl::OkStatus();
  }
  return errors::ConfigInvalid(
      where, field.name,
      absl::StrCat("\"", value, "\" is not one of ", absl::StrJoin(field.choices, ", ")));
}

absl::Status UnknownField(std::string_view where, std::string_view name,
                          std::span<const ConfigField> fields,
                          std::span<const std::string_view> others) {
  std::vector<std::string> known(others.begin(), others.end());
  for (const ConfigField& field : fields) known.push_back(field.name);
  return errors::ConfigInvalid(where, name, "the field is unknown" + Suggestion(name, known));
}

}  // namespace

std::span<const std::string_view> AgentOnlyFields() { return kAgentOnly; }

std::vector<ConfigField> ClientFields(Config& c) {
  return {
      {"grpc_targets",
       {"MUSTER_GRPC_TARGETS"},
       &c.grpc_targets,
       "Addresses host:port of the result service, tried in turn.",
       {}},
      {"status_targets",
       {"MUSTER_STATUS_TARGETS"},
       &c.status_targets,
       "Addresses host:port of the status service, for heartbeats and progress.",
       {}},
      {"aggregator_url",
       {"AGGREGATOR_URL", "MASTER_URL"},
       &c.aggregator_url,
       "Base address https://host:port of the run's listener for legacy clients; used if "
       "grpc_targets is empty. A path in it is ignored.",
       {}},
      {"run", {"MUSTER_RUN"}, &c.run, "The run's id; if left out, the one in the certificate.", {}},
      {"plugin", {"RESULT_TYPE"}, &c.plugin, "The plugin's name.", {}},
      {"node",
       {"NODE_NAME"},
       &c.node,
       "The node's name, or global for a plugin that runs once; if left out, the one in the "
       "certificate, else global.",
       {}},
      {"fleet_ca_cert",
       {"MUSTER_FLEET_CA_CERT"},
       &c.fleet_ca_cert,
       "PEM: the fleet's root CA, for grpc_targets and status_targets.",
       {}},
      {"ca_cert", {"CA_CERT"}, &c.ca_cert, "PEM: the run CA, for aggregator_url.", {}},
      {"client_cert",
       {"CLIENT_CERT"},
       &c.client_cert,
       "PEM: the client certificate, then its chain to the fleet's root CA.",
       {}},
      {"client_key", {"CLIENT_KEY"}, &c.client_key, "PEM: the key of the client certificate.", {}},
      {"client_key_file",
       {"MUSTER_CLIENT_KEY_FILE"},
       &c.client_key_file,
       "Path of a file of mode 0600 with the key, instead of client_key.",
       {}},
      {"results_dir",
       {"SONOBUOY_RESULTS_DIR", "RESULTS_DIR"},
       &c.results_dir,
       "Folder of the done file (mode wait).",
       {}},
      {"done_file_delay",
       {"SONOBUOY_DONE_FILE_DELAY"},
       &c.done_file_delay,
       "How long a done file must exist before it is read.",
       {}},
      {"state_dir",
       {"MUSTER_STATE_DIR"},
       &c.state_dir,
       "Folder of the state that survives a restart of the sender.",
       {}},
      {"deadline",
       {"MUSTER_DEADLINE"},
       &c.deadline,
       "The run's deadline; the sender stops trying 120 s later, or when its certificate expires.",
       {}},
      {"leave_when_spooled",
       {"MUSTER_LEAVE_WHEN_SPOOLED"},
       &c.leave_when_spooled,
       "Exits with code 16 when a disconnected relay has spooled the result; "
       "otherwise it waits for the commit.",
       {}},
      {"max_result_bytes",
       {"MUSTER_MAX_RESULT_BYTES"},
       &c.max_result_bytes,
       "The largest result; a larger one is replaced by an error result.",
       {}},
  };
}

std::string_view JsonType(const ConfigField& field) {
  if (std::holds_alternative<std::vector<std::string>*>(field.target)) return "array";
  if (std::holds_alternative<int64_t*>(field.target)) return "integer";
  if (std::holds_alternative<bool*>(field.target)) return "boolean";
  return "string";
}

absl::Status ReadConfigJson(std::string_view text, std::string_view where,
                            std::span<const ConfigField> fields,
                            std::span<const std::string_view> ignored) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return errors::ConfigInvalid(where, "", "it is not JSON");
  if (!json.is_object()) return errors::ConfigInvalid(where, "", "it is not one JSON object");
  for (const auto& [name, value] : json.items()) {
    if (std::ranges::find(ignored, name) != ignored.end()) continue;
    const auto field =
        std::ranges::find_if(fields, [&](const ConfigField& f) { return f.name == name; });
    if (field == fields.end()) return UnknownField(where, name, fields, ignored);
    if (!AssignJson(*field, value)) {
      return errors::ConfigInvalid(where, name, absl::StrCat("the value is not ", Wanted(*field)));
    }
    RETURN_IF_ERROR(CheckChoice(*field, where));
  }
  return absl::OkStatus();
}

absl::Status ReadConfigEnvironment(const EnvironmentReader& read,
                                   std::span<const ConfigField> fields,
                                   std::set<std::string>* set) {
  for (const ConfigField& field : fields) {
    for (const std::string& variable : field.environment) {
      const char* value = read(variable.c_str());
      if (value == nullptr || *value == '\0') continue;
      if (!Assign(field, value)) {
        return errors::ConfigInvalid("environment", variable,
                                     absl::StrCat("the value is not ", Wanted(field)));
      }
      RETURN_IF_ERROR(CheckChoice(field, "environment"));
      set->insert(field.name);
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status CompleteConfig(Config& config, const std::set<std::string>& set) {
  if (config.client_key.empty() && !config.client_key_file.empty()) {
    auto key = ReadSecretFile(config.client_key_file);
    if (!key.ok()) {
      return errors::ConfigInvalid("client_key_file", "", ToStd(key.status().message()));
    }
    config.client_key = *std::move(key);
  }
  // A certificate of another product (a Sonobuoy aggregator) contains no identity, which is
  // accepted.
  const auto certificate = Certificate::FromPem(config.client_cert);
  const auto uri = certificate.ok() ? certificate->Uri() : certificate.status();
  const auto identity = uri.ok() ? ParseOwnIdentity(*uri) : uri.status();
  if (identity.ok()) {
    if (const auto run = RunOf(*identity); run && config.run.empty()) config.run = *run;
    const auto* pair = std::get_if<RunNodeIdentity>(&identity->name);
    // A legacy sidecar's environment names the machine even if its plugin runs once.
    if (pair && (config.node.empty() || (pair->node == "global" && set.contains("node")))) {
      config.node = pair->node;
    }
  }
  if (config.node.empty()) config.node = "global";
  return absl::OkStatus();
}

}  // namespace muster::client
