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

struct AgentConfig {
  client::Config client;
  // How the result comes about: module, exec or wait; empty: as the plugin's definition says.
  std::string mode;
  // In mode module; empty: the plugin's name.
  std::string module;
  // The plugin's definition in YAML; empty: the fleet is asked for it.
  std::string definition;
  // How long the module may take; 0: as long as is usual for it.
  std::chrono::milliseconds time_limit{0};
  // The most that a module that can choose writes.
  int64_t max_output_bytes = int64_t{256} << 20;
  // Where plugins report progress, on the loopback address; 0: nowhere.
  int64_t progress_port = 8099;
};

// The fields of the file, the client's first. The pointers lead into `config`.
std::vector<client::ConfigField> AgentFields(AgentConfig& config);

// From a JSON file (empty: none), then the environment. INVALID_ARGUMENT (CONFIG_INVALID).
absl::StatusOr<AgentConfig> LoadAgentConfig(const std::string& path,
                                            const client::EnvironmentReader& environment);

// Where an agent keeps its state if the configuration names no folder: $MUSTER_HOME/agent, for root
// /var/lib/muster-agent, else below $XDG_STATE_HOME or ~/.local/state.
std::string DefaultStateDir(const client::EnvironmentReader& environment);

// The default folder of a node's identity: $MUSTER_HOME/node, for root
// /var/lib/muster-node, else below $XDG_STATE_HOME or ~/.local/state.
std::string DefaultNodeFolder(const client::EnvironmentReader& environment);

// The JSON schema of the file, as docs/agent-config.schema.json holds it.
std::string AgentConfigSchema();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_AGENT_CONFIG_H_
