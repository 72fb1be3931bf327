// `muster agent`: gathers or waits for one result, and delivers it.
#ifndef MUSTER_SERVICES_AGENT_AGENT_H_
#define MUSTER_SERVICES_AGENT_AGENT_H_

#include <stop_token>
#include <string>

#include "services/agent/agent_config.h"
#include "services/client/client.h"

namespace muster {

struct AgentOptions {
  // A JSON file (docs/agent-config.schema.json); empty: only the environment.
  std::string config_path;
};

// Runs to the end and returns a client::Code as the exit code (docs/agent.md lists them). Writes
// the outcome to stderr. Called from main before other threads start, because it waits for SIGTERM
// and SIGINT. Blocks.
int RunAgent(const AgentOptions& options);

// As RunAgent, with a loaded configuration and in any thread. `stop` takes the place of SIGTERM.
client::Delivery GatherAndDeliver(AgentConfig config, const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_AGENT_H_
