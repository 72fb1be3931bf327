#include "services/agent/agent_config.h"

#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "services/common/base/absolute_path.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/client.h"

namespace muster {
namespace {

constexpr size_t kMaxConfigFile = size_t{4} << 20;  // a definition may be 1 MiB

std::string DefaultFolder(const client::EnvironmentReader& environment, const std::string& what) {
  const auto value = [&](const char* name) {
    const char* text = environment(name);
    return text == nullptr ? std::string() : std::string(text);
  };
  if (const std::string home = value("MUSTER_HOME"); !home.empty()) return home + "/" + what;
  if (::geteuid() == 0) return "/var/lib/muster-" + what;
  if (const std::string state = value("XDG_STATE_HOME"); !state.empty()) {
    return state + "/muster-" + what;
  }
  return value("HOME") + "/.local/state/muster-" + what;
}

}  // namespace

std::vector<client::ConfigField> AgentFields(AgentConfig& c) {
  std::vector<client::ConfigField> fields = client::ClientFields(c.client);
  const std::vector<client::ConfigField> own = {
      {"mode",
       {"MUSTER_MODE"},
       &c.mode,
       "How the result is produced: by a module, by exec (the definition's command), or by wait "
       "(another process writes the done file). Default: as the plugin's definition says.",
       {"module", "exec", "wait"}},
      {"module",
       {"MUSTER_MODULE"},
       &c.module,
       "The built-in module of mode module. Default: the one with the plugin's name.",
       {}},
      {"definition",
       {"MUSTER_DEFINITION"},
       &c.definition,
       "The plugin's definition in YAML. Default: it is fetched from the fleet.",
       {}},
      {"time_limit",
       {"MUSTER_TIME_LIMIT"},
       &c.time_limit,
       "The time limit of the module. Default: 10m for built-in modules, 6h for exec, none for "
       "wait.",
       {}},
      {"max_output_bytes",
       {"MUSTER_MAX_OUTPUT_BYTES"},
       &c.max_output_bytes,
       "The most bytes that systemd-logs gathers. It keeps the newest entries.",
       {}},
      {"progress_port",
       {"SONOBUOY_PROGRESS_PORT"},
       &c.progress_port,
       "The port on the loopback address to which plugins report progress (modes exec and wait). "
       "0: none.",
       {},
       0,
       65535},
  };
  fields.insert(fields.end(), own.begin(), own.end());
  return fields;
}

absl::StatusOr<AgentConfig> LoadAgentConfig(const std::string& path,
                                            const client::EnvironmentReader& environment) {
  AgentConfig config;
  const auto fields = AgentFields(config);
  if (!path.empty()) {
    auto text = ReadFileBounded(path, kMaxConfigFile);
    if (!text.ok()) return errors::ConfigInvalid(path, "", ToStd(text.status().message()));
    RETURN_IF_ERROR(client::ReadConfigJson(*text, path, fields, {}));
  }
  std::set<std::string> set;
  RETURN_IF_ERROR(client::ReadConfigEnvironment(environment, fields, &set));
  RETURN_IF_ERROR(client::CompleteConfig(config.client, set));
  const std::string& state = config.client.state_dir;
  config.client.state_dir = state.empty() ? DefaultStateDir(environment) : AbsolutePath(state);
  return config;
}

std::vector<std::string> OverridingVariables(const client::EnvironmentReader& environment) {
  AgentConfig config;
  std::vector<std::string> variables;
  for (const client::ConfigField& field : AgentFields(config)) {
    for (const std::string& variable : field.environment) {
      const char* value = environment(variable.c_str());
      if (value == nullptr || *value == '\0') continue;
      variables.push_back(variable);
      break;
    }
  }
  return variables;
}

std::string DefaultStateDir(const client::EnvironmentReader& environment) {
  return AbsolutePath(DefaultFolder(environment, "agent"));
}

std::string NodeFolderPath(const std::string& named, const client::EnvironmentReader& environment) {
  return AbsolutePath(named.empty() ? DefaultFolder(environment, "node") : named);
}

std::string DockerSocketPath(const std::string& named,
                             const client::EnvironmentReader& environment) {
  const char* host = environment("DOCKER_HOST");
  absl::string_view path = host == nullptr ? "" : host;
  if (!named.empty()) path = named;
  if (path.empty()) return "/var/run/docker.sock";
  absl::ConsumePrefix(&path, "unix://");
  return AbsolutePath(std::string(path));
}

std::string AgentConfigSchema() {
  AgentConfig config;
  nlohmann::ordered_json properties;
  for (const client::ConfigField& field : AgentFields(config)) {
    nlohmann::ordered_json property;
    property["description"] = field.description;
    property["type"] = client::JsonType(field);
    if (client::JsonType(field) == "array") property["items"] = {{"type", "string"}};
    if (client::JsonType(field) == "integer") {
      property["minimum"] = field.least;
      if (field.most < std::numeric_limits<int64_t>::max()) property["maximum"] = field.most;
    }
    if (!field.choices.empty()) property["enum"] = field.choices;
    properties[field.name] = std::move(property);
  }
  nlohmann::ordered_json schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Configuration of a Muster agent";
  schema["description"] = "The file that `muster credentials export` writes; see docs/agent.md.";
  schema["type"] = "object";
  schema["additionalProperties"] = false;
  schema["properties"] = std::move(properties);
  return schema.dump(2) + "\n";
}

}  // namespace muster
