// The agent's configuration: docs/agent.md, docs/agent-config.schema.json.
#ifndef MUSTER_SERVICES_AGENT_AGENT_CONFIG_H_
#define MUSTER_SERVICES_AGENT_AGENT_CONFIG_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/client/client.h"
#include "services/client/config_fields.h"

namespace muster {

class KeptResults;

// A progress port that the kernel chooses, because several plugins run at the same time.
inline constexpr int64_t kAnyProgressPort = -1;

struct AgentConfig {
  client::Config client;
  // module, exec or wait; empty: derived from the plugin's definition.
  std::string mode;
  // The module of mode module; empty: the plugin's name.
  std::string module;
  // The plugin's definition in YAML; empty: fetched from the fleet.
  std::string definition;
  // The time limit of the module; 0: its default.
  std::chrono::milliseconds time_limit{0};
  // The output limit of modules that can limit it.
  int64_t max_output_bytes = int64_t{256} << 20;
  // The loopback port for progress reports of plugins, or kAnyProgressPort; 0: none.
  int64_t progress_port = 8099;
  // A committed error is final: the next start does not collect again. Can be set neither in the
  // file nor in the environment.
  bool collects_once = false;
  // Gets the committed result, and outlives the agent; null: it is removed. Can be set neither in
  // the file nor in the environment.
  KeptResults* kept = nullptr;
};

// The fields of the file, the client's first. The pointers refer to `config`.
std::vector<client::ConfigField> AgentFields(AgentConfig& config);

// Reads a JSON file (empty: none), then the environment. Fails with INVALID_ARGUMENT
// (INVALID_CONFIG).
absl::StatusOr<AgentConfig> LoadAgentConfig(const std::string& path,
                                            const client::EnvironmentReader& environment);

// Returns the variables that override fields of the file in LoadAgentConfig.
std::vector<std::string> OverridingVariables(const client::EnvironmentReader& environment);

// Returns the default state folder of an agent: $MUSTER_HOME/agent, for root /var/lib/muster-agent,
// else in $XDG_STATE_HOME or ~/.local/state.
std::string DefaultStateDir(const client::EnvironmentReader& environment);

// Returns the absolute path of the folder of a node's identity: `named` (--dir), or if it is empty
// $MUSTER_HOME/node, for root /var/lib/muster-node, else in $XDG_STATE_HOME or ~/.local/state.
std::string NodeFolderPath(const std::string& named, const client::EnvironmentReader& environment);

// Returns the path of Docker's socket: the named one, or that of DOCKER_HOST, or
// /var/run/docker.sock. Both may be unix://PATH.
std::string DockerSocketPath(const std::string& named,
                             const client::EnvironmentReader& environment);

// Returns the JSON schema of the file, equal to docs/agent-config.schema.json.
std::string AgentConfigSchema();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_AGENT_CONFIG_H_
